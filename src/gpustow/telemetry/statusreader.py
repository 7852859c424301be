"""The status of a node, read back from JSON: the other end of `plainjson`.

A newer daemon may tell more than is known here, so keys that are not known are left aside; one that is missing is a
fault. `read_status` is for programs of ours that ask a daemon: the daemon itself only writes.
"""

from dataclasses import is_dataclass
from typing import Any, get_args, get_type_hints

from pydantic import TypeAdapter, ValidationError

from gpustow.telemetry.nodestatus import NodeStatus
from gpustow.telemetry.plainjson import camel_case


def read_status(data: Any) -> NodeStatus:
    """The status that plain data says. Raises ValueError that names the first place that is wrong."""
    try:
        return TypeAdapter(NodeStatus).validate_python(_with_field_names(NodeStatus, data))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(step) for step in first["loc"]) or "the whole"
        raise ValueError(f"{place}: {first['msg']}") from error


def _with_field_names(kind: Any, data: Any) -> Any:
    """The data with the names of fields wherever `kind` has a dataclass; what does not fit is left to be refused."""
    if _holds_fields(kind):
        if not isinstance(data, dict):
            return data
        present = {name: (hint, camel_case(name)) for name, hint in get_type_hints(kind).items()}
        return {name: _with_field_names(hint, data[key]) for name, (hint, key) in present.items() if key in data}
    inner = next((each for each in get_args(kind) if _holds_fields(each)), None)
    if inner is None:
        return data
    return (
        [_with_field_names(inner, each) for each in data] if isinstance(data, list) else _with_field_names(inner, data)
    )


def _holds_fields(kind: Any) -> bool:
    return isinstance(kind, type) and is_dataclass(kind)
