"""What a CDI file says of a device: the edits of a container that gets it.

The fields are those that files for GPUs use. CDI 1.1 knows two more, network devices and Intel's cache allocation,
which no NVIDIA file has; a file with them is refused when it is read, so that nothing is lost in silence.

Each value knows its JSON form and what is wrong with it, by the rules that the CDI library 1.1 applies when it loads a
file. Where its text demands more than it checks (absolute hook paths), so do we.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from gpustow.errors import Problem
from gpustow.injection.cdi.jsonobject import JsonObject

HOOK_NAMES = ("prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop")
NODE_TYPES = ("", "b", "c", "u", "p")
PERMISSIONS = frozenset("rwm")

_INT64 = range(-(1 << 63), 1 << 63)
_UINT32 = range(1 << 32)
_SECONDS = range(1, 1 << 32)


@dataclass(frozen=True, slots=True)
class CdiDeviceNode:
    """A device node at `path` in the container; `host_path` is empty if it is the same on the host.

    What is left out (type, numbers, mode) the runtime reads from the host's node when it makes the container.
    """

    path: str
    host_path: str = ""
    type: str = ""
    major: int | None = None
    minor: int | None = None
    file_mode: int | None = None
    permissions: str = ""
    uid: int | None = None
    gid: int | None = None

    def json_form(self) -> dict[str, object]:
        """As it stands in a file."""
        return _present(
            path=self.path,
            hostPath=self.host_path,
            type=self.type,
            major=self.major,
            minor=self.minor,
            fileMode=self.file_mode,
            permissions=self.permissions,
            uid=self.uid,
            gid=self.gid,
        )

    @classmethod
    def read(cls, json: JsonObject) -> "CdiDeviceNode":
        """From its form in a file. Raises Malformed."""
        node = cls(
            path=json.text("path"),
            host_path=json.text("hostPath"),
            type=json.text("type"),
            major=json.number("major"),
            minor=json.number("minor"),
            file_mode=json.number("fileMode"),
            permissions=json.text("permissions"),
            uid=json.number("uid"),
            gid=json.number("gid"),
        )
        json.done()
        return node

    def problems(self, at: str) -> Iterator[Problem]:
        """What is wrong with it."""
        yield from _need(self.path, f"{at}.path")
        if self.type not in NODE_TYPES:
            yield Problem(f"{at}.type", f"should be one of b, c, u and p, and is {self.type!r}")
        if not PERMISSIONS.issuperset(self.permissions):
            yield Problem(f"{at}.permissions", f"should be of the letters r, w and m, and is {self.permissions!r}")
        yield from _fits(self.major, _INT64, f"{at}.major")
        yield from _fits(self.minor, _INT64, f"{at}.minor")
        yield from _fits(self.file_mode, _UINT32, f"{at}.fileMode")
        yield from _fits(self.uid, _UINT32, f"{at}.uid")
        yield from _fits(self.gid, _UINT32, f"{at}.gid")


@dataclass(frozen=True, slots=True)
class CdiMount:
    """The host's `host_path`, mounted at `container_path`; `options` are those of `mount`."""

    host_path: str
    container_path: str
    options: tuple[str, ...] = ()
    type: str = ""

    def json_form(self) -> dict[str, object]:
        """As it stands in a file."""
        return _present(
            hostPath=self.host_path, containerPath=self.container_path, options=list(self.options), type=self.type
        )

    @classmethod
    def read(cls, json: JsonObject) -> "CdiMount":
        """From its form in a file. Raises Malformed."""
        mount = cls(json.text("hostPath"), json.text("containerPath"), json.texts("options"), json.text("type"))
        json.done()
        return mount

    def problems(self, at: str) -> Iterator[Problem]:
        """What is wrong with it."""
        yield from _need(self.host_path, f"{at}.hostPath")
        yield from _need(self.container_path, f"{at}.containerPath")


@dataclass(frozen=True, slots=True)
class CdiHook:
    """A program of the host at `path`, run in the container's life at `hook_name`.

    `args` begin with the program's own name; `timeout` is in seconds.
    """

    hook_name: str
    path: str
    args: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    timeout: int | None = None

    def json_form(self) -> dict[str, object]:
        """As it stands in a file."""
        return _present(
            hookName=self.hook_name, path=self.path, args=list(self.args), env=list(self.env), timeout=self.timeout
        )

    @classmethod
    def read(cls, json: JsonObject) -> "CdiHook":
        """From its form in a file. Raises Malformed."""
        hook = cls(
            json.text("hookName"), json.text("path"), json.texts("args"), json.texts("env"), json.number("timeout")
        )
        json.done()
        return hook

    def problems(self, at: str) -> Iterator[Problem]:
        """What is wrong with it."""
        if self.hook_name not in HOOK_NAMES:
            yield Problem(f"{at}.hookName", f"should be one of {', '.join(HOOK_NAMES)}, and is {self.hook_name!r}")
        if not self.path.startswith("/"):
            yield Problem(f"{at}.path", f"should begin with a slash, and is {self.path!r}")
        yield from _variables(self.env, f"{at}.env")
        yield from _fits(self.timeout, _SECONDS, f"{at}.timeout")


@dataclass(frozen=True, slots=True)
class CdiEdits:
    """All that is done to a container. `env` are `NAME=value`, `additional_gids` groups of the container's process."""

    env: tuple[str, ...] = ()
    device_nodes: tuple[CdiDeviceNode, ...] = ()
    mounts: tuple[CdiMount, ...] = ()
    hooks: tuple[CdiHook, ...] = ()
    additional_gids: tuple[int, ...] = ()

    def __add__(self, other: "CdiEdits") -> "CdiEdits":
        """These edits, then those."""
        return CdiEdits(
            self.env + other.env,
            self.device_nodes + other.device_nodes,
            self.mounts + other.mounts,
            self.hooks + other.hooks,
            self.additional_gids + other.additional_gids,
        )

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return self == CdiEdits()

    def json_form(self) -> dict[str, object]:
        """As it stands in a file."""
        return _present(
            env=list(self.env),
            deviceNodes=[node.json_form() for node in self.device_nodes],
            mounts=[mount.json_form() for mount in self.mounts],
            hooks=[hook.json_form() for hook in self.hooks],
            additionalGids=list(self.additional_gids),
        )

    @classmethod
    def read(cls, json: JsonObject) -> "CdiEdits":
        """From its form in a file. Raises Malformed."""
        edits = cls(
            env=json.texts("env"),
            device_nodes=tuple(CdiDeviceNode.read(item) for item in json.objects("deviceNodes")),
            mounts=tuple(CdiMount.read(item) for item in json.objects("mounts")),
            hooks=tuple(CdiHook.read(item) for item in json.objects("hooks")),
            additional_gids=json.numbers("additionalGids"),
        )
        json.done()
        return edits

    def problems(self, at: str) -> Iterator[Problem]:
        """What is wrong with them."""
        yield from _variables(self.env, f"{at}.env")
        parts: tuple[tuple[str, Iterable[CdiDeviceNode | CdiMount | CdiHook]], ...] = (
            ("deviceNodes", self.device_nodes),
            ("mounts", self.mounts),
            ("hooks", self.hooks),
        )
        for key, items in parts:
            for number, item in enumerate(items):
                yield from item.problems(f"{at}.{key}[{number}]")
        for number, gid in enumerate(self.additional_gids):
            yield from _fits(gid, _UINT32, f"{at}.additionalGids[{number}]")


def _present(**values: object) -> dict[str, object]:
    """The keys that have a value; zero is one."""
    return {key: value for key, value in values.items() if value is not None and value not in ("", [])}


def _need(text: str, at: str) -> Iterator[Problem]:
    if not text:
        yield Problem(at, "is needed")


def _fits(number: int | None, numbers: range, at: str) -> Iterator[Problem]:
    if number is not None and number not in numbers:
        yield Problem(at, f"should be from {numbers[0]} to {numbers[-1]}, and is {number}")


def _variables(texts: Sequence[str], at: str) -> Iterator[Problem]:
    for number, text in enumerate(texts):
        if text.find("=") < 1:
            yield Problem(f"{at}[{number}]", f"should be NAME=value, and is {text!r}")
