"""The recorded runs that ship: loaded in order, refused when they are not what they should be."""

import gzip
import json
from datetime import date
from itertools import combinations
from pathlib import Path

import pytest

from tracker import demo
from tracker.errors import NotFoundError, RecordError
from tracker.gate import compare_runs
from tracker.model import CHANGES, Run
from tracker.queries import both_results, find_run
from tracker.record import dump_run
from tracker.store import Store
from tracker.tests.factory import make_run
from tracker.thresholds import Thresholds


def ship(folder: Path, run: Run, name: str, *, packed: bool = True) -> None:
    data = json.dumps(dump_run(run)).encode()
    (folder / name).write_bytes(gzip.compress(data) if packed else data)


def test_runs_come_oldest_first_whatever_their_names(tmp_path: Path) -> None:
    ship(tmp_path, make_run("run-00000002", 2, demo=True), "a.json.gz")
    ship(tmp_path, make_run("run-00000001", 1, demo=True), "b.json", packed=False)
    (tmp_path / "README.md").write_text("not a run")
    (tmp_path / "__init__.py").write_text("")
    runs = demo.recorded_runs(tmp_path)
    assert [run.run_id for run in runs] == ["run-00000001", "run-00000002"]
    assert runs[0] == make_run("run-00000001", 1, demo=True)


def test_none_shipped_is_said_clearly(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no recorded runs are shipped"):
        demo.recorded_runs(tmp_path)


def test_a_run_that_is_no_demo_is_refused(tmp_path: Path) -> None:
    ship(tmp_path, make_run(), "a.json.gz")
    with pytest.raises(RecordError, match="does not say demo"):
        demo.recorded_runs(tmp_path)


def test_a_cut_file_is_one_line(tmp_path: Path) -> None:
    ship(tmp_path, make_run(demo=True), "a.json.gz")
    whole = (tmp_path / "a.json.gz").read_bytes()
    (tmp_path / "a.json.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(RecordError, match="not a whole gzip file"):
        demo.recorded_runs(tmp_path)


def test_a_file_that_unpacks_to_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ship(tmp_path, make_run(demo=True), "a.json.gz")
    monkeypatch.setattr(demo, "MAX_BYTES", 100)
    with pytest.raises(RecordError, match="more than 100 bytes"):
        demo.recorded_runs(tmp_path)


def test_a_planted_slow_down_is_found_by_its_note() -> None:
    runs = (make_run(notes=("first",)), make_run(notes=("Planted slow-down: add reads twice",)))
    assert demo.planted(runs) == ("Planted slow-down: add reads twice",)


def test_what_is_shipped_is_valid() -> None:
    try:
        runs = demo.recorded_runs()
    except NotFoundError:
        pytest.skip("no recorded runs are shipped yet")
    assert all(run.demo and run.environment.backend == "cuda" for run in runs)
    assert len({run.run_id for run in runs}) == len(runs)
    assert demo.planted(runs)


def test_no_case_whose_code_stayed_is_called_between_any_two_of_them(tmp_path: Path) -> None:
    """docs/how-it-decides.md names how many comparisons these are."""
    compared, called = 0, []
    with Store.open(f"sqlite:///{tmp_path / 'demo.db'}") as store:
        for run in (runs := demo.recorded_runs()):
            store.record(run)
        for pair in combinations([find_run(store, run.run_id) for run in runs], 2):
            base, head = (
                {result.case.fingerprint: result.code_fingerprint for result in found}
                for found in both_results(store, *pair)
            )
            gate = compare_runs(store, *pair, Thresholds(), today=date(2026, 12, 1))
            same = {key for key, code in head.items() if key in base and base[key] == code}
            verdicts = [item.verdict for item in gate.judged]
            kept = [verdict for verdict in verdicts if verdict.case.fingerprint in same]
            compared += len(kept)
            called += [verdict.case.label for verdict in kept if verdict.kind in CHANGES]
    assert (compared, called) == (2_985, [])
