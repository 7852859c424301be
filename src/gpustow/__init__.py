"""gpustow: a Kubernetes device plugin suite for NVIDIA GPUs that decides well which devices a request gets."""

from gpustow.version import __version__

__all__ = ["__version__"]
