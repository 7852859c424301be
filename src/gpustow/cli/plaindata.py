"""Plain data on its way to a program: as JSON, or as YAML with the same keys in the same order."""

import json
from typing import Any

from gpustow.cli.options import Output


def written(data: Any, output: Output) -> str:
    """The data in the form that is asked for, which is not the table."""
    text = json.dumps(data, indent=2) + "\n"
    if output is not Output.YAML:
        return text
    import yaml  # noqa: PLC0415 - only here

    # By way of JSON, so that tuples and words of enumerations are what they are there.
    return yaml.safe_dump(json.loads(text), sort_keys=False, width=1000, allow_unicode=True)
