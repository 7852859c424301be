"""From a node and its driver's root to the CDI specification of its GPUs.

This is what `nvidia-ctk cdi generate` of the NVIDIA Container Toolkit does, for nodes that do not have it; lists and
rules are those of its version 1.20. What it finds it gives, and what it does not find it says. It fails for nothing: a
container that has a GPU and lacks a library is better than a node that has no GPUs.

Each platform has a module that makes the devices and the edits that they have in common. Names are those that Allocate
answers with. The order of edits is that of the lists; who writes the file sorts.

Limits: libnvidia-sandboxutils is not asked. The modes nvswitch and management of the toolkit are for others than pods.
Whether a hook's program knows a hook cannot be seen.
"""

from typing import assert_never

from gpustow.config import Config
from gpustow.hardware.node import Node, Platform
from gpustow.injection.cdi.edits import CdiEdits
from gpustow.injection.cdi.generator.features import KNOWN
from gpustow.injection.cdi.generator.generated import VOID, Generated, Parts
from gpustow.injection.cdi.generator.hooks import HOOKS, Hooks, hook_program
from gpustow.injection.cdi.generator.nvml import nvml_parts
from gpustow.injection.cdi.generator.roots import DriverRoot
from gpustow.injection.cdi.generator.sources import Sources
from gpustow.injection.cdi.generator.tegra import tegra_parts
from gpustow.injection.cdi.generator.wsl import wsl_parts
from gpustow.injection.cdi.names import GPU_CLASS, kind
from gpustow.injection.cdi.specification import CdiSpec
from gpustow.injection.hostdevices import HostDevices

_SIMULATED = "the node is simulated: there are no libraries, programs and sockets of a driver to give to containers"


def generate(node: Node, config: Config, root: DriverRoot, host: HostDevices) -> Generated:
    """The specification of class `gpu`; it has no devices if the node has none."""
    sources = Sources.of(config, root)
    parts = _parts(node, host, sources)
    spec = CdiSpec(kind(GPU_CLASS), parts.devices, parts.edits + CdiEdits(env=(VOID,)))
    if root.simulated:
        return Generated(spec, (_SIMULATED,), _unknown(sources))
    return Generated(spec, sources.left_out, (*_unknown(sources), *sources.warnings))


def _parts(node: Node, host: HostDevices, sources: Sources) -> Parts:
    match node.platform:
        case Platform.NVML:
            return nvml_parts(node, host, sources)
        case Platform.WSL:
            return wsl_parts(sources)
        case Platform.TEGRA:
            return tegra_parts(node, sources)
        case _:
            assert_never(node.platform)


def _unknown(sources: Sources) -> tuple[str, ...]:
    """Tells of words of the configuration that mean nothing."""
    told = []
    if unknown := sources.features.unknown:
        told.append(f"--cdi-feature-flags: {', '.join(unknown)} not known and ignored; known are {', '.join(KNOWN)}")
    if unknown := sources.hooks.unknown:
        told.append(f"--cdi-disable-hooks: {', '.join(unknown)} not known and ignored; known are {', '.join(HOOKS)}")
    return tuple(told)


def host_warnings(config: Config, root: DriverRoot) -> tuple[str, ...]:
    """What is wrong with the host, whoever makes its specification: roots, and a hook program that is not there.

    Without that program no container would start. It can be looked for where the host's own root is the driver's.
    """
    path, hooks = hook_program(config), Hooks(config)
    if root.simulated or hooks.all_disabled or root.driver_root.strip("/") or root.driver.resolve(path) is not None:
        return root.warnings
    told = (
        f"the hook program {path} is not found below {root.seen_at}, where the host's root should be: if the host does "
        "not have it, no container with a GPU starts; install the NVIDIA Container Toolkit there, correct "
        "--nvidia-cdi-hook-path, or set --cdi-disable-hooks=all"
    )
    return (told, *root.warnings)
