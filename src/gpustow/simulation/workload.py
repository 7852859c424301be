"""The workload file: which pods come to the node, and which of them go again.

    pods:
      - name: train            # with count 3: train-0, train-1, train-2
        namespace: ml          # "default" where not given
        count: 3
        limits:
          nvidia.com/gpu: 1    # one container that asks for this; or a list `containers`, each with its limits
    steps:                     # where not given: every pod is admitted, in the order above
      - admit: train           # all three copies
      - release: train-1       # one of them ends, and its devices are free again

This module decides what such a file may say and turns it into a flat list of actions on single pods, so that whatever
runs a workload needs no look-ups of its own. A file that is refused is refused whole, with the path of each fault.

Limits: a pod here is what decides about devices, namely names and limits. Images, requests, affinity and the like have
no effect on which devices a pod gets and have no place in the file; what a scheduler does happens before the node.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from gpustow.errors import Problem, WorkloadError
from gpustow.hardware.plaintext import parse_plain_yaml
from gpustow.simulation.kubelet.pod import Container, Pod

MOST_PODS = 100_000
"""More pods than this in one file are refused: a slip in `count` should not fill the memory."""


def _number(value: object) -> object:
    """Scalars come as text; only plain digits are a number, so that `1e3` and `0x10` are told rather than guessed."""
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10 else value


def _extended_resource(name: str) -> str:
    if "/" not in name:
        raise ValueError("this is no extended resource; those look like nvidia.com/gpu")
    return name


MOST_NAME = 253
"""How many characters a pod's name may have, the number of a copy included."""

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"

# As the API server has it: namespaces and containers are DNS-1123 labels, pods are DNS-1123 subdomains.
_Label = Annotated[str, StringConstraints(pattern=f"^{_LABEL}$", max_length=63)]
_Subdomain = Annotated[str, StringConstraints(pattern=rf"^{_LABEL}(\.{_LABEL})*$", max_length=MOST_NAME)]
_Count = Annotated[int, BeforeValidator(_number), Field(strict=True, ge=1)]
_Amount = Annotated[int, BeforeValidator(_number), Field(strict=True, ge=0, le=1_000_000)]
_Limits = dict[Annotated[str, AfterValidator(_extended_resource)], _Amount]


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that happens to one pod: it is admitted, or it ends and is released."""

    kind: Literal["admit", "release"]
    pod: Pod


@dataclass(frozen=True, slots=True)
class Workload:
    """A workload file, read and resolved. `source` is the file's name, for messages.

    `warnings` are about what it may say, but can hardly mean.
    """

    source: str
    actions: tuple[Action, ...]
    warnings: tuple[str, ...] = ()


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class _ContainerModel(_Model):
    name: _Label = "main"
    limits: _Limits


class _InitContainerModel(_ContainerModel):
    restart_policy: Literal["Always"] | None = Field(default=None, alias="restartPolicy")


class _PodModel(_Model):
    name: _Subdomain
    namespace: _Label = "default"
    count: _Count | None = None
    limits: _Limits | None = None
    containers: list[_ContainerModel] = []
    init_containers: list[_InitContainerModel] = Field(default=[], alias="initContainers")

    @model_validator(mode="after")
    def _one_way_to_say_it(self) -> "_PodModel":
        if (self.limits is None) == (not self.containers):
            raise ValueError("says either `limits`, for one container, or a list `containers`")
        names = [container.name for container in (*self.init_containers, *self.containers)]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"has two containers named {twice[0]!r}; give each a name of its own")
        return self

    @model_validator(mode="after")
    def _copies_with_names_not_too_long(self) -> "_PodModel":
        longest = f"{self.name}-{self.count - 1}" if self.count else self.name
        if len(longest) > MOST_NAME:
            raise ValueError(
                f"has copies with names of {len(longest)} characters, such as {longest!r}; a pod's may have {MOST_NAME}"
            )
        return self

    def copies(self) -> tuple[Pod, ...]:
        """The pods that this entry stands for: itself, or with `count` that many, numbered from 0."""
        names = [self.name] if self.count is None else [f"{self.name}-{number}" for number in range(self.count)]
        apps = self.containers or [_ContainerModel(limits=self.limits or {})]
        containers = tuple(Container(model.name, model.limits) for model in apps)
        init_containers = tuple(
            Container(model.name, model.limits, restartable=model.restart_policy is not None)
            for model in self.init_containers
        )
        return tuple(Pod(name, self.namespace, containers, init_containers) for name in names)


class _StepModel(_Model):
    admit: str | list[str] | None = None
    release: str | list[str] | None = None

    @model_validator(mode="after")
    def _one_thing(self) -> "_StepModel":
        if (self.admit is None) == (self.release is None):
            raise ValueError("says either `admit` or `release`, with the name of a pod")
        return self

    def words(self) -> tuple[Literal["admit", "release"], list[str]]:
        """What happens, and to which names."""
        kind: Literal["admit", "release"] = "release" if self.admit is None else "admit"
        named = self.release if self.admit is None else self.admit
        return kind, [named] if isinstance(named, str) else list(named or [])


class _WorkloadModel(_Model):
    pods: Annotated[list[_PodModel], Field(min_length=1)]
    steps: list[_StepModel] | None = None

    @model_validator(mode="after")
    def _not_too_many(self) -> "_WorkloadModel":
        total = sum(pod.count or 1 for pod in self.pods)
        if total > MOST_PODS:
            raise ValueError(f"{total} pods are more than the {MOST_PODS} that a workload may have")
        return self


def load_workload(path: str) -> Workload:
    """Reads a workload file.

    Raises:
        WorkloadError: the file cannot be read or says something that cannot be run; it names each path and value.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not a text file"
        raise WorkloadError(path, [Problem("", f"it cannot be read: {reason}")]) from error
    return parse_workload(text, path)


def parse_workload(text: str, source: str) -> Workload:
    """Turns the text of a workload file into actions; `source` names it in messages. Raises as `load_workload`."""
    try:
        document = parse_plain_yaml(text)
    except ValueError as error:
        raise WorkloadError(source, [Problem("", f"it is not YAML: {error}")]) from error
    try:
        model = _WorkloadModel.model_validate(document)
    except ValidationError as error:
        problems = [_problem(detail) for detail in error.errors()]
        raise WorkloadError(source, [*problems, *_lost_names(document)]) from error
    return Workload(source, _Resolver(model, source).actions(), tuple(_idle_limits(model, source)))


def _idle_limits(model: _WorkloadModel, source: str) -> Iterator[str]:
    """A warning for each limit of 0, which Kubernetes takes as if it were not there."""
    for number, entry in enumerate(model.pods):
        places = [
            (".limits", entry.limits or {}),
            *((f".initContainers[{at}].limits", one.limits) for at, one in enumerate(entry.init_containers)),
            *((f".containers[{at}].limits", one.limits) for at, one in enumerate(entry.containers)),
        ]
        for path, limits in places:
            for name, amount in limits.items():
                if not amount:
                    yield f"{source}: pods[{number}]{path}.{name}: 0 asks for nothing"


def _lost_names(document: object) -> Iterator[Problem]:
    """The steps that name no pod, of a file that has other faults: as far as its names can be told."""
    pods, steps = (document.get(key) for key in ("pods", "steps")) if isinstance(document, dict) else (None, None)
    entries = [entry for entry in pods if isinstance(entry, dict)] if isinstance(pods, list) else []
    # An entry whose copies cannot be told may have any.
    known = {name: entry.get("count") for entry in entries if isinstance(name := entry.get("name"), str)}
    for number, step in enumerate(steps if isinstance(steps, list) else []):
        for kind, named in step.items() if isinstance(step, dict) else ():
            for name in [named] if isinstance(named, str) else named if isinstance(named, list) else []:
                short = name.rpartition("/")[2] if isinstance(name, str) else None
                if kind in {"admit", "release"} and short is not None and not _may_mean(short, known):
                    yield Problem(f"steps[{number}].{kind}", _no_pod(name, known))


def _may_mean(name: str, known: Mapping[str, object]) -> bool:
    base, _, copy = name.rpartition("-")
    return name in known or (copy.isdigit() and known.get(base) is not None)


def _no_pod(name: str, known: Iterable[str]) -> str:
    names = sorted(known)
    more = ", ..." if len(names) > _MOST_NAMES else ""
    return f"there is no pod {name!r}; there are: {', '.join(names[:_MOST_NAMES])}{more}"


_MOST_NAMES = 10

_PLAIN_WORDS = {
    "extra_forbidden": "there is no such key",
    "missing": "this key has to be given",
    "model_type": "this has to be a mapping of keys to values",
    "dict_type": "this has to be a mapping of keys to values",
    "list_type": "this has to be a list",
    "string_type": "this has to be a name",
    "int_type": "this has to be a whole number",
    "too_short": "this has to have at least one entry",
    "string_pattern_mismatch": "this is no name that Kubernetes takes, such as train-1",
    "string_too_long": "this has to be at most {max_length} characters",
    "greater_than_equal": "this has to be at least {ge}",
    "less_than_equal": "this has to be at most {le}",
    "literal_error": "this has to be {expected}",
}
"""What is wrong, by pydantic's name for it; in braces what belongs to the rule."""


def _problem(detail: Mapping[str, Any]) -> Problem:
    """A fault as pydantic tells it, with the path written as in YAML and the value that is wrong."""
    path = ""
    for part in detail["loc"]:
        if part != "[key]":
            path += f"[{part}]" if isinstance(part, int) else f".{part}"
    message = str(detail["msg"]).removeprefix("Value error, ")
    message = _PLAIN_WORDS.get(detail["type"], message).format_map(detail.get("ctx", {}))
    value = detail["input"]
    if isinstance(value, str | int | float | bool | None) and detail["type"] not in {"extra_forbidden", "missing"}:
        message += f" (found {value!r})"
    return Problem(path.removeprefix("."), message)


class _Resolver:
    """Names in steps become pods; what cannot happen in that order is a problem."""

    def __init__(self, model: _WorkloadModel, source: str) -> None:
        self._model = model
        self._source = source
        self._problems: list[Problem] = []
        self._named: dict[str, tuple[Pod, ...]] = {}
        self._present: set[str] = set()
        self._pods = tuple(self._expand())

    def actions(self) -> tuple[Action, ...]:
        if self._model.steps is None:
            actions = [Action("admit", pod) for pod in self._pods]
        else:
            actions = [action for number, step in enumerate(self._model.steps) for action in self._step(number, step)]
        if self._problems:
            raise WorkloadError(self._source, self._problems)
        return tuple(actions)

    def _expand(self) -> Iterator[Pod]:
        for number, entry in enumerate(self._model.pods):
            copies = entry.copies()
            named = {copy.key: (copy,) for copy in copies} | {f"{entry.namespace}/{entry.name}": copies}
            for name in sorted(named.keys() & self._named.keys()):
                self._problems.append(Problem(f"pods[{number}].name", f"there are two pods named {name}"))
            self._named |= named
            yield from copies

    def _step(self, number: int, step: _StepModel) -> Iterator[Action]:
        kind, names = step.words()
        for name in names:
            for pod in self._find(name, f"steps[{number}].{kind}"):
                if (pod.key in self._present) == (kind == "admit"):
                    wrong = "is on the node already" if kind == "admit" else "is not on the node at this step"
                    self._problems.append(Problem(f"steps[{number}].{kind}", f"pod {pod.key} {wrong}"))
                    continue
                (self._present.add if kind == "admit" else self._present.discard)(pod.key)
                yield Action(kind, pod)

    def _find(self, name: str, path: str) -> Sequence[Pod]:
        full = name if "/" in name else f"default/{name}"
        found = self._named.get(full)
        if found is None and "/" not in name:
            found = self._elsewhere(name)
        if found is None:
            self._problems.append(Problem(path, _no_pod(name, self._named)))
        return found or ()

    def _elsewhere(self, name: str) -> tuple[Pod, ...] | None:
        """A name without namespace also means a pod of another namespace, where only one has it."""
        matches = [full for full in self._named if full.partition("/")[2] == name]
        return self._named[matches[0]] if len(matches) == 1 else None
