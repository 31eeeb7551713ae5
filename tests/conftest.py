"""Fixtures shared by the tests. Optional data: SETPO_TEST_DATA names a folder with corpus/, data/ and oracles/."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is imported: two threads beside a busy process are slower than one


@pytest.fixture(scope="session")
def test_data() -> Path:
    """The folder of optional test data."""
    folder = os.environ.get("SETPO_TEST_DATA")
    if not folder:
        pytest.skip("SETPO_TEST_DATA is not set: it names the folder with corpus/, data/ and oracles/")
    return Path(folder)


@pytest.fixture(scope="session")
def oracle(test_data):
    """oracle(name) -> the lines of oracles/name.jsonl: inputs and outputs of published implementations."""

    def lines(name):
        with open(test_data / "oracles" / f"{name}.jsonl", encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    return lines
