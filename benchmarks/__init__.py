"""What `make bench` measures: decisions, the wire, the start and the cost of the daemon."""
