"""What README and pages list, against what there is."""

import re
from pathlib import Path

import gpustow
from gpustow import errors
from gpustow.errors import GpustowError
from gpustow.placement.policy import PolicyName

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PACKAGE = Path(gpustow.__file__).parent


def test_the_readme_leads_to_every_page_and_to_none_that_is_not_there() -> None:
    _, _, read_on = README.partition("## Read on")
    pages = {f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")}
    listed = re.findall(r"^\* \[(\S+)\]\((\S+)\)", read_on, re.MULTILINE)
    assert all(text == target for text, target in listed)
    assert {target for _, target in listed} == pages | {"CHANGELOG.md"}


def test_every_exit_code_of_an_error_is_in_the_readme() -> None:
    ours = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, GpustowError)]
    listed = {int(code) for code in re.findall(r"^\| (\d) \|", README, re.MULTILINE)}
    assert listed == {kind.exit_code for kind in ours} | {0}


def test_the_architecture_names_every_room() -> None:
    rooms = {str(path.parent.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE}
    _, _, table = ARCHITECTURE.partition("## Rooms")
    listed = set(re.findall(r"^\| `([a-z/]+)` \|", table.partition("\n## ")[0], re.MULTILINE))
    assert listed == rooms


def test_the_architecture_names_every_policy() -> None:
    [row] = re.findall(r"^\| policy \|.*$", ARCHITECTURE, re.MULTILINE)
    assert set(re.findall(r"`([a-z-]+)`", row)) == {policy.value for policy in PolicyName}
