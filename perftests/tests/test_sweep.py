"""The sweep of launch shapes: its arithmetic, a CPU's small run, and its verdict both ways."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from matplotlib.figure import Figure

from perftests.studies import frame, sweep
from perftests.studies.occupancy import estimated
from perftests.studies.sweep_blocks import KINDS, told
from perftests.studies.sweep_verdict import draw, extremes, rank_correlation, ranked, verdict
from perftests.studies.tables import Section

if TYPE_CHECKING:
    from collections.abc import Callable

    from perftests.studies.tables import Row

THREADS, LOADS, KIB = (64, 128, 256, 512, 1024), (1, 2, 4, 8), 1024
MULTIPROCESSORS = 132


def timed(seconds: Callable[[int, int], float]) -> Section:
    rows: list[Row] = [
        {
            "dtype": dtype, "MiB": mib, "threads": threads, "loads": loads,
            "tile": threads * loads * 16, "time": mib * seconds(threads, loads),
            "bandwidth": 2 * 2**20 / seconds(threads, loads),
            "of copy": 5e-7 / seconds(threads, loads),
        }
        for dtype in sweep.DTYPES for mib in sweep.SIZES_MIB for threads in THREADS
        for loads in LOADS
    ]  # fmt: skip
    return Section("Every shape", "Planted", rows)


def held(in_flight: int) -> Section:
    rows: list[Row] = [
        {
            "dtype": dtype,
            "threads": threads,
            "loads": loads,
            "in flight": in_flight * loads,
            "registers": 16 + 4 * loads,
        }
        for dtype in sweep.DTYPES
        for threads in THREADS
        for loads in LOADS
    ]
    return Section("Held", "Planted", rows)


NOTHING = frame.missing("Counters", "no ncu")


def test_times_that_rise_with_the_tile_are_told_so_and_blocks_are_alike() -> None:
    found = timed(lambda t, u: 5e-7 * (1 + 1e-6 * t * u))
    text = verdict(found, held(32 * KIB), NOTHING, MULTIPROCESSORS)
    assert "One shape wins everywhere: with float32 64 threads x1 at 1 MiB (1% ahead" in text
    assert "A's 128, 256 and 512 threads are 0.0% apart, which is no more than" in text
    assert "one or two vectors a thread, changes little: 0.0%." in text
    assert "At 256 MiB the time of the other shapes rises with the size of a block" in text
    assert "which end before enough others have started" not in text
    assert (
        "Registers a thread in fp32: x1 20, x2 24, x4 32, x8 48; B's 24 suffice for x1, x2." in text
    )


def test_times_that_fall_with_bytes_in_flight_and_gain_by_more_threads_are_told_so() -> None:
    found = timed(lambda t, u: 5e-7 * (1 + 1 / u) * (1.2 if t == 128 else 1.0))
    text = verdict(found, held(4 * KIB), NOTHING, MULTIPROCESSORS)
    assert "one or two vectors a thread, gains 60.0%." in text
    assert "are 20.0% apart, which is more than" in text
    assert "falls with the bytes in flight" in text


def test_on_a_cpu_an_sm_explains_nothing() -> None:
    found = timed(lambda t, u: 5e-7)
    text = verdict(found, held(32 * KIB), NOTHING, 0)
    assert "in flight" not in text
    assert "does not follow the size of a block (rank correlation +0.00)" in text


def test_blocks_too_short_to_fill_an_sm_are_told_with_what_was_counted() -> None:
    rows: list[Row] = [
        {"role": role, "MiB": mib, "dram throughput %": mib + k, "occupancy %": 90.0 - 60 * k}
        for mib in (1, 256)
        for k, role in enumerate(("best", "worst"))
    ]
    found = timed(lambda t, u: 5e-7 * (2 if t * u == 64 else 1))
    text = verdict(found, held(KIB), Section("Counters", "Planted", rows), MULTIPROCESSORS)
    # 256 MiB in blocks of 1 KiB in 256 us, and of 2 KiB in 128 us.
    assert (
        "1 KiB each, which end before enough others have started: 1.02 start a ns, where the best has 1.02"
        in text
    )
    assert "; 30% of the warps that fit an SM are on it, 90% by the best shape." in text


def test_the_short_table_has_the_ends_and_the_suites_choice() -> None:
    found = timed(lambda t, u: 5e-7 * (1 + 1e-3 * t * u))
    rows = {(row["dtype"], row["MiB"]): row for row in ranked(found.rows).rows}
    assert len(rows) == 6
    row = rows["float32", 16]
    assert (row["best"], row["worst"]) == ("64 threads x1", "1024 threads x8")
    assert row["as good"] == "1 of 20"
    assert row["the suite's"] == "64 threads x4"  # 16 MiB are four waves of loads
    assert rows["float32", 256]["the suite's"] == "128 threads x1"
    # At 16 MiB 1 + 0.256 against 1 + 0.064.
    assert "at most 18.0% behind the best" in verdict(found, held(KIB), NOTHING, MULTIPROCESSORS)


@pytest.mark.parametrize(
    ("registers", "threads", "blocks"),
    # By hand: 65536 registers; a warp takes registers * 32, rounded up to 256; 2048 threads.
    [
        (32, 128, 16),
        (33, 128, 12),
        (40, 256, 6),
        (18, 64, 32),
        (64, 1024, 1),
        (128, 1024, 0),
        (33, 64, 24),
        (72, 32, 28),
    ],
)
def test_residency_follows_from_registers(registers: int, threads: int, blocks: int) -> None:
    assert estimated(registers, threads).blocks == blocks


def test_rank_correlation_is_spearmans() -> None:
    assert rank_correlation([1, 2, 3], [10, 20, 15]) == pytest.approx(0.5)
    assert rank_correlation([1, 1, 2], [3, 4, 5]) == pytest.approx(0.8660254)
    assert rank_correlation([1, 1, 1], [3, 4, 5]) == 0


def test_a_cpu_sweeps_small_and_checks_every_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "DTYPES", ("float32",))
    monkeypatch.setattr(sweep, "SMALL_THREADS", (64,))
    scope = frame.new_scope("cpu", small=False)
    findings = sweep.run(scope)
    assert [row["loads"] for row in findings.sections[3].rows] == [1, 2]
    cases = [envelope["result"]["case"]["parameters"] for envelope in scope.kept]
    assert cases[:2] == [{"threads": 64, "loads": 1}, {"threads": 64, "loads": 2}]
    assert [case["kernel"] for case in cases[2:]] == ["scalar", "shared"]
    assert all(envelope["result"]["correctness"]["passed"] for envelope in scope.kept)
    assert "why" in findings.sections[1].rows[0]


def test_the_blocks_of_the_fused_transform_are_told_beside_the_articles_sizes() -> None:
    shares = {
        ("scalar", 128): 0.967,
        ("scalar", 256): 0.947,
        ("scalar", 512): 0.91,
        ("warp", 64): 0.99,
    }
    rows: list[Row] = [
        {"kernel": KINDS[kernel], "threads": threads, "time": 1 / share, "of copy": share}
        for (kernel, threads), share in shares.items()
    ]
    text = told(Section("Blocks", "Planted", rows))
    assert "128 threads 96.7%, 256 threads 94.7%, 512 threads 91.0%" in text
    assert "the best block is a tile a warp of 64 threads at 99.0%" in text
    assert "were not measured" in told(frame.missing("Blocks", "no GPU"))


def test_the_best_of_each_size_is_framed_in_the_picture() -> None:
    found = timed(lambda t, u: 5e-7 * (1 + 1e-6 * t * u))
    figure = Figure()
    draw(found.rows, figure)
    assert len(figure.axes) == 6
    assert [len(axis.patches) for axis in figure.axes] == [1] * 6
    assert extremes(found.rows)["float32", 1][0]["threads"] == 64
