"""The version, the single place it is written down."""

__version__ = "0.1.0"
