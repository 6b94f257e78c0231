"""Generated stores: sound, seeded, and as varied as real ones."""

from pathlib import Path

from click.testing import CliRunner

from tracker import queries
from tracker.store import Store
from tracker.store.checking import check_store
from tracker.store.generate import Generator, Plan, cases, fill, main
from tracker.tests.store.test_keeping import all_digests

SMALL = Plan(runs=30, cases=8, measurements=12)


def test_a_generated_store_is_sound(store: Store) -> None:
    assert fill(store, Generator(SMALL).runs()) == 30
    assert list(check_store(store)) == []
    found = queries.overview(store)
    assert (found.runs, found.results, found.cases) == (30, 240, 8)
    assert len(found.models) == 3
    assert found.series > 3 * 8  # the driver's upgrade divides them


def test_equal_plans_give_equal_stores(store: Store, tmp_path: Path) -> None:
    fill(store, Generator(SMALL).runs())
    with Store.open(str(tmp_path / "again.db")) as other:
        fill(other, Generator(SMALL).runs())
        first, again = all_digests(store), all_digests(other)
    # Only what tells when and where the store was made may differ.
    assert {name for name in first if first[name] != again[name]} == {"meta"}


def test_cases_are_distinct() -> None:
    assert len({case.fingerprint for case in cases(3000)}) == 3000


def test_history_holds_steps_reruns_and_dirty_runs(tmp_path: Path) -> None:
    plan = Plan(runs=100, cases=40, measurements=8, models=1)
    with Store.open(str(tmp_path / "a.db")) as store:
        fill(store, Generator(plan).runs())
        runs = queries.runs(store, limit=None)
        assert any(run.checkout.dirty for run in runs)
        assert len({run.sha for run in runs}) == 90
        assert len({run.environment_key for run in runs}) == 2
        newest = queries.find_run(store, "latest")
        assert len(queries.ancestors(store, newest.sha or "")) == 89
        listed = queries.series_list(store, gpu_model="NVIDIA H200")
        series = [queries.series(store, info.case_key, "NVIDIA H200") for info in listed[:80]]
        changes = [abs(s.median_s[-10:].mean() / s.median_s[:10].mean() - 1) for s in series]
        assert min(changes) < 0.01 < max(changes)


def test_the_command_fills_a_store_and_refuses_a_bad_address(tmp_path: Path) -> None:
    address = str(tmp_path / "a.db")
    done = CliRunner().invoke(main, [address, "--results", "40", "--cases", "20"])
    assert (done.exit_code, "2 runs, 40 results" in done.output) == (0, True)
    failed = CliRunner().invoke(main, ["nothing://x"])
    assert failed.exit_code == 1
    assert "Traceback" not in failed.output
