"""The trust study's arithmetic, and what it says of a peer that is not there."""

from __future__ import annotations

import json
import subprocess
from dataclasses import asdict, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from perftests.harness import chain
from perftests.studies import nvbench_peer, overhead, recording, timed, trust
from perftests.studies.document import Setting
from perftests.studies.nvbench_peer import OwnAnswer, PeerAnswer, read
from perftests.studies.spread import rows
from perftests.studies.suites import command, row
from perftests.studies.tables import Section

if TYPE_CHECKING:
    from pathlib import Path


def test_a_spread_is_the_standard_deviation_over_processes_and_a_copy_can_share_it() -> None:
    found = [
        {
            "256": {
                "median_s": s * 1e-6,
                "plain_s": (100 + 3 * (s - 100)) * 1e-6,
                "copy": 4e6 / s,
                "cycles": 198e3,
                "floor_s": s * 1e-6 - 97e-6 if s != 100.1 else 3.3e-6,
            }
        }
        for s in (100.0, 100.1, 99.9, 100.0)
    ]
    (only,) = rows(found, [256])
    assert only["spread"] == pytest.approx((0.02 / 3) ** 0.5 / 100)
    assert only["spread by plain events"] == pytest.approx(3 * (0.02 / 3) ** 0.5 / 100)
    assert only["largest - smallest ns"] == pytest.approx(200)
    assert only["spread of the copy fraction"] == pytest.approx(0)
    assert only["spread in cycles"] == 0
    assert only["spread less an empty launch"] == pytest.approx(0.1e-2)
    assert only["each process, ns"] == "+0 +100 -100 +0"
    assert only["reached"] is False


def test_nvbench_answers_are_read_by_the_name_of_the_size() -> None:
    def benchmark(name: str, mean: str, median: str) -> dict[str, object]:
        tags = {"nv/cold/time/gpu/mean": mean, "nv/cold/time/gpu/median": median, "other": "7"}
        summaries = [
            {"tag": tag, "data": [{"name": "value", "value": value}]} for tag, value in tags.items()
        ]
        return {"name": name, "states": [{"summaries": summaries}]}

    given = [("relu16_0", "1.3e-5", "1.2e-5"), ("relu16_1", "1.4e-5", "1.25e-5")]
    given += [("relu1_0", "5e-6", "4e-6"), ("relu16_2", "1.2e-5", "1.1e-5")]
    document = {"benchmarks": [benchmark(*each) for each in given]}
    own = OwnAnswer(4.1e-6, 0.05, 0.04, 0.3, 300, "precise")
    walls = [(1, 9.0), (16, 4.0), (16, 3.0), (16, 8.0)]
    found = read(document, walls, {1: own, 16: own})
    assert found[1] == PeerAnswer(5e-6, 4e-6, 0.0, 9.0, own)
    assert found[16].range_s == pytest.approx(1.5e-6)
    assert replace(found[16], range_s=0.0) == PeerAnswer(1.3e-5, 1.2e-5, 0.0, 4.0, own)


def test_agreement_is_told_of_the_medians_of_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    near, far = (OwnAnswer(s, 0.05, 0.04, 0.3, 300, "precise") for s in (10.05e-6, 10.2e-6))
    answers = {
        mib: PeerAnswer(11e-6, 10e-6, 1e-7, 1.0, far if mib == 64 else near)
        for mib in trust.SIZES_MIB
    }
    monkeypatch.setattr(nvbench_peer, "ask", lambda *_: answers)
    section = trust.agreement()
    found = {row["MiB"]: row for row in section.rows}
    assert [mib for mib, row in found.items() if not row["reached"]] == [64]
    assert found[16]["difference"] == pytest.approx(0.005)
    assert found[16]["nvbench's runs apart"] == pytest.approx(0.01)
    assert found[16]["wall share"] == pytest.approx(0.05)
    assert found[16]["a fifth"] is True
    assert found[16]["first answer s"] == 0.3
    assert "without the yardsticks (copies and empty launch" in section.how


def test_our_wall_is_that_of_a_later_answer_and_the_first_stands_beside_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = iter((3.0, 0.5, 2.0, 0.4))

    def measured(_session: object, _mib: int) -> Any:
        walls = {"total": next(answers), "timing": 0.1}
        return SimpleNamespace(seconds=[2e-6, 1e-6, 9e-6], walls=walls, result={"stop_reason": "x"})

    monkeypatch.setattr(timed, "measured", measured)
    found = nvbench_peer._ours(None, [1, 16])  # type: ignore[arg-type]
    assert found[1] == asdict(OwnAnswer(2e-6, 0.5, 0.1, 3.0, 3, "x"))
    assert (found[16]["wall_s"], found[16]["first_s"]) == (0.4, 2.0)


def test_a_process_prints_what_ours_found_before_nvbench_begins(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A stand-in for the process: what it prints is put together with nvbench's document."""
    own = {"1": asdict(OwnAnswer(4.1e-6, 0.05, 0.04, 0.3, 300, "precise"))}
    tags = ("nv/cold/time/gpu/mean", "nv/cold/time/gpu/median")
    data = [{"tag": tag, "data": [{"name": "value", "value": "4e-6"}]} for tag in tags]
    runs = [{"name": f"relu1_{run}", "states": [{"summaries": data}]} for run in range(3)]
    document = {"benchmarks": runs}
    said = f"own={json.dumps(own)}\nwall_s=1 7.5\nwall_s=1 7.0\nwall_s=1 9.0\n"

    def run(*_: object, **__: object) -> Any:
        (tmp_path / "nvbench.json").write_text(json.dumps(document))
        return SimpleNamespace(returncode=0, stdout=said, stderr="")

    monkeypatch.setattr(subprocess, "run", run)
    (answer,) = nvbench_peer.ask([1], tmp_path).values()
    assert (answer.wall_s, answer.median_s, answer.own.median_s) == (7.5, 4e-6, 4.1e-6)
    document["benchmarks"] = [*runs[:2], {"name": "relu1_2", "states": [{"summaries": data[:1]}]}]
    with pytest.raises(RuntimeError, match=r"lacks an answer: KeyError\('nv/cold/time/gpu/median'"):
        nvbench_peer.ask([1], tmp_path)
    said = said.removesuffix("wall_s=1 9.0\n")
    with pytest.raises(RuntimeError, match="nvbench gave no answer"):
        nvbench_peer.ask([1], tmp_path)


def test_a_part_that_cannot_be_measured_says_why_and_reaches_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def absent(*_: object) -> None:
        raise RuntimeError("nvbench gave no answer: No module named 'cuda.bench'")

    monkeypatch.setattr(nvbench_peer, "ask", absent)
    facts = {"environment": {"gpu_model": "X", "driver": "1", "cuda": "13", "libraries": {}}}
    monkeypatch.setattr(trust, "facts", lambda: facts)
    checkout = {"commit": {"sha": "0123456789abcdef"}, "dirty": False}
    monkeypatch.setattr(recording, "checkout", lambda: checkout)
    assert trust.main(["agreement", "--out", str(tmp_path)]) == 1
    assert "No module named 'cuda.bench'" in capsys.readouterr().out
    told = (tmp_path / "trust-x.md").read_text()
    assert "Not measured" in told
    command = "python -m perftests.studies.trust agreement"
    assert f"by `{command}` at commit 0123456789ab, in 0 s; driver 1, CUDA 13." in told
    document = json.loads((tmp_path / "trust-x.json").read_text())
    assert (document["command"], document["commit"]) == (command, "0123456789ab")
    assert document["environment"] == facts["environment"]
    assert document["sections"][0]["title"] == "Agreement"


def test_the_document_begins_as_those_of_other_studies_do(tmp_path: Path) -> None:
    facts = {"environment": {"gpu_model": "X", "driver": "1", "cuda": "13", "libraries": {}}}
    setting = Setting("the command", facts, "abc", small=False)
    title, _, line, _, section = (
        trust.write([Section("T", "How", [{"a": 1}])], tmp_path, setting, 61.4)
        .read_text()
        .splitlines()[:5]
    )
    assert title == "# How far the times can be trusted: X"
    assert line.startswith("Made 20")
    assert line.endswith("by `the command` at commit abc, in 61 s; driver 1, CUDA 13.")
    assert section == "## T"


def test_work_on_checks_is_what_the_device_did_outside_the_timed_part() -> None:
    def event(name: str, kind: str, start: float, end: float) -> Any:
        span = SimpleNamespace(start=start, end=end, elapsed_us=lambda: end - start)
        return SimpleNamespace(name=name, device_type=SimpleNamespace(name=kind), time_range=span)

    events = [
        event("the timed part", "CPU", 100.0, 200.0),
        event("the timed part", "CUDA", 90.0, 210.0),
        event("aten::fill_", "CPU", 0.0, 50.0),
        event("fill", "CUDA", 10.0, 13.0),
        event("bw_spin", "CUDA", 20.0, 99.0),
        event("relu", "CUDA", 150.0, 155.0),
        event("compare", "CUDA", 300.0, 304.0),
    ]
    assert overhead.checking_s(events) == pytest.approx(7e-6)


def test_a_chain_is_marked_only_while_it_is_looked_at() -> None:
    usual = vars(chain)["time_workload"]
    with overhead._marked():
        assert vars(chain)["time_workload"] is not usual
    assert vars(chain)["time_workload"] is usual


def test_a_suite_must_pass_and_end_in_time() -> None:
    told = "209 passed, 3 skipped in 61.00s"
    assert row("default", 61.0, 120.0, 0, told) == {
        "suite": "default",
        "cases": 209,
        "exit": 0,
        "wall s": 61.0,
        "at most s": 120.0,
        "reached": True,
    }
    assert row("quick", 31.0, 30.0, 0, told)["reached"] is False
    assert row("quick", 11.0, 30.0, 1, "1 failed, 3 passed")["reached"] is False
    assert row("quick", 11.0, 30.0, 2, "error")["cases"] == 0
    assert "--bandwatch-quick" in command("quick")
    assert "--bandwatch-quick" not in command("default")
