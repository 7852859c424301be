"""The table of scenarios in docs/reliability.md is what this run has seen; GPUSTOW_WRITE_DOCS=1 writes it anew.

The test comes last, and only a run of all scenarios on all kubelets says anything: `make test-devicemanager`.
"""

import pytest

from tests.devicemanager.documentation import check_part
from tests.devicemanager.table import Table


def test_the_documentation_shows_each_scenario_on_each_kubelet(request: pytest.FixtureRequest) -> None:
    table = request.config.stash[Table.KEY]
    if missing := table.missing():
        pytest.skip(f"not all scenarios have run on all kubelets: {missing}")
    check_part("reliability.md", "scenarios", table.lines())
