"""The conversion study: what it converts, its counts against known ones, and its verdict."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
import torch

from kernels import host
from perftests.studies import conversions
from perftests.studies.conversions import LANDMARKS, TARGETS, converted, deciding
from perftests.studies.conversions_told import verdict
from perftests.studies.frame import Scope, missing
from perftests.studies.pictures import picture

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from perftests.harness.session import Session
    from perftests.studies.tables import Row, Section

CPU = torch.device("cpu")
needs_compiler = pytest.mark.skipif(host.compiler() is None, reason="g++ is not installed")
FINITE = {"fp16": 2 * 0x7C00, "bf16": 2 * 0x7F80}


@cache
def differences() -> Section:
    return conversions.differences(CPU)


@pytest.mark.parametrize("target", list(TARGETS))
def test_the_deciding_numbers_lie_where_their_names_say(target: str) -> None:
    found = deciding(target)
    own, tie = found["the number"], found["the tie"]
    assert all(len(x) == FINITE[target] for x in found.values())
    assert torch.equal(own.to(TARGETS[target]).float(), own)
    magnitudes = [x.abs().double() for x in found.values()]
    for lower, higher in pairwise(magnitudes):
        assert (lower < higher).all()
    # A tie is as far from the one below as from the one above, which is the next of the list.
    half = FINITE[target] // 2
    below, middle = own[:half].double(), tie[:half].double()
    assert torch.equal(2 * middle[:-1], below[:-1] + below[1:])
    assert torch.equal(own[half:], -own[:half])


@needs_compiler
@pytest.mark.parametrize("target", list(TARGETS))
def test_the_counts_are_those_that_the_definitions_of_the_roundings_give(target: str) -> None:
    rows = {str(r["fp32 input"]): r for r in differences().rows if r["to"] == target}
    every, half = FINITE[target], FINITE[target] // 2
    assert all(row["wrong"] == 0 for row in rows.values())
    assert [rows["the number"][f"{a} != {b}"] for a, b in conversions.PAIRS] == [0] * 6
    # Off the numbers themselves up and down always part, and each is truncation for one sign.
    for kind in list(rows)[1:]:
        assert rows[kind]["ru != rd"] == every
        assert rows[kind]["rz != ru"] == rows[kind]["rz != rd"] == half
    assert rows["just below the tie"]["rn != rz"] == 0
    assert rows["the tie"]["rn != rz"] == half  # the odd ones
    assert rows["just above the tie"]["rn != rz"] == every


@needs_compiler
def test_landmarks_have_the_patterns_that_the_formats_prescribe() -> None:
    found = {str(r["fp32 input"]): r for r in conversions.landmarks(CPU).rows}
    assert len(found) == len(LANDMARKS)
    third = found["-1/3"]
    assert third["fp32"] == "beaaaaab"
    assert [third[f"fp16 {r}"] for r in ("rn", "rz", "ru", "rd")] == [
        "b555",
        "b555",
        "b555",
        "b556",
    ]
    assert [third[f"bf16 {r}"] for r in ("rn", "rz", "ru", "rd")] == [
        "beab",
        "beaa",
        "beaa",
        "beab",
    ]
    over = found["65520: the last tie of fp16"]
    assert [over[f"fp16 {r}"] for r in ("rn", "rz", "ru", "rd")] == ["7c00", "7bff", "7c00", "7bff"]
    assert found["-2^-149"]["fp16 rd"] == "8001"
    assert found["-2^-149"]["fp16 ru"] == "8000"


@needs_compiler
def test_a_kernel_that_rounds_the_wrong_way_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def swapped(x: torch.Tensor, target: str, rounding: str, device: torch.device) -> torch.Tensor:
        return converted(x, target, {"ru": "rd"}.get(rounding, rounding), device)

    kept = {kind: deciding("fp16")[kind] for kind in ("the number", "the tie")}
    monkeypatch.setattr(conversions, "TARGETS", {"fp16": torch.float16})
    monkeypatch.setattr(conversions, "deciding", lambda _target: kept)
    monkeypatch.setattr(conversions, "converted", swapped)
    rows = {(r["to"], r["fp32 input"]): r for r in conversions.differences(CPU).rows}
    assert rows["fp16", "the number"]["wrong"] == 0
    assert rows["fp16", "the tie"]["wrong"] == FINITE["fp16"]


def results(**changes: Any) -> list[Row]:
    kinds = ("the number", "just below the tie", "the tie", "just above the tie")
    apart = (0, 0, 50, 100)
    return [
        {
            "to": "fp16", "fp32 input": kind, "numbers": 100, "rn != rz": count,
            "ru != rd": 0 if kind == "the number" else 100, "wrong": 0, **changes,
        }
        for kind, count in zip(kinds, apart, strict=True)
    ]  # fmt: skip


def timed(**times: float) -> list[Row]:
    return [
        {
            "MiB": 256, "to": "fp16", "rounding": rounding, "implementation": "cuda_vector",
            "time": time, "rate": 1e12, "of copy": 0.99,
        }
        for rounding, time in times.items()
    ]  # fmt: skip


def test_the_verdict_where_all_is_right_and_nothing_costs() -> None:
    text = verdict(results(), timed(rn=1e-4, rz=0.99e-4, ru=1.01e-4))
    assert "all 1,600 results are the reference's, bit for bit" in text
    assert "rn and rz differ on 0% of what lies below a tie, 50% of the ties and 100%" in text
    assert "ru and rd on 100% of all that has to be rounded" in text
    assert (
        "At 256 MiB the choice costs no time: the others' times differ from rn's by -1.0% to +1.0% (fp16)"
        in text
    )
    assert "99% to 99% of a copy's rate" in text


def test_the_verdict_where_results_are_wrong_and_a_rounding_costs() -> None:
    text = verdict(results(wrong=3), timed(rn=1e-4, rd=1.5e-4))
    assert "12 of 1,600 results are wrong" in text
    assert "the choice matters: the others' times differ from rn's by +50.0% to +50.0%" in text


def test_the_verdict_without_anything() -> None:
    assert verdict([], []) == "Nothing was converted here."


@needs_compiler
def test_a_small_run_on_the_cpu_fills_tables_store_and_picture(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    validate: Callable[[Any], Any],
    quick_session: Session,
) -> None:
    monkeypatch.setattr(conversions, "_MIB", 1 << 16)
    monkeypatch.setattr(conversions, "_SMALL_SIZES_MIB", (1,))
    known = differences()
    monkeypatch.setattr(conversions, "differences", lambda _device: known)
    monkeypatch.setattr(conversions, "machine_code", lambda: missing("Machine code", "not asked"))
    scope = Scope(quick_session, CPU, small=True)
    found = conversions.run(scope)
    _, _, times, _ = found.sections
    assert len(times.rows) == len(scope.kept) == 10
    assert all(kept["result"]["correctness"]["passed"] for kept in scope.kept)
    validate(scope.kept[0])
    assert "At 1 MiB" in found.verdict
    assert found.draw is not None
    picture(found.draw, tmp_path / "c.png")
    assert (tmp_path / "c.png").stat().st_size > 10_000


@pytest.mark.gpu
def test_a_gpu_rounds_every_deciding_number_right(gpu: str) -> None:
    section = conversions.differences(torch.device(gpu, 0))
    assert sum(int(row["wrong"]) for row in section.rows) == 0
