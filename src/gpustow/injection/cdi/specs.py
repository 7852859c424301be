"""All specifications of a node: class `gpu`, and the other classes that it has devices of.

Class `gpu` has the devices of `gpuclass`, and `all`, which stands for all of them and is what monitoring asks for
(k8s-device-plugin#1203). The NVIDIA Container Toolkit makes it where it is installed and gives every name that is
needed; else our own generator does, and says so.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from gpustow.config import Config
from gpustow.errors import HardwareError
from gpustow.hardware.node import Node
from gpustow.injection.cdi.edits import CdiEdits
from gpustow.injection.cdi.generator import DriverRoot, Generated, generate, generate_other_classes, host_warnings
from gpustow.injection.cdi.generator.generated import VOID
from gpustow.injection.cdi.gpuclass import device_names, gpu_class
from gpustow.injection.cdi.simplify import simplified, with_all
from gpustow.injection.cdi.specification import CdiSpec
from gpustow.injection.cdi.toolkit import Toolkit, ToolkitFailed
from gpustow.injection.hostdevices import HostDevices


@dataclass(frozen=True, slots=True)
class CdiSpecs:
    """The specifications, one a class; and sentences for the log: what is not in them, and what should be mended."""

    specs: tuple[CdiSpec, ...]
    left_out: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def cdi_specs(
    node: Node, config: Config, host: HostDevices, root: DriverRoot, toolkit: Toolkit | None = None
) -> CdiSpecs:
    """The specifications of the node. May take seconds.

    Raises:
        HardwareError: nothing is found that a container with a GPU could be given.
        CdiSpecError: a specification breaks the rules of CDI.
    """
    gpus = _gpus(node, config, host, root, toolkit)
    made = (replace(gpus, spec=with_all(gpus.spec)), *generate_other_classes(config, root, host))
    specs = tuple(simplified(each.spec) for each in made)
    for spec in specs:
        spec.check()
    warnings = [*gpu_class(node, config).nameless, *host_warnings(config, root)]
    return CdiSpecs(
        specs,
        _unique(sentence for each in made for sentence in each.left_out),
        _unique([*warnings, *(sentence for each in made for sentence in each.warnings)]),
    )


def _gpus(node: Node, config: Config, host: HostDevices, root: DriverRoot, toolkit: Toolkit | None) -> Generated:
    """Class `gpu`, by the toolkit if it can."""
    told = []
    if toolkit is not None:
        try:
            spec = toolkit.generate(config, node.platform, device_names(node, config))
        except ToolkitFailed as error:
            told.append(f"{toolkit.program} gives no CDI specification, and our own generator makes it: {error}")
        else:
            return Generated(replace(spec, edits=_void(spec.edits)))
    generated = generate(node, config, root, host)
    warnings = (*told, *generated.warnings)
    if not generated.spec.devices:
        raise HardwareError(
            "there is nothing that a container with a GPU could be given by CDI",
            advice="; ".join([*warnings, *generated.left_out]),
        )
    return replace(generated, warnings=warnings)


def _unique(sentences: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(sentences))


def _void(edits: CdiEdits) -> CdiEdits:
    """With the variable that tells NVIDIA's own runtime to stay out of it, which the toolkit writes since 1.15."""
    name, _, _ = VOID.partition("=")
    env = tuple(text for text in edits.env if text.partition("=")[0] != name)
    return replace(edits, env=(*env, VOID))
