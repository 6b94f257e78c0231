"""The CPU as a device: its cache, its threads, and a copy that is no slower than what stands beside it."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import torch

from perftests.harness.calibrate import Peaks
from perftests.harness.cpu import cpu_threads, hold_threads, last_level_cache_bytes
from perftests.harness.record import Findings
from perftests.harness.timing import _check_copy
from perftests.tests.workloads import relu_workload

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def _threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(("text", "count"), [("", 1), ("4", 4), ("3,2", 3), ("0", 1), ("many", 1)])
def test_threads_are_one_unless_the_environment_says_more(
    text: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", text)
    assert cpu_threads() == count


@pytest.mark.usefixtures("_threads")
def test_threads_are_held_and_wait_asleep(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    hold_threads(1, tmp_path / "absent")
    assert torch.get_num_threads() == 1
    assert os.environ["OMP_NUM_THREADS"] == "1"
    assert os.environ.pop("OMP_WAIT_POLICY") == "passive"


def test_the_largest_cache_counts(tmp_path: Path) -> None:
    for index, size in enumerate(["48K", "1M", "32M", "2048K"]):
        (tmp_path / f"index{index}").mkdir()
        (tmp_path / f"index{index}" / "size").write_text(f"{size}\n")
    assert last_level_cache_bytes(tmp_path) == 32 << 20
    assert last_level_cache_bytes(tmp_path / "absent") is None


def test_a_copy_that_was_held_up_is_left_out_with_a_reason() -> None:
    found = Findings(relu_workload(), "cold", peaks=Peaks(copy_bytes_per_s=1e9, copy_source="x"))
    _check_copy(found, 1.2e9)
    assert found.peaks == Peaks(copy_bytes_per_s=1e9, copy_source="x")
    _check_copy(found, 2.0e9)
    assert found.peaks == replace(Peaks(), copy_bytes_per_s=None)
    assert "held it up" in found.reasons["peaks.copy_bytes_per_s"]
