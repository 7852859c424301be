"""The Topology Manager: masks of NUMA nodes, the hints for a request, how hints merge, and what a policy admits."""
