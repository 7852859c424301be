import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustow.cli.arguments import CommandLine, Flag, rewrite
from gpustow.errors import UsageError

FLAGS = (
    Flag(("mig-strategy",)),
    Flag(("fail-on-init-error",), boolean=True),
    Flag(("driver-root", "nvidia-driver-root")),
    Flag(("version", "v"), switch=True),
)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--mig-strategy=single", "--mig-strategy=single"),
        ("--mig-strategy single", "--mig-strategy=single"),
        ("-mig-strategy single", "--mig-strategy=single"),
        ("-mig-strategy=single", "--mig-strategy=single"),
        ("--mig-strategy --odd", "--mig-strategy=--odd"),
        ("--mig-strategy=", "--mig-strategy="),
        ("--mig-strategy=a=b", "--mig-strategy=a=b"),
        ("--fail-on-init-error", "--fail-on-init-error=true"),
        ("-fail-on-init-error=false", "--fail-on-init-error=false"),
        ("--fail-on-init-error --mig-strategy single", "--fail-on-init-error=true --mig-strategy=single"),
        ("--nvidia-driver-root /x", "--nvidia-driver-root=/x"),
        ("--help", "--help"),
        ("-v", "--version"),
        ("-version", "--version"),
        ("-v=true --mig-strategy single", "--version --mig-strategy=single"),
        ("-v=F --mig-strategy single", "--mig-strategy=single"),
        ("-v --version", "--version --version"),
        ("--unknown=1 -h", "--unknown=1 -h"),
        ("", ""),
    ],
)
def test_every_flag_becomes_name_equals_value(words: str, expected: str) -> None:
    assert rewrite(words.split(), FLAGS) == CommandLine(tuple(expected.split()))


def test_a_word_after_a_boolean_ends_the_flags_and_is_told() -> None:
    line = rewrite(["--fail-on-init-error", "false", "--mig-strategy=single"], FLAGS)
    assert line == CommandLine(("--fail-on-init-error=true",), ("false", "--mig-strategy=single"))


@pytest.mark.parametrize("end", ["--", "-", "word"])
def test_the_first_word_that_is_no_flag_ends_the_flags(end: str) -> None:
    line = rewrite(["--mig-strategy=single", end, "--driver-root=/"], FLAGS)
    assert line.words == ("--mig-strategy=single",)
    assert line.ignored[-1] == "--driver-root=/"


def test_a_flag_without_its_value_is_refused() -> None:
    with pytest.raises(UsageError, match="flag --mig-strategy needs a value"):
        rewrite(["--mig-strategy"], FLAGS)


def test_a_switch_that_is_neither_on_nor_off_is_refused() -> None:
    with pytest.raises(UsageError, match="flag --v cannot be 'perhaps'"):
        rewrite(["-v=perhaps"], FLAGS)


def test_two_names_of_one_flag_at_once_are_refused() -> None:
    with pytest.raises(UsageError, match="--driver-root and --nvidia-driver-root are names of one flag"):
        rewrite(["--driver-root=/", "--nvidia-driver-root=/"], FLAGS)


def test_the_same_name_may_come_again() -> None:
    assert rewrite(["--mig-strategy=a", "--mig-strategy=b"], FLAGS).words == ("--mig-strategy=a", "--mig-strategy=b")


@given(
    st.lists(
        st.sampled_from(["--mig-strategy", "-fail-on-init-error", "x", "--", "-", "--mig-strategy=1", "-v", "-v=0", ""])
    )
)
def test_rewriting_what_is_rewritten_changes_nothing(words: list[str]) -> None:
    try:
        line = rewrite(words, FLAGS)
    except UsageError:
        return
    assert rewrite(line.words, FLAGS) == CommandLine(line.words)
