"""The daemon: one plugin a resource, and the supervisor that starts, reloads and stops them."""

from gpustow.plugin.supervisor import Supervisor

__all__ = ["Supervisor"]
