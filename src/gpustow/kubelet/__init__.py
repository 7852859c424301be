"""The wire to kubelet: protocol code, the plugin's server, registration, socket facts, the PodResources client."""
