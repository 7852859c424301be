"""What the daemon tells of itself: the status of the node, metrics and probes over HTTP.

Nothing here is imported by a daemon that was not asked to tell.
"""
