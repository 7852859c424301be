"""A small HTTP server for reading: one request a connection, with limits on everything that a client can do."""
