"""docs/embedded-kubelet.md: its example runs, and its tables are complete."""

import asyncio
import dataclasses
import os
import re
import sys
from pathlib import Path

import pytest

import gpustow.simulation.kubelet
from gpustow.simulation.kubelet import Behaviour, EmbeddedKubelet

PAGE = Path(__file__).parents[3] / "docs" / "embedded-kubelet.md"


def example() -> str:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return str(code)


async def test_the_example_runs() -> None:
    here = str(Path(sys.executable).parent)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        example(),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PATH": f"{here}{os.pathsep}{os.environ['PATH']}", "TMPDIR": "/tmp"},  # noqa: S108 - sockets need a short path
    )
    output, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    assert re.match(r"\('GPU-.+', 'GPU-.+'\) \{'NVIDIA_VISIBLE_DEVICES': 'GPU-.+,GPU-.+'\}\n", output.decode())


def test_every_switch_has_a_row() -> None:
    versions = PAGE.read_text(encoding="utf-8").partition("## Versions")[2]
    rows = re.findall(r"^\| `(\w+)` \|", versions, re.MULTILINE)
    assert set(rows) == {field.name for field in dataclasses.fields(Behaviour)}


@pytest.mark.parametrize("name", gpustow.simulation.kubelet.__all__)
def test_every_public_name_is_on_the_page(name: str) -> None:
    assert re.search(rf"`{name}\b", PAGE.read_text(encoding="utf-8"))


def test_every_public_member_of_the_kubelet_is_on_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    members = {name for name in vars(EmbeddedKubelet) if not name.startswith("_")} - {"manager"}
    assert [name for name in sorted(members) if not re.search(rf"`[^`]*\b{name}\b", text)] == []
