"""The study of copies: what it measures on a CPU, and what it makes of planted times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch

from perftests.harness.session import Session
from perftests.harness.settings import Settings
from perftests.studies import copies, copies_report, movers
from perftests.studies.copies_report import (
    BOTH,
    IN,
    OUT,
    Copied,
    copy_rows,
    draw,
    kernel_rows,
    overlap_row,
    verdict,
)
from perftests.studies.frame import Scope
from perftests.studies.intervals import middle
from perftests.studies.movers import CpuMover, GpuMover, ends, sample
from perftests.studies.pictures import picture
from perftests.tests import fake_cuda

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MIB = 1 << 20
STEPS = (4e-3, 1e-3, 5e-3)


def copied(mib: int, memory: str, there: float, back: float, both: float, **more: Any) -> Copied:
    return Copied(mib, memory, {IN: [there] * 9, OUT: [back] * 9, BOTH: [both] * 9}, **more)


def small_scope() -> Scope:
    settings = Settings(max_seconds=0.02, max_samples=8, lock_seconds=30)
    return Scope(Session(settings), torch.device("cpu"), True)


def test_on_a_cpu_the_study_runs_small_says_so_and_keeps_its_copies(
    monkeypatch: pytest.MonkeyPatch, validate: Callable[[Any], Any], tmp_path: Path
) -> None:
    monkeypatch.setattr(copies, "SMALL_MIB", (1,))
    monkeypatch.setattr(copies, "KERNELS", ("relu",))
    monkeypatch.setattr(movers, "_WITHIN_S", 0.01)
    scope = small_scope()
    findings = copies.run(scope)
    assert "no device here" in findings.verdict
    first, beside, overlap, pinned = findings.sections
    assert [row["right"] for row in first.rows] == [True]
    assert [row["kernel"] for row in beside.rows] == ["relu"]
    assert [row["right"] for row in overlap.rows] == [True, True]
    assert set(pinned.rows[0]) == {"why"}
    kept = [validate(envelope)["result"] for envelope in scope.kept]
    assert {result["case"]["kernel"] for result in kept} == {"relu", IN, OUT, BOTH}
    assert all(result["status"] in {"ok", "noisy"} for result in kept)
    assert findings.draw is not None
    picture(findings.draw, tmp_path / "copies.png")


def test_a_copy_that_stops_short_is_found_and_its_time_is_not_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(movers, "_WITHIN_S", 0.01)
    made = ends(CpuMover(), 4096, "pageable")

    class Short(CpuMover):
        def seconds(self, memory: str, works: Any) -> float | None:
            took = super().seconds(memory, works)
            made.device_in[-1] = 0
            return took

    sample(Short(), "pageable", [made.copy_in])
    assert made.wrong(inwards=True, outwards=False) == "the copy to the device did not arrive whole"
    sample(CpuMover(), "pageable", [made.copy_in, made.copy_out])
    assert made.wrong(inwards=True, outwards=True) is None


def test_on_a_device_pinned_copies_are_held_back_and_pageable_ones_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake_cuda.install(monkeypatch)
    monkeypatch.setattr(movers, "_WITHIN_S", 0.01)
    bench = fake_cuda.bench()
    mover = GpuMover(bench)
    monkeypatch.setattr(mover, "host", lambda count, dtype, _memory: torch.ones(count, dtype=dtype))
    for memory in mover.memories:
        made = ends(mover, 4096, memory)
        assert all(s > 0 for s in sample(mover, memory, [made.copy_in, made.copy_out]))
        assert made.wrong(inwards=True, outwards=True) is None
        trip = copies.Trip(mover, 5000, memory)
        sample(mover, memory, trip.works(16))
        assert trip.is_right()
    held = sum(bench.device.spins.values())
    assert held >= 20  # of the pinned ones alone
    sample(mover, "pageable", [lambda: None])
    assert sum(bench.device.spins.values()) == held


def test_a_host_that_is_always_late_gives_no_time() -> None:
    class Late(CpuMover):
        def seconds(self, memory: str, works: Any) -> float | None:
            return None

    with pytest.raises(RuntimeError, match="late for each of"):
        sample(Late(), "pageable", [lambda: None])


def test_overlap_is_the_part_of_the_shorter_direction_that_the_longer_hides() -> None:
    hidden = copied(256, "pinned", 4e-3, 5e-3, 5e-3)
    halfway = copied(256, "pinned", 4e-3, 5e-3, 7e-3)
    serial = copied(256, "pageable", 4e-3, 5e-3, 9e-3)
    rows = copy_rows([hidden, halfway, serial], ("PCIe 5 x16", 256 * MIB / 2e-3))
    assert [row["overlap"] for row in rows] == pytest.approx([1.0, 0.5, 0.0])
    assert [row["of the link"] for row in rows] == pytest.approx([0.5] * 3)
    assert rows[0]["to device at"] == pytest.approx(256 * MIB / 4e-3)


def test_a_trip_in_chunks_overlaps_as_far_as_it_nears_its_longest_step() -> None:
    row = overlap_row("pinned", 16, [6e-3] * 9, STEPS, right=True)
    assert row["way"] == "pinned, 16 chunks"
    assert row["possible"] == 5e-3
    assert row["overlap"] == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("kernel_s", "said"), [(1e-4, "claim holds here"), (0.02, "does not hold everywhere")]
)
def test_the_verdict_follows_the_ratio_of_transfer_and_kernel(kernel_s: float, said: str) -> None:
    found = [copied(256, "pageable", 20e-3, 30e-3, 45e-3), copied(256, "pinned", 4e-3, 5e-3, 6e-3)]
    beside = kernel_rows(found, {("relu", 256): kernel_s, ("relu", 1): 1.0})
    assert len(beside) == 2
    told = verdict(copy_rows(found, None), beside, [], gpu=True)
    assert said in told
    assert "5.0 times as fast to the device and 6.0 times to the host" in told


def test_bytes_that_did_not_arrive_leave_nothing_to_judge() -> None:
    found = [copied(1, "pinned", 1e-3, 1e-3, 1e-3, wrong="lost")]
    told = verdict(copy_rows(found, None), kernel_rows(found, {("relu", 1): 1e-6}), [], gpu=True)
    assert told.startswith("Not judged: 1 of 1")


def test_the_interval_of_a_median_is_that_of_the_binomial_distribution() -> None:
    # For ten values the second and the ninth: 2 * (1 + 10) / 1024 = 2.1 % lie outside.
    found = middle([10, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    assert (found.low, found.median, found.high) == (2, 5.5, 9)
    assert (middle([3, 1, 2]).low, middle([3, 1, 2]).high) == (1, 3)
    with pytest.raises(ValueError, match="empty sample"):
        middle([])


def test_the_picture_of_every_kind_of_memory_is_drawn(tmp_path: Path) -> None:
    found = [copied(m, k, 1e-3, 2e-3, 2e-3) for m in (1, 256) for k in ("pageable", "pinned")]
    beside = kernel_rows(found, {("relu", 1): 1e-6, ("fused_transform", 256): 1e-5})
    picture(lambda figure: draw(figure, copy_rows(found, None), beside), tmp_path / "c.png")
    assert (tmp_path / "c.png").stat().st_size > 10_000


@pytest.mark.gpu
def test_on_a_gpu_pinned_copies_are_timed_both_ways_and_arrive(gpu: str) -> None:
    scope = Scope(Session(Settings(max_seconds=0.05)), torch.device(gpu, 0), True)
    findings = copies.run(scope)
    rows = findings.sections[0].rows
    assert {row["memory"] for row in rows} == {"pageable", "pinned"}
    assert all(row["right"] for row in rows)
    assert all(row["right"] for row in findings.sections[2].rows)


@pytest.mark.parametrize(
    ("share", "said"),
    [(-0.1, "do not overlap"), (0.88, "overlap by 88%"), (1.19, "overlap wholly, in less time")],
)
def test_no_more_than_all_of_a_direction_can_be_hidden(share: float, said: str) -> None:
    assert copies_report._hidden(share).startswith(said)
