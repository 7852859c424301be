"""Sharing by MPS: what the plugin must know of the MPS control daemon before it hands out shares of a GPU."""

from gpustow.mps.readiness import MpsControl

__all__ = ["MpsControl"]
