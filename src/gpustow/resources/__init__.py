"""Hardware and configuration in, resources and their devices out. Pure functions."""
