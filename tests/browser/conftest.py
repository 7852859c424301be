"""One browser for all tests of this folder; without one on the machine they are skipped, and say so."""

from collections.abc import Iterator

import pytest

from tests.browser.chromium import PROGRAMS, Page, browsing, program


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    binary = program()
    if binary is None:
        pytest.skip(f"no browser: none of {', '.join(PROGRAMS)} is installed (Debian's package is chromium)")
    with browsing(binary, tmp_path_factory.mktemp("browser")) as page:
        yield page


@pytest.fixture
def page(browser: Page) -> Page:
    """The browser's page, as a fresh reader has it: a light screen of 1200 by 900."""
    browser.scripts(on=True)
    browser.screen(1200, 900)
    browser.complaints.clear()
    browser.requests.clear()
    return browser
