"""Feature discovery: what a node's labels say about its GPUs."""

from gpustow.features.differences import label_differences
from gpustow.features.labels import Labels, node_labels

__all__ = ["Labels", "label_differences", "node_labels"]
