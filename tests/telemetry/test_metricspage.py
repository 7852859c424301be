from pathlib import Path

from gpustow.telemetry.metricspage import metrics_page

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"


def test_the_page_is_that_of_the_catalogue() -> None:
    assert PAGE.read_text(encoding="utf-8") == metrics_page(), "run `python -m gpustow.telemetry.metricspage`"
