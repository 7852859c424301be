"""The protocols: generated messages (`make proto`), and the services in a few typed lines."""
