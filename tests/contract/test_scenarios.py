import ast
import re
from collections import Counter
from pathlib import Path

from tests.contract.scenarios import SCENARIOS

HERE = Path(__file__).parent


def numbers() -> Counter[int]:
    """How many tests of this folder each scenario has."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in HERE.glob("test_*.py")]
    functions = [
        node for tree in trees for node in tree.body if isinstance(node, ast.AsyncFunctionDef | ast.FunctionDef)
    ]
    matches = [re.match(r"test_(\d\d)_", function.name) for function in functions]
    return Counter(int(match[1]) for match in matches if match is not None)


def test_each_scenario_has_a_test_and_each_numbered_test_a_scenario() -> None:
    assert sorted(SCENARIOS) == list(range(1, 31))
    assert sorted(numbers()) == sorted(SCENARIOS)
