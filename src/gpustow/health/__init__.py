"""Which devices are fit: what the driver tells of its GPUs, what is made of it, and when a device is fit again."""
