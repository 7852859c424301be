"""Reads the node through NVIDIA's management library."""

from gpustow.hardware.nvml.reader import DEADLINE, NvmlReader, Places

__all__ = ["DEADLINE", "NvmlReader", "Places"]
