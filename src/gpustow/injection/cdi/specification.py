"""CDI specifications as values: what a file holds, which version of CDI that needs, and whether a runtime will take it.

A runtime refuses a whole file for one fault in it, and tells of it in its own log alone; the pods on the node then wait
without a word. So `check` knows the rules that the CDI library applies when it loads a file, and no file is written
that it complains of.

The version is computed: the lowest that knows everything which is in the file, since a runtime refuses a version that
it does not know. It is 0.3.0 for files with nothing but UUIDs and unmoved paths, which CRI-O 1.24 takes.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from gpustow.errors import CdiSpecError, Problem
from gpustow.injection.cdi.edits import CdiDeviceNode, CdiEdits, CdiHook, CdiMount
from gpustow.injection.cdi.jsonobject import JsonObject, Malformed, parse_object
from gpustow.injection.cdi.names import is_annotation_key, is_device_name, is_kind

__all__ = ["CdiDevice", "CdiDeviceNode", "CdiEdits", "CdiHook", "CdiMount", "CdiSpec", "parse_spec"]

VERSIONS = ("0.1.0", "0.2.0", "0.3.0", "0.4.0", "0.5.0", "0.6.0", "0.7.0", "0.8.0", "1.0.0", "1.1.0")
"""The versions that there are, oldest first; no other is accepted, such as 0.5.1."""

MAX_ANNOTATION_BYTES = 256 << 10
"""What the keys and values of one set of annotations may have together."""


@dataclass(frozen=True, slots=True)
class CdiDevice:
    """A device that a container can ask for, and what it then gets. `annotations` never reach the container."""

    name: str
    edits: CdiEdits
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CdiSpec:
    """One file: the devices of one kind (`vendor/class`), and edits for every container that gets any of them."""

    kind: str
    devices: tuple[CdiDevice, ...]
    edits: CdiEdits = field(default_factory=CdiEdits)
    annotations: Mapping[str, str] = field(default_factory=dict)

    @property
    def version(self) -> str:
        """The lowest version of CDI that knows all that is in here."""
        return max((version for needed, version in self._needs() if needed), key=VERSIONS.index, default="0.3.0")

    def check(self) -> None:
        """Raises CdiSpecError with everything for which a runtime would refuse the file."""
        if problems := self.problems:
            raise CdiSpecError(self.kind, problems)

    def to_json(self) -> str:
        """The text of the file; the same content gives the same text."""
        return json.dumps(self._form(), indent=2) + "\n"

    def _form(self) -> dict[str, object]:
        form: dict[str, object] = {"cdiVersion": self.version, "kind": self.kind}
        if self.annotations:
            form["annotations"] = dict(self.annotations)
        form["devices"] = [_device_form(device) for device in self.devices]
        if not self.edits.is_empty:
            form["containerEdits"] = self.edits.json_form()
        return form

    def _needs(self) -> Iterator[tuple[bool, str]]:
        """Features that came with a version: whether they are used, and the version."""
        _, _, class_ = self.kind.partition("/")
        everything = (self.edits, *(device.edits for device in self.devices))
        yield any(mount.type for edits in everything for mount in edits.mounts), "0.4.0"
        yield any(node.host_path for edits in everything for node in edits.device_nodes), "0.5.0"
        yield any("0" <= device.name[:1] <= "9" for device in self.devices), "0.5.0"
        yield bool(self.annotations) or any(device.annotations for device in self.devices), "0.6.0"
        yield "." in class_, "0.6.0"
        yield any(edits.additional_gids for edits in everything), "0.7.0"

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Everything for which a runtime would refuse the file."""
        return tuple(self._problems())

    def _problems(self) -> Iterator[Problem]:
        if not is_kind(self.kind):
            yield Problem("kind", f"should be vendor/class, each of two characters or more, and is {self.kind!r}")
        yield from _annotation_problems(self.annotations, "annotations")
        if not self.devices:
            yield Problem("devices", "should be one or more")
        names: set[str] = set()
        for number, device in enumerate(self.devices):
            at = f"devices[{number}]"
            if not is_device_name(device.name):
                yield Problem(f"{at}.name", f"cannot be the name of a device: {device.name!r}")
            if device.name in names:
                yield Problem(f"{at}.name", f"is there twice: {device.name!r}")
            names.add(device.name)
            yield from _annotation_problems(device.annotations, f"{at}.annotations")
            if device.edits.is_empty:
                yield Problem(f"{at}.containerEdits", "should not be empty")
            yield from device.edits.problems(f"{at}.containerEdits")
        yield from self.edits.problems("containerEdits")
        if not self._is_unicode:
            yield Problem("", "has a text, perhaps a path, that is not UTF-8")

    @property
    def _is_unicode(self) -> bool:
        try:
            json.dumps(self._form(), ensure_ascii=False).encode()
        except UnicodeEncodeError:
            return False
        return True


def parse_spec(text: str, source: str = "text") -> CdiSpec:
    """The specification that a JSON text is.

    `source` is named in the error. The version that the text states may be higher than needed, and is not kept.

    Raises:
        CdiSpecError: a runtime would refuse it, or it has fields for which there is no place here.
    """
    try:
        spec, version = _read(parse_object(text))
    except Malformed as error:
        raise CdiSpecError(source, [error.problem]) from error
    problems = list(spec.problems)
    if version.removeprefix("v") not in VERSIONS:
        problems.append(Problem("cdiVersion", f"should be one of {', '.join(VERSIONS)}, and is {version!r}"))
    elif VERSIONS.index(version.removeprefix("v")) < VERSIONS.index(spec.version):
        problems.append(Problem("cdiVersion", f"should be {spec.version} or higher for the content, and is {version}"))
    if problems:
        raise CdiSpecError(source, problems)
    return spec


def _read(json: JsonObject) -> tuple[CdiSpec, str]:
    version = json.text("cdiVersion")
    spec = CdiSpec(
        kind=json.text("kind"),
        devices=tuple(_read_device(item) for item in json.objects("devices")),
        edits=CdiEdits.read(json.inner("containerEdits")),
        annotations=json.mapping("annotations"),
    )
    json.done()
    return spec, version


def _read_device(json: JsonObject) -> CdiDevice:
    device = CdiDevice(
        json.text("name"), CdiEdits.read(json.inner("containerEdits")), annotations=json.mapping("annotations")
    )
    json.done()
    return device


def _device_form(device: CdiDevice) -> dict[str, object]:
    form: dict[str, object] = {"name": device.name}
    if device.annotations:
        form["annotations"] = dict(device.annotations)
    form["containerEdits"] = device.edits.json_form()
    return form


def _annotation_problems(annotations: Mapping[str, str], at: str) -> Iterator[Problem]:
    for key in annotations:
        if not is_annotation_key(key):
            yield Problem(at, f"cannot be the key of an annotation: {key!r}")
    size = sum(len(text.encode(errors="surrogatepass")) for item in annotations.items() for text in item)
    if size > MAX_ANNOTATION_BYTES:
        yield Problem(at, f"should have {MAX_ANNOTATION_BYTES} bytes or less, and has {size}")
