"""A node drawn for the terminal: its GPUs, how they are linked, how MIG cuts them.

Plain text in columns, so that it survives a pipe and a bug report. The link matrix has the words of `nvidia-smi topo
-m`: NVLinks hide the PCIe level. A MIG card is drawn as wide as its memory slices, each device over the slices that it
takes:

    GPU 0  |3g.20gb                            |2g.10gb          |1g.5gb  |        |

Everything fits into 80 columns, ids in a table of their own, but for what has no end: the links of more than ten GPUs,
and the longest names.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from textwrap import fill, wrap

from gpustow.hardware.links import UNKNOWN_LINK, Link
from gpustow.hardware.mig import MigDevice
from gpustow.hardware.node import Gpu, Node

_MIB = 1 << 20
_CARD_WIDTH = 72
_LINE_WIDTH = 80
_LEGEND = {
    "NV#": "that many NVLinks, straight or through NVSwitches",
    "PSB": "on one board",
    "PIX": "through one PCIe switch",
    "PXB": "through several PCIe switches",
    "PHB": "through the host bridge of a CPU",
    "NODE": "between host bridges of one NUMA node",
    "SYS": "between NUMA nodes",
    "?": "not known",
}


def draw_node(node: Node, description: str = "") -> str:
    """The whole picture, each part under its heading."""
    parts = [_heading(node, description), *_parts(node)]
    return "\n\n".join(parts) + "\n"


def _parts(node: Node) -> Iterator[str]:
    if node.gpus:
        yield columns([_GPU_HEADER, *(_gpu_row(gpu) for gpu in node.gpus)])
        yield columns([_GPU_ID_HEADER, *(_gpu_ids(gpu) for gpu in node.gpus)])
    if any(gpu.fabric for gpu in node.gpus):
        yield columns([_FABRIC_HEADER, *_fabric_rows(node)])
    if len(node.gpus) > 1:
        yield "Links\n" + _matrix(node, _label_of)
        if any(link.nvlinks for _, link in node.links.readings):
            yield "PCIe below the NVLinks\n" + _matrix(node, _level_of)
    cut = [gpu for gpu in node.gpus if gpu.mig_enabled]
    if cut:
        yield "MIG layout\n" + "\n".join(_card(gpu) for gpu in cut)
        devices = [(gpu, device) for gpu in cut for device in gpu.mig_devices]
        if devices:
            yield columns([_MIG_HEADER, *(_mig_row(gpu, device) for gpu, device in devices)])
            yield columns([_MIG_ID_HEADER, *((_mig_name(gpu, device), device.uuid) for gpu, device in devices)])
    if node.notes:
        yield "Could not be read\n" + "\n".join(f"  {note}" for note in node.notes)


def columns(rows: Iterable[Sequence[str]]) -> str:
    """Rows of text under each other, every column as wide as its widest."""
    table = [list(row) for row in rows]
    widths = [max(len(row[number]) for row in table) for number in range(len(table[0]))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table)
    return "\n".join(lines)


def wrapped_columns(rows: Iterable[Sequence[str]]) -> str:
    """As `columns`, the words of the last one on as many lines as they need."""
    table = [list(row) for row in rows]
    left = sum(max(len(row[number]) for row in table) + 2 for number in range(len(table[0]) - 1))
    lines: list[Sequence[str]] = []
    for *cells, last in table:
        first, *more = wrap(last, _LINE_WIDTH - left) or [""]
        lines += [(*cells, first), *((*("" for _ in cells), line) for line in more)]
    return columns(lines)


def _heading(node: Node, description: str) -> str:
    count = len(node.gpus)
    facts = [
        f"{count} {'GPU' if count == 1 else 'GPUs'}",
        f"platform {node.platform.value}",
        f"driver {node.driver_version or 'not known'}",
        f"CUDA {node.cuda_version or 'not known'}",
    ]
    title = fill(f"{node.name}: {description}", _LINE_WIDTH) if description else node.name
    return f"{title}\n{', '.join(facts)}"


_GPU_HEADER = ("GPU", "MODEL", "MEMORY", "CAPABILITY", "NUMA", "MIG")
_GPU_ID_HEADER = ("GPU", "PCI BUS ID", "DEVICE", "UUID")


def _gpu_row(gpu: Gpu) -> tuple[str, ...]:
    mig = f"{len(gpu.mig_devices)} devices" if gpu.mig_enabled else "off" if gpu.mig_capable else "-"
    return (
        str(gpu.index),
        gpu.model or "?",
        _size(gpu.memory_bytes),
        "?" if gpu.compute_capability is None else "{}.{}".format(*gpu.compute_capability),
        _numa(gpu),
        mig,
    )


def _gpu_ids(gpu: Gpu) -> tuple[str, ...]:
    return str(gpu.index), gpu.pci_bus_id or "-", " ".join(gpu.device_paths) or "-", gpu.uuid


def _size(size: int | None) -> str:
    return "?" if size is None else f"{size // _MIB} MiB"


_FABRIC_HEADER = ("GPU", "NVLINK FABRIC", "CLIQUE")


def _fabric_rows(node: Node) -> Iterator[tuple[str, ...]]:
    for gpu in node.gpus:
        fabric = gpu.fabric
        yield (
            (str(gpu.index), "-", "-") if fabric is None else (str(gpu.index), fabric.cluster_uuid, str(fabric.clique))
        )


def _label_of(link: Link) -> str:
    return link.label


def _level_of(link: Link) -> str:
    return Link(link.pcie).label


def _matrix(node: Node, word: Callable[[Link], str]) -> str:
    """The links by row and column, then what the words in it mean."""
    table = node.links.table()
    indices = [gpu.index for gpu in node.gpus]
    cells = {
        (row, column): "X" if row == column else word(table.get((row, column), UNKNOWN_LINK))
        for row in indices
        for column in indices
    }
    header = ["", *(f"GPU{index}" for index in indices), "NUMA"]
    rows = [[f"GPU{gpu.index}", *(cells[gpu.index, column] for column in indices), _numa(gpu)] for gpu in node.gpus]
    used = {"NV#" if word.startswith("NV") else word for word in cells.values()}
    legend = [f"  {word.ljust(5)} {meaning}" for word, meaning in _LEGEND.items() if word in used]
    return "\n".join([columns([header, *rows]), *legend])


def _numa(gpu: Gpu) -> str:
    return "-" if gpu.numa_node is None else str(gpu.numa_node)


def _card(gpu: Gpu) -> str:
    """The card from its first memory slice to its last; devices whose place is not known are listed behind it."""
    width = _CARD_WIDTH // gpu.memory_slices
    by_start: dict[int, list[MigDevice]] = {}
    for device in gpu.mig_devices:
        if device.start is not None:
            by_start.setdefault(device.start, []).append(device)
    drawn, at = "|", 0
    for start, devices in sorted(by_start.items()):
        drawn += _free(start - at, width)
        slices = devices[0].profile.memory_slices or 1
        drawn += _cell(_label(devices), slices * width)
        at = start + slices
    drawn += _free(gpu.memory_slices - at, width)
    rest = [device.profile.name for device in gpu.mig_devices if device.start is None]
    return f"GPU {gpu.index}  {drawn}" + (f"  somewhere: {' '.join(rest)}" if rest else "")


def _free(slices: int, width: int) -> str:
    return _cell("", width) * slices


def _label(devices: Sequence[MigDevice]) -> str:
    """The name of the device, or what the parts of one GPU instance are parts of."""
    if len(devices) == 1:
        return devices[0].profile.name
    return f"{len(devices)} in {devices[0].profile.instance_name}"


def _cell(text: str, width: int) -> str:
    return text[: width - 1].ljust(width - 1) + "|"


_MIG_HEADER = ("MIG DEVICE", "PROFILE", "MEMORY", "GPU INSTANCE", "COMPUTE INSTANCE", "SLICES")
_MIG_ID_HEADER = ("MIG DEVICE", "UUID")


def _mig_name(gpu: Gpu, device: MigDevice) -> str:
    return f"{gpu.index}:{device.index}"


def _mig_row(gpu: Gpu, device: MigDevice) -> tuple[str, ...]:
    width = device.profile.memory_slices
    place = "?" if device.start is None else f"{device.start}" + (f":{width}" if width else "")
    return (
        _mig_name(gpu, device),
        device.profile.name,
        _size(device.memory_bytes),
        str(device.gpu_instance),
        str(device.compute_instance),
        place,
    )
