"""Feature discovery: what a node's labels say about its GPUs."""

from gpustow.features.labels import Labels, node_labels

__all__ = ["Labels", "node_labels"]
