"""The tables in docs/reliability.md that tests make: what comes of calls that fail.

To write them anew after a change that is meant: GPUSTOW_WRITE_DOCS=1 pytest, with the test that makes the table.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs" / "reliability.md"
END = "<!-- end of table -->\n"

CODES = {
    "not supported": 3,
    "not found": 6,
    "no permission": 4,
    "GPU is lost": 15,
    "unknown error": 999,
    "not initialised": 1,
}
"""One return code of each class."""

Row = tuple[str, ...]


def gathered(call: str, results: Mapping[str, Row]) -> list[Row]:
    """One row for all ways to fail that have the same result."""
    ways: dict[Row, list[str]] = {}
    for way, result in results.items():
        ways.setdefault(result, []).append(way)
    if len(ways) == 1:
        return [(call, "any", *next(iter(ways)))]
    most = max(ways, key=lambda result: len(ways[result]))
    rows = [(call, ", ".join(of), *result) for result, of in ways.items() if result != most]
    return [*rows, (call, "any other", *most)]


def written(head: Row, rows: Sequence[Row]) -> str:
    """The table in Markdown."""
    lines = ["| " + " | ".join(row) + " |" for row in (head, *rows)]
    lines.insert(1, "|" + "---|" * len(head))
    return "\n".join(lines) + "\n"


def compare_with_docs(name: str, table: str) -> None:
    """Fails if the table of that name in the docs is another one."""
    begin = f"<!-- table: {name} -->\n"
    text = DOCS.read_text(encoding="utf-8")
    head, _, rest = text.partition(begin)
    committed, _, tail = rest.partition(END)
    if os.environ.get("GPUSTOW_WRITE_DOCS"):
        DOCS.write_text(f"{head}{begin}{table}{END}{tail}", encoding="utf-8")
        committed = table
    assert committed == table
