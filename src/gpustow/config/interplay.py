"""Settings that can be given together and then do less than they seem, or the same thing twice.

None of it is refused, because v0.20.0 takes it and some container runtime can use it; the operator is told once, when
the configuration is loaded, and not by a container that fails.
"""

from collections.abc import Iterator

from gpustow.config.config import Config
from gpustow.config.strategies import CDI_STRATEGIES, DeviceListStrategy

STANDARD_PREFIX = "cdi.k8s.io/"
"""The only prefix of CDI annotations that containerd and CRI-O read."""


def interplay(config: Config) -> tuple[str, ...]:
    """What to tell about settings that go together badly."""
    return (*_strategies(config), *_others(config))


def _strategies(config: Config) -> Iterator[str]:
    chosen = set(config.device_list_strategies)
    if chosen.issuperset(CDI_STRATEGIES):
        yield (
            "the device list strategies cdi-annotations and cdi-cri ask for the same devices twice, which makes "
            "containerd 1.7 run the hooks of CDI twice; keep cdi-cri (containerd 1.7.2, CRI-O 1.28 and newer), or "
            "cdi-annotations for older ones"
        )
    if chosen.issuperset({DeviceListStrategy.ENVVAR, DeviceListStrategy.VOLUME_MOUNTS}):
        yield (
            "the device list strategies envvar and volume-mounts tell the same devices twice; a container runtime "
            "that accepts mounts takes those, another the variable; keep the one that the runtime is set up for"
        )


def _others(config: Config) -> Iterator[str]:
    chosen = set(config.device_list_strategies)
    if config.pass_device_specs and chosen.issubset(CDI_STRATEGIES):
        yield (
            "passDeviceSpecs has no effect where all device list strategies are CDI, whose specifications have the "
            "device nodes"
        )
    if DeviceListStrategy.CDI_ANNOTATIONS in chosen and config.cdi_annotation_prefix != STANDARD_PREFIX:
        yield (
            f"containerd and CRI-O read CDI annotations with the prefix {STANDARD_PREFIX} alone, so that "
            f"{config.cdi_annotation_prefix or 'an empty one'} is for NVIDIA's container runtime in CDI mode"
        )
    if config.imex_required and not config.imex_channel_ids:
        yield "imex.required has no effect without imex.channelIDs"
