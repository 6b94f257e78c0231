"""The study of cold starts: a fresh process on a CPU, and what is made of planted times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch

from perftests.harness.session import Session
from perftests.harness.settings import Settings
from perftests.studies import cold_start, first_call
from perftests.studies.cold_start import measured
from perftests.studies.cold_start_report import (
    EMPTY,
    FILLED,
    Found,
    call_rows,
    draw,
    first_rows,
    settled,
    verdict,
)
from perftests.studies.first_call import FirstCall
from perftests.studies.frame import Scope
from perftests.studies.pictures import picture

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

STEADY_S = 1e-5


def call(compile_s: float, load_s: float | None = 2e-4, **more: Any) -> FirstCall:
    calls = [3e-5, 2e-5, *[STEADY_S] * 18]
    given: dict[str, Any] = {"compiled": compile_s > 0.1, "right": True, "pace_s": 4e-6, **more}
    return FirstCall(1.5, 0.3, compile_s, load_s, 3e-4, calls_s=calls, **given)


def planted(**more: Any) -> list[Found]:
    return [
        Found("relu/cuda_vector", EMPTY, (call(0.8, **more),)),
        Found("relu/cuda_vector", FILLED, (call(1e-3, **more),)),
        Found("relu/torch_compile", EMPTY, (call(6.0, None, **more),)),
        Found("relu/torch_compile", FILLED, (call(1.2, None, **more),)),
        Found("relu/triton", EMPTY, (call(0.5, **more),)),
        Found("relu/triton", FILLED, (call(2e-3, **more),)),
    ]


def test_a_fresh_process_compiles_with_an_empty_cache_and_finds_it_with_a_filled_one(
    validate: Callable[[Any], Any], tmp_path: Path
) -> None:
    found, failed = measured(["relu/nobody", "relu/cuda_vector"], "cpu", small=True)
    assert list(failed) == ["relu/nobody"]  # which costs the other nothing
    assert "no implementation 'nobody' of relu" in failed["relu/nobody"]
    assert [(each.state, each.runs[0].compiled) for each in found] == [
        (EMPTY, True),
        (FILLED, False),
    ]
    assert all(run.right and len(run.calls_s) == first_call.CALLS for run in found[0].runs)
    assert found[0].compile_s > 10 * found[1].compile_s
    scope = Scope(Session(Settings(lock_seconds=30)), torch.device("cpu"), True)
    findings = cold_start.study(scope, found, failed)
    assert "on this CPU" in findings.verdict
    assert findings.sections[2].title == "relu/nobody"
    kept = [validate(each)["result"] for each in scope.kept]
    assert [each["case"]["parameters"]["code_cache"] for each in kept] == [EMPTY, FILLED]
    assert kept[0]["first_call"]["compile_s"] == found[0].compile_s
    assert findings.draw is not None
    picture(findings.draw, tmp_path / "cold.png")


def test_all_code_caches_are_in_the_folder(tmp_path: Path) -> None:
    told = first_call.caches(tmp_path)
    assert {"BANDWATCH_CACHE", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR"} <= set(told)
    assert all(value.startswith(str(tmp_path)) for value in told.values())


def test_settled_is_the_call_from_which_five_are_near_the_steady_time() -> None:
    assert settled([5.0, 1.0, 3.0, *[1.0] * 17]) == 5
    assert settled([1.0] * 10) == 2
    assert settled([1.0, 1.0, 1.0, 1.0, 9.0, *[1.0] * 15]) == 7


def test_rows_hold_the_parts_and_the_first_call_in_steady_ones() -> None:
    rows = first_rows(planted())
    empty = next(row for row in rows if row["way"] == "relu/cuda_vector")
    assert empty["first call"] == pytest.approx(0.8005)
    assert empty["in steady calls"] == pytest.approx(0.8005 / STEADY_S)
    assert "load" not in next(row for row in rows if row["way"] == "relu/torch_compile")
    after = call_rows(planted())
    assert [row["settled at call"] for row in after] == [4, 4, 4]
    assert len(after) == 3


def test_the_verdict_holds_where_first_calls_are_far_from_steady() -> None:
    told = verdict(first_rows(planted()), call_rows(planted()), gpu=True)
    assert told.startswith("The claim holds: a first call takes 50,050 to 600,030 steady calls")
    assert "A filled cache shortens relu/cuda_vector from 0.8 to 0.0015 s" in told
    assert "up to 3.0 times a steady one" in told


def test_the_verdict_does_not_hold_where_a_first_call_is_like_any_other() -> None:
    warm = FirstCall(1, 0.1, 0.0, None, 1.1e-5, False, True, 1e-5, [STEADY_S] * 20)
    found = [Found("relu/torch", state, (warm,)) for state in (EMPTY, FILLED)]
    assert "does not hold everywhere" in verdict(first_rows(found), call_rows(found), gpu=True)


def test_a_wrong_output_leaves_nothing_to_judge() -> None:
    found = planted(right=False)
    assert verdict(first_rows(found), call_rows(found), gpu=True).startswith("Not judged")


def test_the_picture_of_several_ways_is_drawn(tmp_path: Path) -> None:
    picture(lambda figure: draw(figure, planted()), tmp_path / "c.png")
    assert (tmp_path / "c.png").stat().st_size > 10_000


@pytest.mark.gpu
def test_on_a_gpu_ours_and_triton_compile_once(gpu: str) -> None:
    found, failed = measured(["relu/cuda_vector", "relu/triton"], f"{gpu}:0", small=True)
    assert not failed
    assert [each.runs[0].compiled for each in found] == [True, True, False, False]
    assert all(each.runs[0].right and each.load_s is not None for each in found)
