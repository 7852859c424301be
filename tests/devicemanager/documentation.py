"""Parts of the documentation that tests write: between two comments, and compared with what the tests have seen.

With GPUSTOW_WRITE_DOCS=1 in the environment a test writes its part anew.
"""

import os
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def check_part(page: str, part: str, lines: list[str]) -> None:
    """The part of the page is these lines; raises AssertionError if it is not."""
    path = DOCS / page
    begin, end = f"<!-- {part} -->\n", f"<!-- end of {part} -->"
    text = path.read_text(encoding="utf-8")
    before, found, rest = text.partition(begin)
    assert found, f"{path} has no part {part!r}"
    _, found, after = rest.partition(end)
    assert found, f"{path}: part {part!r} does not end"
    wanted = before + begin + "".join(f"{line}\n" for line in lines) + end + after
    if os.environ.get("GPUSTOW_WRITE_DOCS"):
        path.write_text(wanted, encoding="utf-8")
    assert wanted == text or os.environ.get("GPUSTOW_WRITE_DOCS"), (
        f"part {part!r} of {path} is not what was seen; GPUSTOW_WRITE_DOCS=1 writes it anew"
    )
