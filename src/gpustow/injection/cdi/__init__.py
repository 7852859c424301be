"""CDI, the Container Device Interface: files in which a container runtime finds what a device's name stands for."""
