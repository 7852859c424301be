from dataclasses import replace

import pytest

from gpustow.cli.nodepicture import columns, draw_node, wrapped_columns
from gpustow.hardware.node import Node
from gpustow.hardware.nodemodel import load_node_model, parse_node_model, shipped_models


def _node(gpus: str, more: str = "") -> Node:
    return parse_node_model(f"name: n\ngpus: [{gpus}]\n{more}", "n").node


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    assert columns([("A", "BB", ""), ("CCC", "D", "E")]) == "A    BB\nCCC  D   E"


def test_the_last_column_is_wrapped_where_it_does_not_fit() -> None:
    rows = [("A", "TEXT"), ("a" * 60, "word " * 6), ("b", "")]
    lines = wrapped_columns(rows).splitlines()
    assert lines == [
        "A" + " " * 61 + "TEXT",
        "a" * 60 + "  word word word",
        " " * 62 + "word word word",
        "b",
    ]


@pytest.mark.parametrize("name", shipped_models())
def test_every_shipped_node_is_drawn_in_plain_text(name: str) -> None:
    picture = draw_node(load_node_model(name).node)
    assert picture.isascii()
    assert picture.startswith(f"{name}\n")
    assert picture.endswith("\n")


def test_a_node_without_gpus_is_a_heading() -> None:
    assert draw_node(_node("")) == "n\n0 GPUs, platform nvml, driver not known, CUDA not known\n"


def test_one_gpu_has_no_links_to_draw() -> None:
    picture = draw_node(_node("{model: Tesla T4, numaNode: 1}"))
    assert "1 GPU, platform nvml" in picture
    assert "Links" not in picture


def test_what_is_not_known_is_a_question_mark_and_what_is_not_there_a_dash() -> None:
    (gpu,) = _node("{model: NVIDIA A30}").gpus
    node = replace(
        _node(""), gpus=(replace(gpu, model="", memory_bytes=None, compute_capability=None, pci_bus_id="", uuid="U"),)
    )
    *_, row, _, _, ids = draw_node(node).splitlines()
    assert row.split() == ["0", "?", "?", "?", "-", "off"]
    assert ids.split() == ["0", "-", "/dev/nvidia0", "U"]


def test_unknown_links_and_those_that_differ_by_direction_are_drawn_as_read() -> None:
    picture = draw_node(_node("{model: Tesla T4, count: 2}", "links: {pcie: [X SYS, '? X'], nvlinks: [X 4, 0 X]}"))
    assert "GPU0  X     NV4   -\nGPU1  ?     X     -\n  NV#   that many" in picture
    assert "  ?     not known" in picture
    assert "GPU0  X     SYS   -\nGPU1  ?     X     -\n  SYS " in picture


def test_a_fabric_is_named_and_who_is_not_in_it_shown() -> None:
    node = load_node_model("gb200-tray").node
    picture = draw_node(replace(node, gpus=(*node.gpus[:3], replace(node.gpus[3], fabric=None))))
    assert "2    3c4f5a6b-7d8e-4f90-a1b2-c3d4e5f60718  2\n3    -                                     -" in picture


def test_mig_devices_lie_on_the_card_where_they_start() -> None:
    picture = draw_node(_node("{model: NVIDIA A30, mig: {devices: [{profile: 1g.6gb, start: 3}, {profile: 2g.12gb}]}}"))
    assert "GPU 0  |2g.12gb                            |                 |1g.6gb           |" in picture


def test_mig_devices_whose_place_is_not_known_are_listed_behind_the_card() -> None:
    node = _node("{model: NVIDIA A30, mig: {devices: [1g.6gb, 2g.12gb]}}")
    (gpu,) = node.gpus
    devices = tuple(
        replace(device, start=None, profile=replace(device.profile, memory_slices=None)) for device in gpu.mig_devices
    )
    picture = draw_node(replace(node, gpus=(replace(gpu, mig_devices=devices),)))
    assert picture.count("|                 ") == 4
    assert "|  somewhere: 1g.6gb 2g.12gb" in picture
    assert "0:0         1g.6gb   5952 MiB   3             0                 ?\n" in picture


def test_a_mig_gpu_without_devices_is_an_empty_card() -> None:
    picture = draw_node(_node("{model: NVIDIA A30, mig: {}}"))
    assert "MIG layout\nGPU 0  |  " in picture
    assert "MIG DEVICE" not in picture


def test_a_name_that_is_longer_than_its_place_is_cut() -> None:
    name = "1g.24gb+me.all"
    model = "{model: NVIDIA RTX PRO 6000 Blackwell Server Edition, mig: {devices: ['" + name + "']}}"
    (card,) = [line for line in draw_node(_node(model)).splitlines() if line.startswith("GPU 0")]
    assert card.startswith(f"GPU 0  |{name}   |")


def test_what_could_not_be_read_is_told() -> None:
    node = replace(_node("{model: Tesla T4}"), notes=("GPU 1 is lost: it is left out",))
    assert draw_node(node).endswith("Could not be read\n  GPU 1 is lost: it is left out\n")
