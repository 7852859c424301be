from tests.nvml.machine import machine, shared_process

__all__ = ["machine", "shared_process"]
