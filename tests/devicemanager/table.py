"""Which scenarios have passed on which kubelet, collected while the tests run."""

from collections.abc import Sequence

import pytest

from tests.devicemanager.backend import Backend
from tests.devicemanager.program import PROGRAMS

_WRITTEN = {
    "kubelets": "kubelet's",
    "gpu": "GPU",
    "gpus": "GPUs",
    "mig": "MIG",
    "numa": "NUMA",
    "podresources": "PodResources",
}
COLUMNS = (Backend(embedded=True), *map(Backend, PROGRAMS))


class Table:
    """A row a test function, a column a kubelet. A scenario is a test that runs on every kubelet."""

    KEY = pytest.StashKey["Table"]()

    def __init__(self) -> None:
        self._outcomes: dict[tuple[str, str], dict[Backend, set[str]]] = {}
        self._expected: set[tuple[tuple[str, str], Backend]] = set()

    def expect(self, items: Sequence[pytest.Item]) -> None:
        """These tests are going to run."""
        for item in items:
            if (found := _place(item)) is not None:
                self._expected.add(found)

    def note(self, item: pytest.Item, report: pytest.TestReport) -> None:
        """A phase of a test has ended."""
        if (found := _place(item)) is not None and (report.when == "call" or report.outcome != "passed"):
            row, backend = found
            self._outcomes.setdefault(row, {}).setdefault(backend, set()).add(report.outcome)

    def missing(self) -> str:
        """What a complete table lacks; nothing if it is complete."""
        rows = {row for row, _ in self._expected}
        lacking = {backend for row in rows for backend in COLUMNS if not self._outcomes.get(row, {}).get(backend)}
        return ", ".join(sorted(map(str, lacking)))

    def lines(self) -> list[str]:
        """The table, scenarios of one file together."""
        heads = ["about", "scenario", *(backend.title for backend in COLUMNS)]
        rows = [
            [*row, *(_cell(self._outcomes[row].get(backend, set())) for backend in COLUMNS)]
            for row in sorted(self._outcomes)
        ]
        return [f"| {' | '.join(cells)} |" for cells in (heads, ["---"] * len(heads), *rows)]


def _place(item: pytest.Item) -> tuple[tuple[str, str], Backend] | None:
    """The row and column of a test; None if it is no scenario."""
    if not isinstance(item, pytest.Function) or not hasattr(item, "callspec"):
        return None
    backend = item.callspec.params.get("backend")
    if not isinstance(backend, Backend) or item.path.stem == "test_demonstration":
        return None
    return (_words(item.path.stem), _words(item.originalname)), backend


def _words(name: str) -> str:
    """What the name of a test or of its file says."""
    words = name.removeprefix("test_").split("_")
    return " ".join(_WRITTEN.get(word, word) for word in words)


def _cell(outcomes: set[str]) -> str:
    return "passes" if outcomes == {"passed"} else " and ".join(sorted(outcomes)) or "not run"
