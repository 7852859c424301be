"""Page, command, metrics and JSON of one daemon, whose pods were admitted by a kubelet: they tell the same."""

import asyncio
import json
from pathlib import Path
from typing import Any

from tests.browser.chromium import Page
from tests.cli.commands import run
from tests.telemetry.daemon import daemon, samples, value

READ = """({
  resources: [...document.querySelectorAll('section:first-child tbody tr')]
    .map(row => [...row.children].map(cell => cell.textContent)),
  cells: [...document.querySelectorAll('.gpu')]
    .map(gpu => [...gpu.querySelectorAll('.cell')].map(cell => cell.getAttribute('aria-label'))),
  free: document.querySelector('section:first-child > p').textContent,
  ready: document.querySelector('#readiness').textContent,
  sentences: [...document.querySelectorAll('.decisions p:last-child')].map(each => each.textContent),
})"""


def read_page(page: Page, port: int) -> Any:
    page.open(f"http://127.0.0.1:{port}/")
    page.until("document.readyState === 'complete' && document.querySelector('.gpu') !== null")
    return page.evaluate(READ)


async def test_page_command_metrics_and_json_tell_the_same_numbers(tmp_path: Path, page: Page) -> None:
    async with daemon(
        tmp_path, "hgx-h100-mig", mig_strategy="mixed", shared_devices_allocation_policy="packed"
    ) as running:
        await running.ready()
        names = [resource["name"] for resource in (await running.status())["resources"]]
        for number, name in enumerate((names[0], names[0], names[0], names[-1])):
            await running.admit(f"pod-{number}", name, 1)
        await running.supervisor.read_usage()
        await running.until(lambda: running.supervisor.not_ready is None)
        status, scrape = await running.status(), samples(await running.metrics())
        seen = await asyncio.to_thread(read_page, page, running.port)
        address = f"--address=127.0.0.1:{running.port}"
        told = (await asyncio.to_thread(run, "gpustow", "status", address)).out
        as_json = json.loads((await asyncio.to_thread(run, "gpustow", "status", address, "-o", "json")).out)

    assert as_json | {"at": 0, "decisions": []} == status | {"at": 0, "decisions": []}
    rows = {row[0]: row[1:] for row in seen["resources"]}
    lines = {line.split()[0]: line.split()[1:] for line in told.splitlines() if line.startswith("nvidia.com/")}
    assert set(rows) == set(lines) == set(names)
    for resource in status["resources"]:
        name = resource["name"]
        numbers = [resource[key] for key in ("devices", "used", "free", "unhealthy")]
        assert [int(text) for text in rows[name][-4:]] == [int(text) for text in lines[name][-4:]] == numbers
        assert rows[name][0] == lines[name][0] == resource["policy"] == "packed"
        assert value(scrape, "gpustow_devices", resource=name, health="healthy") == resource["healthy"]
        assert value(scrape, "gpustow_devices_used", resource=name) == resource["used"]
    free = f"{int(value(scrape, 'gpustow_gpus_wholly_free'))} of 8 GPUs wholly free"
    assert seen["free"] == free
    assert free in told.splitlines()
    assert len(status["whollyFreeGpus"]) == int(free.partition(" ")[0])
    assert seen["ready"] == "ready"
    assert told.startswith("hgx-h100-mig  ready\n")

    held = {
        f"{device['profile']} ({device['index']}): in use by default/{slot['holders'][0]['pod']} (main)"
        for gpu in status["gpus"]
        for device in gpu["devices"]
        for slot in device["held"]
    }
    labels = [label for gpu in seen["cells"] for label in gpu]
    assert {label for label in labels if ": in use" in label} == held
    assert len(held) == 4
    assert len(labels) == sum(resource["devices"] for resource in status["resources"])
    assert all(f"default/pod-{number}" in told for number in range(4))

    sentences = [decision["sentence"] for decision in status["decisions"]]
    assert seen["sentences"] == sentences
    assert len(sentences) == 4
    unwrapped = " ".join(told.split())
    assert all(sentence in unwrapped for sentence in sentences)
