import pytest
from rich.text import Text

from gpustow.simulation.outcome import Outcome
from gpustow.simulation.picture import (
    DRAWN,
    LATER,
    PLAIN,
    SYMBOLS,
    Strokes,
    assign_symbols,
    draw,
    draw_legend,
    side_by_side,
    strokes_for,
)
from tests.simulation.samples import outcome, refused, running


def plain(lines: list[Text]) -> list[str]:
    return [line.plain.rstrip() for line in lines]


def picture(result: Outcome, strokes: Strokes = DRAWN) -> list[str]:
    return plain(draw(result, assign_symbols([result]), strokes))


def test_each_gpu_is_a_box_with_a_cell_a_slot() -> None:
    assert picture(outcome("packed", [running("a", "MIG-0-0"), running("b", "MIG-0-1")])) == [
        "packed",
        "      ┌───┬───┬───┐",
        "GPU 0 │ A │ B │   │ 2 of 3",
        "      └───┴───┴───┘",
        "      ┌───┬───┬───┐",
        "GPU 1 │   │   │   │ free",
        "      └───┴───┴───┘",
        "1 of 2 GPUs wholly free",
    ]


def test_an_unhealthy_slot_is_marked() -> None:
    assert picture(outcome("packed", [], gpus=1, sick=["MIG-0-1"]))[2] == "GPU 0 │   │ ! │   │ free"


def test_a_gpu_of_which_nothing_is_healthy_is_not_free() -> None:
    assert picture(outcome("packed", [], slots=1, sick=["MIG-0-0"])) == [
        "packed",
        "      ┌───┐",
        "GPU 0 │ ! │ unhealthy",
        "      └───┘",
        "      ┌───┐",
        "GPU 1 │   │ free",
        "      └───┘",
        "1 of 1 GPUs wholly free, 1 with nothing to give",
    ]


def test_a_gpu_without_devices_says_so() -> None:
    assert picture(outcome("packed", [], gpus=1, slots=0)) == [
        "packed",
        "GPU 0 no devices",
        "0 of 0 GPUs wholly free, 1 with nothing to give",
    ]


def test_a_node_without_gpus_is_drawn_too() -> None:
    assert picture(outcome("packed", [], gpus=0)) == ["packed", "0 of 0 GPUs wholly free"]


def test_many_slots_shrink_to_one_character_and_wrap() -> None:
    [_, first, second, *_] = picture(outcome("packed", [running("a", "MIG-0-0")], gpus=1, slots=60))
    assert first == "      A" + "·" * 49
    assert second == "GPU 0 " + "·" * 10 + " 1 of 60"


def test_one_row_of_small_cells_carries_the_label_itself() -> None:
    assert picture(outcome("packed", [], gpus=1, slots=17))[1] == "GPU 0 " + "·" * 17 + " free"


def test_a_gpu_with_very_many_slots_is_told_in_numbers() -> None:
    pods = [running("a", "MIG-0-0", "MIG-0-1"), running("b", "MIG-0-7")]
    assert picture(outcome("packed", pods, gpus=1, slots=401))[1] == "GPU 0 A 2, B 1 3 of 401"


def test_a_terminal_without_box_drawing_gets_plain_strokes() -> None:
    assert strokes_for("utf-8") == DRAWN
    assert strokes_for("ascii") == PLAIN
    assert strokes_for("no such encoding") == PLAIN
    assert picture(outcome("packed", [running("a", "MIG-0-0")], gpus=1), PLAIN)[1:4] == [
        "      +---+---+---+",
        "GPU 0 | A |   |   | 1 of 3",
        "      +---+---+---+",
    ]


def test_a_pod_has_the_same_symbol_under_every_policy() -> None:
    one = outcome("distributed", [running("a", "MIG-0-0"), refused("b"), running("c", "MIG-1-0")])
    two = outcome("packed", [refused("a"), running("b", "MIG-0-0"), running("c", "MIG-0-1")])
    assert assign_symbols([one, two]) == {"default/a": "A", "default/c": "B", "default/b": "C"}


def test_pods_beyond_the_symbols_share_one_and_the_legend_counts_them() -> None:
    count = len(SYMBOLS) + 3
    result = outcome("packed", [running(f"p{n}", f"MIG-0-{n}") for n in range(count)], gpus=1, slots=count)
    symbols = assign_symbols([result])
    assert list(symbols.values()).count(LATER) == 3
    assert plain(draw_legend(symbols, 80))[-1].endswith(f"{LATER} 3 later pods")


def test_the_legend_wraps_at_the_width() -> None:
    symbols = {"default/a": "A", "default/b": "B", "default/c": "C"}
    assert plain(draw_legend(symbols, 26)) == ["A default/a  B default/b", "C default/c"]
    assert draw_legend({}, 80) == []


@pytest.mark.parametrize(("width", "expected"), [(7, ["a1   b1", "a2"]), (6, ["a1", "a2", "", "b1"])])
def test_blocks_stand_side_by_side_where_they_fit(width: int, expected: list[str]) -> None:
    blocks = [[Text("a1"), Text("a2")], [Text("b1")]]
    assert plain(side_by_side(blocks, width, gap=3)) == expected


def test_colour_is_the_only_difference_between_two_symbols_styles() -> None:
    result = outcome("packed", [running("a", "MIG-0-0"), running("b", "MIG-0-1")], gpus=1)
    middle = draw(result, assign_symbols([result]))[2]
    styles = {middle.plain[span.start : span.end].strip(): str(span.style) for span in middle.spans}
    assert styles["A"] != styles["B"]
