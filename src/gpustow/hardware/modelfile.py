"""What a node model file may say, key by key; the JSON schema of the file is generated from here.

    name: a100-4-mig-5
    driverVersion: "550.90.07"
    gpus:                              # groups of like GPUs, in the order of NVML's indices
      - model: NVIDIA A100-SXM4-40GB   # a known model brings memory, capability and MIG profiles
        count: 4
        numaNode: [0, 0, 1, 1]         # one value for all of the group, or one for each
        mig:
          devices: [{profile: 1g.5gb, count: 5}]
    links: {fabric: dgx-a100}          # or pcie: and nvlinks:, a matrix each
    faults:
      - {fault: lost, after: 30s, gpu: 2, for: 10s}

Here it is decided what may be written; what it means is decided in `nodemodel`. Every fault of a file is told with its
path and value, a key that does not exist with the nearest that does. Scalars may come as text (see `plaintext`).
"""

import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    ValidationError,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import InitErrorDetails, PydanticCustomError

from gpustow.errors import Problem

MOST_GPUS = 64
"""More GPUs than this in one group are refused; no machine has them."""

_NOT_GIVEN = frozenset({"", "~", "null"})

_UNITS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|)")
_MEMORY = re.compile(r"(\d+)\s*(MiB|GiB|)")
_MEMORY_UNITS = {"": 1, "MiB": 1 << 20, "GiB": 1 << 30}
_CAPABILITY = re.compile(r"(\d+)\.(\d+)")
_BUS_ID = re.compile(r"(?:([0-9a-f]{4}|[0-9a-f]{8}):)?([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])", re.IGNORECASE)


def _matcher(pattern: re.Pattern[str], what: str) -> Callable[[object], re.Match[str]]:
    def match(value: object) -> re.Match[str]:
        found = pattern.fullmatch(str(value).strip())
        if found is None:
            raise PydanticCustomError("malformed", "this has to be {what}", {"what": what})
        return found

    return match


def _seconds(value: object) -> float:
    match = _matcher(_DURATION, "a time such as 250ms, 30s or 5m")(value)
    return float(match[1]) * _UNITS[match[2]]


def _bytes(value: object) -> int:
    match = _matcher(_MEMORY, "an amount such as 40960MiB, 40GiB or a number of bytes")(value)
    return int(match[1]) * _MEMORY_UNITS[match[2]]


def _capability(value: object) -> tuple[int, int]:
    match = _matcher(_CAPABILITY, "a compute capability such as 8.0")(value)
    return int(match[1]), int(match[2])


def _bus_id(value: object) -> str:
    match = _matcher(_BUS_ID, "a PCI bus id such as 0000:07:00.0")(value)
    domain = (match[1] or "").rjust(8, "0")
    return f"{domain}:{match[2]}:{match[3]}.{match[4]}".upper()


def _listed(value: object) -> object:
    return value if isinstance(value, list | tuple) else [value]


def _words(value: object) -> object:
    return value.split() if isinstance(value, str) else value


def _profile_alone(value: object) -> object:
    return {"profile": value} if isinstance(value, str) else value


_Seconds = Annotated[float, BeforeValidator(_seconds, json_schema_input_type=str | float)]
_Bytes = Annotated[int, BeforeValidator(_bytes, json_schema_input_type=str | int)]
_Capability = Annotated[tuple[int, int], BeforeValidator(_capability, json_schema_input_type=str | float)]
_BusId = Annotated[str, BeforeValidator(_bus_id, json_schema_input_type=str)]
_Uuid = Annotated[str, Field(min_length=1, max_length=96)]
_Row = Annotated[tuple[str, ...], BeforeValidator(_words, json_schema_input_type=str | list[str | int])]
_GpuInstance = Annotated[int, Field(ge=0, le=14)]
_ComputeInstance = Annotated[int, Field(ge=0, le=7)]
_Index = Annotated[int, Field(ge=0)]


class Section(BaseModel):
    """A mapping in the file: keys in camelCase, no others; a key without value counts as not given."""

    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel)

    @model_validator(mode="wrap")
    @classmethod
    def _with_nearest_key(cls, value: object, handler: ModelWrapValidatorHandler["Section"]) -> "Section":
        if isinstance(value, dict):
            value = {key: item for key, item in value.items() if not (isinstance(item, str) and item in _NOT_GIVEN)}
        try:
            return handler(value)
        except ValidationError as error:
            known = [field.alias or name for name, field in cls.model_fields.items()]
            details = [_told(detail, known) for detail in error.errors()]
            raise ValidationError.from_exception_data(cls.__name__, details) from error


_PLAIN_WORDS = {
    "model_type": "this has to be a mapping of keys to values",
    "model_attributes_type": "this has to be a mapping of keys to values",
    "list_type": "this has to be a list",
    "string_type": "this has to be text",
    "int_type": "this has to be a whole number",
    "int_parsing": "this has to be a whole number",
    "int_from_float": "this has to be a whole number",
    "bool_type": "this has to be true or false",
    "bool_parsing": "this has to be true or false",
    "literal_error": "this has to be {expected}",
    "greater_than_equal": "this has to be at least {ge}",
    "less_than_equal": "this has to be at most {le}",
    "string_too_short": "this may not be empty",
    "string_too_long": "this has to be at most {max_length} characters",
    "string_pattern_mismatch": "this has to match {pattern}",
}
"""What is wrong, by pydantic's name for it; in braces what belongs to the rule."""


def _told(detail: Mapping[str, Any], known: list[str]) -> InitErrorDetails:
    """The same error in our words, where pydantic's do not help an operator."""
    kind, message = str(detail["type"]), str(detail["msg"])
    if kind == "extra_forbidden":
        key = str(detail["loc"][-1])
        near = get_close_matches(key, known, 1) or get_close_matches(key.lower(), known, 1)
        hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(known)}"
        kind, message = "unknown_key", f"there is no such key; {hint}"
    elif kind == "missing":
        message = "this key has to be given"
    elif kind in _PLAIN_WORDS and "message" not in (context := detail.get("ctx", {})):
        message = _PLAIN_WORDS[kind].format_map(context)
    elif kind.startswith("union_tag"):
        message = "the key `fault` has to be one of xid, lost, slow, mig"
    message = re.sub("^(Input|String) should", "this should", message)
    error = PydanticCustomError(kind, "{message}", {"message": message.removeprefix("Value error, ")})
    return InitErrorDetails(type=error, loc=detail["loc"], input=detail["input"])


class MigDeviceSection(Section):
    """One MIG device, or `count` alike. Ids and `start`, its first memory slice, are chosen where not given."""

    profile: str
    count: Annotated[int, Field(ge=1, le=56)] = 1
    index: Annotated[int, Field(ge=0, le=63)] | None = None
    uuid: _Uuid | None = None
    start: _Index | None = None
    gpu_instance: _GpuInstance | None = None
    compute_instance: _ComputeInstance | None = None
    memory: _Bytes | None = None
    device_paths: list[str] | None = None

    @model_validator(mode="after")
    def _one_identity_each(self) -> "MigDeviceSection":
        single = (self.index, self.uuid, self.start, self.gpu_instance, self.compute_instance, self.device_paths)
        if self.count > 1 and any(value is not None for value in single):
            raise ValueError("a count goes with a profile alone: ids, start and paths belong to one device")
        return self


_MigDevices = list[
    Annotated[MigDeviceSection, BeforeValidator(_profile_alone, json_schema_input_type=str | MigDeviceSection)]
]


class MigSection(Section):
    """The MIG mode of a GPU and what it is cut into."""

    enabled: bool = True
    devices: _MigDevices = []

    @model_validator(mode="after")
    def _devices_need_the_mode(self) -> "MigSection":
        if self.devices and not self.enabled:
            raise ValueError("there are no MIG devices while MIG is not enabled")
        return self


class MigProfileSection(Section):
    """One way to cut a GPU that is not in our table of models; the name gives slices and attribute."""

    name: Annotated[str, Field(pattern=r"^[1-9]g\.\d+gb([+-][a-z]+(\.[a-z]+)*)?$")]
    memory_mib: Annotated[int, Field(alias="memoryMiB", ge=1)]
    memory_slices: Annotated[int, Field(ge=1, le=16)] | None = None
    multiprocessors: Annotated[int, Field(ge=1)] | None = None
    nvml_profile: Annotated[int, Field(ge=0)] | None = None
    profile_id: Annotated[int, Field(ge=0)] | None = None
    max_count: Annotated[int, Field(ge=0)] | None = None
    placements: list[_Index] = []


class FabricSection(Section):
    """The NVLink fabric that the GPUs are part of: the same for every node of a rack."""

    cluster_uuid: _Uuid
    clique: Annotated[int, Field(ge=0)]


class GpuGroupSection(Section):
    """GPUs of one model. A model that is not in our table needs `computeCapability` and, for MIG, `migProfiles`.

    An index that is left out between two GPUs is that of a display adapter, which is no GPU for us.
    """

    model: Annotated[str, Field(min_length=1)]
    count: Annotated[int, Field(ge=1, le=MOST_GPUS)] = 1
    memory: _Bytes | None = None
    compute_capability: _Capability | None = None
    memory_slices: Annotated[int, Field(ge=1, le=16)] | None = None
    index: Annotated[list[_Index], BeforeValidator(_listed, json_schema_input_type=int | list[int])] | None = None
    uuid: Annotated[list[_Uuid], BeforeValidator(_listed, json_schema_input_type=str | list[str])] | None = None
    pci_bus_id: Annotated[list[_BusId], BeforeValidator(_listed, json_schema_input_type=str | list[str])] | None = None
    minor: Annotated[list[_Index], BeforeValidator(_listed, json_schema_input_type=int | list[int])] | None = None
    numa_node: (
        Annotated[list[Annotated[int, Field(ge=-1)]], BeforeValidator(_listed, json_schema_input_type=int | list[int])]
        | None
    ) = None
    mig: (
        Annotated[list[MigSection], BeforeValidator(_listed, json_schema_input_type=MigSection | list[MigSection])]
        | None
    ) = None
    mig_profiles: list[MigProfileSection] | None = None
    fabric: FabricSection | None = None


class LinksSection(Section):
    """How the GPUs are linked: a fabric by name, or a matrix with one row a GPU of what it reports about each other.

    `pcie` has the words of `nvidia-smi topo -m` (PSB PIX PXB PHB NODE SYS, X for itself, ? for unknown), `nvlinks` the
    number of NVLinks that go straight to the other GPU, `nvswitchLinks` how many of a GPU end at an NVSwitch.
    """

    fabric: str | None = None
    seed: int = 0
    pcie: list[_Row] | None = None
    nvlinks: list[_Row] | None = None
    nvswitch_links: Annotated[list[_Index], BeforeValidator(_listed, json_schema_input_type=int | list[int])] | None = (
        None
    )

    @model_validator(mode="after")
    def _one_way_to_say_it(self) -> "LinksSection":
        if (self.fabric is None) == (self.pcie is None and self.nvlinks is None and self.nvswitch_links is None):
            raise ValueError("say either `fabric`, a name, or `pcie`, `nvlinks` and `nvswitchLinks`")
        return self


_TIME = "a number with ms, s, m or h behind it, or of seconds"
_GPU = "The NVML index of the GPU."


class _FaultSection(Section):
    after: _Seconds = Field(description=f"When it begins, after the start of the plugin: {_TIME}.")


class XidSection(_FaultSection):
    """An XID that the driver reports, once."""

    fault: Literal["xid"]
    gpu: _Index = Field(description=_GPU)
    code: Annotated[int, Field(ge=1, description="The number of the XID; `gpustow xid` lists them.")]
    gpu_instance: _GpuInstance | None = Field(
        default=None, description="The GPU instance that it is about; not given: the whole GPU."
    )
    compute_instance: _ComputeInstance | None = Field(default=None, description="The compute instance in that.")


class LostSection(_FaultSection):
    """A GPU that falls off the bus."""

    fault: Literal["lost"]
    gpu: _Index = Field(description=_GPU)
    duration: _Seconds | None = Field(
        default=None, alias="for", description=f"How long it is gone: {_TIME}. Not given: for good."
    )


class SlowSection(_FaultSection):
    """An NVML that takes its time."""

    fault: Literal["slow"]
    delay: _Seconds = Field(description=f"How much longer each reading takes: {_TIME}.")
    duration: _Seconds | None = Field(
        default=None, alias="for", description=f"How long NVML is slow: {_TIME}. Not given: for good."
    )


class MigChangeSection(_FaultSection):
    """A GPU that is cut anew, for good."""

    fault: Literal["mig"]
    gpu: _Index = Field(description=_GPU)
    enabled: bool = Field(default=True, description="Whether it is in MIG mode from then on.")
    devices: _MigDevices = Field(default=[], description="All its MIG devices from then on.")


FaultSection = Annotated[XidSection | LostSection | SlowSection | MigChangeSection, Field(discriminator="fault")]


class NodeModelFile(Section):
    """A simulated node: what the machine has, how it is linked, and what goes wrong when."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9]([-._A-Za-z0-9]*[A-Za-z0-9])?$", max_length=253)]
    description: str = ""
    platform: Literal["nvml", "tegra", "wsl"] = "nvml"
    driver_version: str = ""
    cuda_version: str = ""
    gpus: list[GpuGroupSection]
    links: LinksSection | None = None
    faults: list[FaultSection] = Field(default=[], description="What goes wrong, and when.")


def problems_of(error: ValidationError, document: object) -> list[Problem]:
    """The faults of a file as paths and sentences; `document` is what the file says, for paths as they stand there."""
    return [_problem(detail, document) for detail in error.errors()]


def _problem(detail: Mapping[str, Any], document: object) -> Problem:
    path, here, missing = "", document, detail["type"] == "missing"
    for part in detail["loc"][:-1] if missing else detail["loc"]:
        if isinstance(here, dict) and part in here:
            path, here = f"{path}.{part}", here[part]
        elif isinstance(here, list) and isinstance(part, int) and part < len(here):
            path, here = f"{path}[{part}]", here[part]
    message = str(detail["msg"])
    if missing:
        path = f"{path}.{detail['loc'][-1]}"
    elif detail["type"] != "unknown_key" and isinstance(here, str | int | float):
        message += f" (found {here!r})"
    return Problem(path.removeprefix("."), message)


def node_model_schema() -> dict[str, Any]:
    """The JSON schema of a node model file."""
    schema = NodeModelFile.model_json_schema(by_alias=True, mode="validation")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
