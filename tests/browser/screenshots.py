"""The pictures of the status page in docs/.

    python -m tests.browser.screenshots

writes them anew: light, dark, and as wide as a phone. What they show is held by the tests beside this, by structure.
"""

import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from gpustow.telemetry.facts import Ailment, Check, Facts
from tests.browser.chromium import browsing, program
from tests.browser.served import served
from tests.telemetry.samples import NOW, facts, hold, unhealthy

DOCS = Path(__file__).parents[2] / "docs"

PICTURES = {
    "status-page-light.png": (1100, 960, False),
    "status-page-dark.png": (1100, 960, True),
    "status-page-phone.png": (375, 820, False),
}
"""Width, height and darkness by file."""


def shown() -> Facts:
    """A node at work, one GPU of which is lost."""
    known = hold(
        hold(hold(facts(shared_devices_allocation_policy="packed"), 0, 1, 2, pod="train-0"), 3, 5, pod="serve-7c9f"),
        6,
        pod="notebook",
    )
    assert known.node is not None
    lost = known.node.gpus[3]
    ailment = Ailment("XID 79: GPU no longer answers on PCIe", NOW - 754)
    checks = (Check("configuration"), Check("devices", "unhealthy: GPU 3 (XID 79)"))
    known = unhealthy(known, *range(15, 20))
    ailments = dict.fromkeys([lost.uuid, *(device.uuid for device in lost.mig_devices)], ailment)
    return replace(known, checks=checks, ailments=ailments)


def main() -> None:
    binary = program()
    if binary is None:
        sys.exit("there is no browser on this machine")
    with (
        served(shown()) as at,
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory,
        browsing(binary, Path(directory)) as page,
    ):
        at.decide(1)
        at.decide(3)
        for name, (width, height, dark) in PICTURES.items():
            page.screen(width, height, dark=dark)
            page.open(at.address)
            page.until("document.readyState === 'complete' && document.querySelector('.gpu') !== null")
            (DOCS / name).write_bytes(page.picture())


if __name__ == "__main__":
    main()
