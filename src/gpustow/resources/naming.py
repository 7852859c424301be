"""Which resource a GPU or a MIG device belongs to: the operator's patterns first, then the names of v0.20.0.

A GPU is matched by the name of its model, a MIG device by that of its profile (`1g.10gb+me`). Behind the operator's
patterns stand those that v0.20.0 always has: every GPU is `nvidia.com/gpu`; under `single` so is every MIG device, and
under `mixed` each is `nvidia.com/mig-<profile>`, `+` written as `.`.

The names of `mixed` hold only for profiles whose compute instance fills the GPU instance. v0.20.0 has none for others,
such as `1c.2g.10gb`, and does not start; here such a device has no resource unless a pattern names one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from gpustow.config import Config, MigStrategy, ResourcePattern, resource_name
from gpustow.errors import HardwareError
from gpustow.hardware.mig import MigProfile
from gpustow.resources.pattern import matches

GPU_RESOURCE = "nvidia.com/gpu"
"""GPUs under any MIG strategy, and MIG devices under `single`."""


@dataclass(frozen=True, slots=True)
class Naming:
    """The MIG strategy of a configuration, and its patterns."""

    strategy: MigStrategy
    gpu_patterns: Sequence[ResourcePattern] = ()
    mig_patterns: Sequence[ResourcePattern] = ()

    @classmethod
    def of(cls, config: Config) -> "Naming":
        """The names that `config` asks for."""
        return cls(config.mig_strategy, config.gpu_patterns, config.mig_patterns)

    def of_gpu(self, model: str) -> str:
        """The resource of a GPU of this model."""
        return _first_match(self.gpu_patterns, model) or GPU_RESOURCE

    def of_mig(self, profile: MigProfile) -> str | None:
        """The resource of a MIG device with this profile; None if there is none.

        Raises HardwareError if the profile's own name cannot be that of a resource.
        """
        if name := _first_match(self.mig_patterns, profile.name):
            return name
        if self.strategy is MigStrategy.SINGLE:
            return GPU_RESOURCE
        return _own_name(profile) if profile.compute_slices == profile.gpu_slices else None


def _own_name(profile: MigProfile) -> str:
    try:
        return resource_name(f"mig-{profile.resource_suffix}")
    except ValueError as error:
        raise HardwareError(
            f"the MIG profile {profile.name} cannot be a resource: {error}",
            advice="Destroy the MIG devices of this profile, name a resource for it in resources.mig of the "
            "configuration, or set --mig-strategy to single or none.",
        ) from error


def _first_match(patterns: Sequence[ResourcePattern], text: str) -> str | None:
    return next((pattern.name for pattern in patterns if matches(pattern.pattern, text)), None)
