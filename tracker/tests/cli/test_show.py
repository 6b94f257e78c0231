"""`bandwatch show`: one result, the newest of the case or that of a named run."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tracker.model import Correctness, Status, Warn
from tracker.occasion import STUDY
from tracker.store import Store
from tracker.tests.cli.conftest import Answer, Command, run_of_commit
from tracker.tests.factory import H200, make_case, make_result, sha


def facts(answer: Answer) -> dict[str, Any]:
    assert answer.code == 0, answer.err
    found: dict[str, Any] = json.loads(answer.out)["facts"]
    return found


@pytest.mark.usefixtures("filled")
def test_the_newest_result_of_a_case_is_shown_with_its_roofline(bandwatch: Command) -> None:
    answer = bandwatch("show", "relu", "--format", "json")
    found = facts(answer)
    assert (found["run"], found["commit"]) == ("run-of-commit-4", sha(4))
    assert found["case"].startswith("relu/cuda_vector")
    tables = json.loads(answer.out)["tables"]
    figures = {row["figure"]: row["value"] for row in tables["figures"]}
    # 512 MiB in about 1.2 times 130 us, beside the sample's 4.21 TB/s and 2.4 us.
    assert figures["time_s"] == pytest.approx(1.56e-4, rel=0.01)
    assert figures["floor_s"] == 2.4e-6
    assert figures["copy_fraction"] == pytest.approx(2**29 / 1.56e-4 / 4.21e12, rel=0.01)
    assert figures["intensity_flop_per_byte"] == 0.125
    copy = tables["roofline"][1]
    assert copy["ridge_flop_per_byte"] == pytest.approx(67 / 4.21)
    assert copy["attainable_flop_per_s"] == pytest.approx(4.21e12 / 8)
    assert copy["attained_fraction"] == pytest.approx(figures["copy_fraction"])
    shown = bandwatch("show", "relu").out
    assert "Roofline" in shown
    assert "bound by memory" in shown


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize("name", ["run-of-commit-2", sha(2)])
def test_a_run_is_shown_by_its_id_or_commit(bandwatch: Command, name: str) -> None:
    found = facts(bandwatch("show", "relu", "--run", name, "--format", "json"))
    assert found["run"] == "run-of-commit-2"


def test_a_run_without_the_case_says_so(filled: Path, bandwatch: Command) -> None:
    other = replace(
        run_of_commit(5), results=(make_result(make_case("silu", "torch")),), run_id="silu-alone"
    )
    with Store.open(str(filled / "runs.db")) as store:
        store.record(other)
    answer = bandwatch("show", "relu", "--run", "silu-alone")
    assert answer.code == 2
    assert "run silu-alone has no result of it" in answer.err
    # Where no run is named, one that lacks the case does not count.
    assert facts(bandwatch("show", "relu", "--format", "json"))["run"] == "run-of-commit-4"


def test_a_study_is_passed_over_for_a_run_of_the_suite_and_told(
    filled: Path, bandwatch: Command
) -> None:
    study = replace(run_of_commit(5), run_id="a-study-run", notes=(f"{STUDY}roofline",))
    with Store.open(str(filled / "runs.db")) as store:
        store.record(study)
    answer = bandwatch("show", "relu", "--format", "json")
    assert facts(answer)["run"] == "run-of-commit-4"
    assert any("a newer one is a-study-run" in note for note in json.loads(answer.out)["notes"])
    assert facts(bandwatch("show", "relu", "--run", "a-study-run", "--format", "json"))


def test_of_several_models_one_is_asked_for(filled: Path, bandwatch: Command) -> None:
    other = replace(
        run_of_commit(5), run_id="run-on-a100", environment=replace(H200, gpu_model="NVIDIA A100")
    )
    with Store.open(str(filled / "runs.db")) as store:
        store.record(other)
    answer = bandwatch("show", "relu")
    assert answer.code == 2
    assert "choose one with --gpu" in answer.err
    found = facts(bandwatch("show", "relu", "--gpu", "NVIDIA A100", "--format", "json"))
    assert found["run"] == "run-on-a100"


def test_the_history_of_a_small_kernel_tells_an_empty_one_s_time(
    filled: Path, bandwatch: Command
) -> None:
    assert "empty kernel" not in bandwatch("history", "relu").out
    # 24 us are just ten of the 2.4 us of an empty kernel.
    small = (make_result(make_case("silu", "torch"), [2.39e-5] * 5),)
    large = (make_result(make_case("silu", "torch", n=1 << 20), [2.41e-5] * 5),)
    with Store.open(str(filled / "runs.db")) as store:
        store.record(replace(run_of_commit(5), results=small + large))
    told = "empty kernel, by the same timer in the last row's run: 2.40 us"
    assert told in " ".join(bandwatch("history", "silu", "67108864").out.split())
    assert "empty kernel" not in bandwatch("history", "silu", "1048576").out


NEAR = Warn("near_floor", "an empty kernel shows 2.40 us by the same timer")


def test_each_row_of_a_history_has_the_empty_kernel_of_its_own_run(
    filled: Path, bandwatch: Command
) -> None:
    case = make_case("silu", "torch", n=1024)
    # In turn: launch-bound, small only, large; the floor is another one each time.
    told = [(3.3e-6, 2.4e-6, (NEAR,)), (6.6e-6, 2.6e-6, ()), (1e-4, 2.5e-6, ())]
    with Store.open(str(filled / "runs.db")) as store:
        for number, (time_s, floor_s, warnings) in enumerate(told, start=5):
            peaks = replace(make_result().peaks, floor_s=floor_s)
            found = make_result(case, [time_s] * 5, peaks=peaks, warnings=warnings)
            store.record(replace(run_of_commit(number), results=(found,)))
    answer = bandwatch("history", "silu", "--format", "json")
    rows = json.loads(answer.out)["tables"]["history"]
    assert [row["floor_s"] for row in rows] == [2.4e-6, 2.6e-6, 2.5e-6]
    assert [row["launch_bound"] for row in rows] == [True, False, False]
    # 8 KiB in 3.3 us beside the sample's copy of 4.21 TB/s.
    assert rows[0]["copy_fraction"] == pytest.approx(8192 / 3.3e-6 / 4.21e12)
    shown = bandwatch("history", "silu").out
    lines = (" ".join(line.split()) for line in shown.splitlines())
    first, second, third = (line for line in lines if " main " in line)
    assert "3.300 us 2.40 us 2.482 launch-bound" in first
    assert "6.600 us 2.60 us 1.241 0.0 %" in second
    assert "100.0 us" in third
    assert "2.50 us" not in third
    assert "launch-bound: most of the time is the launch" in shown
    # What is large at the end needs no word of the last row's empty kernel.
    assert "in the last row's run" not in shown
    csv = bandwatch("history", "silu", "--format", "csv").out.splitlines()
    assert "median_s,floor_s,launch_bound,bandwidth_bytes_per_s,copy_fraction" in csv[0]


def test_a_launch_bound_result_is_not_called_bound_by_memory(
    filled: Path, bandwatch: Command
) -> None:
    small = make_result(make_case("silu", "torch", n=1024), [3.2e-6] * 5, warnings=(NEAR,))
    with Store.open(str(filled / "runs.db")) as store:
        store.record(replace(run_of_commit(5), results=(small,)))
    shown = bandwatch("show", "silu").out
    assert "bound by launch" in shown
    assert "an empty kernel takes 75.0 % of the time" in " ".join(shown.split())
    assert "bound by memory" not in shown


def test_a_wrong_result_is_shown_without_a_time(filled: Path, bandwatch: Command) -> None:
    run = run_of_commit(5)
    wrong = replace(
        run.results[0],
        status=Status.INCORRECT,
        correctness=Correctness(checked=True, passed=False),
        measurements_s=(),
        summary=None,
        reasons={"measurements_s": "the output is wrong", "summary": "no measurements"},
    )
    with Store.open(str(filled / "runs.db")) as store:
        store.record(replace(run, results=(wrong,)))
    answer = bandwatch("show", "relu")
    assert answer.code == 0
    assert "incorrect: no place under a roof" in answer.out
    assert "no roofline: there is no time" in answer.out
