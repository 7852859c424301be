"""The JSON schema of the status of a node, `node-status.schema.json`.

    python -m gpustow.telemetry.statusschema > src/gpustow/telemetry/node-status.schema.json

writes it anew from the values. Keys that it does not name are allowed: a newer daemon may tell more.
"""

import json
import sys
from typing import Any

from pydantic import TypeAdapter

from gpustow.telemetry.nodestatus import NodeStatus
from gpustow.telemetry.plainjson import camel_case

_TITLE = "Status of a node, as gpustow tells it at /api/v1/node"


def status_schema() -> dict[str, Any]:
    """The schema."""
    schema = TypeAdapter(NodeStatus).json_schema()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **_in_camel_case(schema),
        "$defs": {name: _in_camel_case(value) for name, value in schema["$defs"].items()},
        "title": _TITLE,
    }


def _in_camel_case(schema: dict[str, Any]) -> dict[str, Any]:
    described = {key: " ".join(value.split()) if key == "description" else value for key, value in schema.items()}
    return {
        **described,
        "properties": {
            camel_case(name): {key: value for key, value in below.items() if key != "title"}
            for name, below in schema["properties"].items()
        },
        "required": [camel_case(name) for name in schema["required"]],
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(status_schema(), indent=2) + "\n")
