"""The whole of it without a GPU or a cluster: the real plugin, an embedded kubelet, workloads, results, pictures."""
