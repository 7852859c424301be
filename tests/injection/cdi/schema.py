"""The JSON schema of CDI, for the tests of everything that is written."""

import json
from functools import cache
from pathlib import Path

from jsonschema import Draft202012Validator


@cache
def _validator() -> Draft202012Validator:
    schema = json.loads(Path(__file__).with_name("cdi.schema.json").read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def faults(text: str) -> list[str]:
    """What the schema has against this text."""
    return [f"{error.json_path}: {error.message}" for error in _validator().iter_errors(json.loads(text))]
