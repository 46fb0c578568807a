"""Every requirement has a test, and every test that is named for one is named for one that there is."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from tracepass_requirements import REQUIREMENTS

from evalr.testing import PassStoreContract, ResultStoreContract

HERE = Path(__file__).parent
CONTRACTS = {contract.__name__: dir(contract) for contract in (PassStoreContract, ResultStoreContract)}


@cache
def named_in(file: str) -> set[str]:
    """The tests of a file, those of a store's contract among them."""
    found = set()
    for node in ast.parse((HERE / f"test_tracepass_{file}.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            bases = [base.id for base in node.bases if isinstance(base, ast.Name)]
            found |= {f"{node.name}::{name}" for base in bases for name in CONTRACTS.get(base, ())}
    return found


def test_every_requirement_is_there() -> None:
    assert [*REQUIREMENTS] == [*(f"R{number}" for number in range(1, 15)), *(f"B{number}" for number in range(1, 21))]


@pytest.mark.parametrize("name", REQUIREMENTS)
def test_a_requirement_has_tests_that_exist(name: str) -> None:
    tests = REQUIREMENTS[name].tests
    assert tests
    for test in tests:
        file, _, node = test.partition("::")
        assert node in named_in(file), f"{name}: there is no test {test}"


def test_a_test_is_named_for_a_requirement_that_there_is() -> None:
    named = {
        (file.name, match[0].upper())
        for file in HERE.glob("test_*.py")
        for name in named_in(file.stem.removeprefix("test_tracepass_"))
        if (match := re.search(r"(?<=^test_)[rRbB]\d+(?=_)", name))
    }
    assert len(named) > 30
    assert [each for each in named if each[1] not in REQUIREMENTS] == []
