"""The status page in a real browser: what is drawn, by structure."""

import time
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from gpustow.health.condition import Fitness
from gpustow.telemetry.facts import Ailment, Check, Facts
from gpustow.telemetry.picture import node_status
from tests.browser.chromium import Page
from tests.browser.served import Served, served
from tests.telemetry.samples import GPU, NOW, facts, hold, unhealthy

MIG = hold(hold(facts(), 0, 3, pod="train"), 6, pod="serve")
CELLS = "[...document.querySelectorAll('.gpu')].map(g => [...g.querySelectorAll('.cell')].map(c => c.dataset.state))"
WIDE = "document.documentElement.scrollWidth > document.documentElement.clientWidth"


def opened(page: Page, at: Served, gpus: int) -> None:
    page.open(at.address)
    page.until(f"document.readyState === 'complete' && document.querySelectorAll('.gpu').length === {gpus}")


def texts(page: Page, selector: str) -> list[str]:
    found: list[str] = page.evaluate(f"[...document.querySelectorAll({selector!r})].map(e => e.textContent)")
    return found


def names(page: Page) -> list[str]:
    found: list[str] = page.evaluate("[...document.querySelectorAll('.cell')].map(e => e.getAttribute('aria-label'))")
    return found


def focused(page: Page) -> Any:
    return page.evaluate(
        "(e => e.getAttribute('aria-label') || e.textContent)(document.activeElement || document.body)"
    )


def sick() -> Facts:
    assert MIG.node is not None
    gpu = MIG.node.gpus[1]
    ailments = {
        gpu.uuid: Ailment("XID 79: fallen off the bus", NOW - 4000),
        gpu.mig_devices[1].uuid: Ailment("XID 79: fallen off the bus", NOW - 4000),
        gpu.mig_devices[2].uuid: Ailment("XID 94: contained", NOW - 30, Fitness.RECOVERING),
    }
    return replace(MIG, ailments=ailments, checks=(Check("node"), Check("devices", "unhealthy: GPU 1")))


def test_each_gpu_is_a_box_and_each_mig_device_a_cell_with_its_pod(page: Page) -> None:
    with served(MIG) as at:
        opened(page, at, 4)
        assert page.evaluate(CELLS) == [
            ["in use" if each.used else "free" for each in sorted(gpu.devices, key=lambda device: device.start or 0)]
            for gpu in node_status(MIG).gpus
        ]
        assert texts(page, ".gpu h3") == [f"GPU {index}" for index in range(4)]
        assert texts(page, ".gpu .numa") == ["NUMA 0", "NUMA 0", "NUMA 1", "NUMA 1"]
        assert texts(page, ".gpu .health") == ["healthy"] * 4
        assert "1g.5gb (0:0): in use by default/train (main)" in names(page)
        assert sum("default/serve" in name for name in names(page)) == 1
        assert texts(page, "h1") == ["a100-4-mig-5"]
        assert texts(page, "#readiness") == ["ready"]
        assert "2 of 4 GPUs wholly free" in texts(page, "#main p")
        assert all(text.startswith("Links: ") and "NV" in text for text in texts(page, ".links"))
        assert page.complaints == []
        assert {request.removeprefix(at.address) for request in page.requests} == {"", "api/v1/node"}


def test_health_is_told_with_reason_and_since_when(page: Page) -> None:
    with served(sick()) as at:
        opened(page, at, 4)
        assert texts(page, "#readiness") == ["not ready"]
        assert texts(page, "#problems li") == ["devices: unhealthy: GPU 1"]
        _, gpu, part, *_ = texts(page, ".gpu .health")
        assert gpu.startswith("unhealthy for 1h06m, since ")
        assert gpu.endswith(": XID 79: fallen off the bus")
        assert len(texts(page, ".gpu .health")) == 5
        assert part.startswith("1:2 1g.5gb recovering for 30s, since ")
        assert page.evaluate("document.querySelectorAll('.gpu.sick').length") == 1
        assert page.evaluate("document.title") == "a100-4-mig-5: not ready"


def test_replicas_are_cells_and_those_nobody_can_get_look_different(page: Page) -> None:
    with served(unhealthy(hold(facts("t4-4", replicas=4), 2), 4, 5, 6, 7)) as at:
        opened(page, at, 4)
        assert page.evaluate(CELLS)[:2] == [["free", "free", "in use", "free"], ["unhealthy"] * 4]
        looks = page.evaluate(
            "['free', 'in use', 'unhealthy'].map(s => document.querySelector(`[data-state='${s}']`))"
            ".map(c => getComputedStyle(c)).map(s => s.backgroundColor + s.borderTopStyle)"
        )
        assert len(set(looks)) == 3
        assert texts(page, "[data-state=unhealthy] span:first-child") == ["unhealthy"] * 4


def test_eight_times_a_hundred_replicas_are_bars_with_their_counts(page: Page) -> None:
    known = facts("hgx-h100", replicas=100)
    for pod in range(12):
        known = hold(known, *range(pod * 3, pod * 3 + 3), pod=f"pod-{pod}")
    with served(unhealthy(known, *range(100, 150))) as at:
        opened(page, at, 8)
        assert page.evaluate("document.querySelectorAll('.cell').length") == 0
        assert texts(page, ".count")[:3] == [
            f"{GPU}: 36 of 100 replicas in use",
            f"{GPU}: 0 of 100 replicas in use, 50 unhealthy",
            f"{GPU}: 0 of 100 replicas in use",
        ]
        assert len(texts(page, ".gpu:first-child .holders li")) == 9
        assert texts(page, ".holders li")[-1] == "4 more pods \u00d7 12"
        used, bar = page.evaluate(
            "(b => [[...b.querySelectorAll('.used')].reduce((s, e) => s + e.offsetWidth, 0), b.clientWidth])"
            "(document.querySelector('.bar'))"
        )
        assert abs(used / bar - 0.36) < 0.02


def test_dark_mode_has_colours_of_its_own_and_both_can_be_read(page: Page) -> None:
    with served(sick()) as at:
        opened(page, at, 4)
        seen = []
        for dark in (False, True):
            page.screen(1200, 900, dark=dark)
            pairs = page.evaluate(
                "['body', '.cell.used', '.cell:not(.used)', '.health.bad', '.health.good', '.health.warn', '.soft']"
                ".map(s => document.querySelector(s)).map(e => { let b = e; const c = getComputedStyle(e).color;"
                " while (getComputedStyle(b).backgroundColor === 'rgba(0, 0, 0, 0)' && b.parentElement)"
                " b = b.parentElement; return [c, getComputedStyle(b).backgroundColor]; })"
            )
            assert [pair for pair in pairs if _contrast(*map(_rgb, pair)) < 4.5] == []
            seen.append(pairs)
        assert all(light != dark for light, dark in zip(*seen, strict=True))


def _rgb(colour: str) -> tuple[float, ...]:
    return tuple(float(part) for part in colour.partition("(")[2].rstrip(")").split(",")[:3])


def _contrast(one: Iterable[float], other: Iterable[float]) -> float:
    """The contrast ratio of two colours by WCAG 2."""

    def luminance(colour: Iterable[float]) -> float:
        parts = [part / 255 for part in colour]
        red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_nothing_is_wider_than_a_phone(page: Page) -> None:
    for known, gpus in ((sick(), 4), (hold(facts("hgx-h100", replicas=100), 1, pod="x" * 63), 8), (facts("dgx-2"), 16)):
        with served(known) as at:
            page.screen(320, 640)
            opened(page, at, gpus)
            assert not page.evaluate(WIDE)
            assert (
                page.evaluate("Math.min(...[...document.querySelectorAll('.cell, .bar')].map(e => e.offsetHeight))")
                >= 24
            )


def test_the_keyboard_reaches_everything_in_order(page: Page) -> None:
    with served(MIG) as at:
        opened(page, at, 4)
        order = []
        for _ in range(6):
            page.press("Tab")
            order.append(focused(page))
        first, *cells, last = order
        assert first == "To the GPUs"
        assert [cell.partition(":")[0] for cell in cells] == [f"1g.5gb ({index}" for index in range(4)]
        assert last == "Settings that have their default"


def test_arrows_go_from_cell_to_cell_and_what_has_the_focus_is_told(page: Page) -> None:
    with served(MIG) as at:
        opened(page, at, 4)
        order = [name for name in names(page) if "(0:" in name]
        page.press("Tab")
        page.press("Tab")
        steps = {"ArrowRight": 1, "ArrowDown": 2, "ArrowLeft": 1, "End": 4, "Home": 0, "ArrowUp": 0}
        for key, number in [*steps.items(), ("ArrowRight", 1)]:
            page.press(key)
            assert focused(page) == order[number]
        assert texts(page, ".detail")[0].startswith(order[1])
        assert page.evaluate("getComputedStyle(document.activeElement).outlineWidth") == "3px"
        page.press("Tab")
        assert "(1:" in focused(page)
        assert texts(page, ".detail")[0] == ""


def test_it_is_told_to_those_who_do_not_see_it(page: Page) -> None:
    with served(MIG) as at:
        opened(page, at, 4)
        told = page.accessible()
        roles = [role for role, _ in told]
        for landmark in ("banner", "main", "contentinfo"):
            assert roles.count(landmark) == 1
        assert [name for role, name in told if role == "heading"][:3] == ["a100-4-mig-5", "Resources", "GPUs"]
        assert [name for role, name in told if role == "group" and name] == [
            f"Devices of GPU {index}" for index in range(4)
        ]
        assert sum(role == "button" for role in roles) == 20
        assert [name for role, name in told if role == "article"] == [f"GPU {index}" for index in range(4)]
        assert ("columnheader", "Policy") in told


def test_it_follows_the_node_and_leaves_the_reader_in_place(page: Page) -> None:
    with served(MIG) as at:
        opened(page, at, 4)
        page.evaluate("document.querySelector('details').open = true")
        page.press("Tab")
        page.press("Tab")
        page.press("ArrowRight")
        before = focused(page)
        at.source.known = hold(sick(), 19, pod="late")
        page.until("[...document.querySelectorAll('.cell')].some(c => c.textContent.includes('late'))")
        assert texts(page, "#readiness") == ["not ready"]
        assert focused(page) == before
        assert page.evaluate("document.querySelector('details').open")
        assert texts(page, ".detail")[0].startswith(before)
        assert (
            page.evaluate(
                "[...document.querySelectorAll('.cells')].map(g => g.querySelectorAll('[tabindex=\"0\"]').length)"
            )
            == [1] * 4
        )
        assert page.complaints == []


def test_a_daemon_that_goes_is_told_and_one_that_comes_back_is_drawn(page: Page) -> None:
    with served(MIG) as at:
        opened(page, at, 4)
        port = at.telemetry.ports[0]
    page.until("document.querySelector('[role=alert]') !== null")
    assert "The daemon does not answer" in texts(page, "#gone")[0]
    assert len(texts(page, ".gpu")) == 4
    with served(facts("t4-4"), port):
        page.until("document.querySelector('[role=alert]') === null")
        assert texts(page, "h1") == ["t4-4"]


def test_foreign_text_stays_text(page: Page) -> None:
    evil = "<img src=x onerror=alert(1)><script>document.title='evil'</script>"
    known = hold(facts("t4-4"), 0, pod=evil)
    assert known.node is not None
    known = replace(known, ailments={known.node.gpus[1].uuid: Ailment(evil, NOW)})
    with served(replace(known, checks=(Check(evil, evil),))) as at:
        opened(page, at, 4)
        assert (
            page.evaluate("document.querySelectorAll('img').length + document.querySelectorAll('script').length") == 1
        )
        assert evil in texts(page, ".cell span")
        assert page.evaluate("document.title") == "t4-4: not ready"
        assert page.complaints == []


def test_the_newest_decisions_are_told_with_their_reasons(page: Page) -> None:
    with served(MIG) as at:
        made = [at.decide(size) for size in (1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3)]
        opened(page, at, 4)
        assert texts(page, ".decisions p:last-child") == [each.sentence for each in made[:1:-1]]
        assert texts(page, ".decisions p:first-child")[0] == (
            f"0s ago \u00b7 {made[-1].resource} \u00b7 decided by {made[-1].decided_by}"
        )
        assert "2 older ones are in the JSON." in texts(page, "#main p")


def test_the_configuration_in_force_is_told_with_what_gave_each_setting(page: Page) -> None:
    with served(facts("t4-4", replicas=3)) as at:
        opened(page, at, 4)
        assert "File /config/config.yaml" in texts(page, "#main p")
        rows = page.evaluate(
            "[...document.querySelectorAll('section:last-child > table tbody tr')]"
            ".map(r => [...r.children].map(c => c.textContent))"
        )
        assert ["flags.migStrategy", "mixed", "flag"] in rows
        assert all(row[2] != "default" for row in rows)


def test_a_daemon_that_knows_nothing_yet_is_drawn_too(page: Page) -> None:
    with served(Facts(NOW, (Check("node", "the driver is gone"),))) as at:
        page.open(at.address)
        page.until("document.querySelector('h1') !== null")
        assert texts(page, "h1") == ["A node that could not be read yet"]
        assert texts(page, "#problems li") == ["node: the driver is gone"]
        assert "None is in force yet." in texts(page, "#main p")
        assert page.complaints == []


def test_without_scripts_there_is_a_message_and_a_link(page: Page) -> None:
    page.scripts(on=False)
    with served(MIG) as at:
        page.open(at.address)
        deadline = time.monotonic() + 30
        while ("link", "api/v1/node") not in page.accessible():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert any("draws the node with JavaScript" in name for _, name in page.accessible())
