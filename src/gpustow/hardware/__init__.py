"""What the node has: GPUs, MIG devices, links, NUMA nodes; and the readers that find out."""
