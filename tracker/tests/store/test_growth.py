"""Ten times the results cost no more to record into and to check: counted, not timed.

SQLite counts the steps of its virtual machine, whatever else the machine does; wall times at
1,000,000 results are in docs/results/store-scale.md.
"""

import shutil
from collections.abc import Callable, Sequence
from datetime import date
from importlib import import_module
from pathlib import Path

import pytest
from sqlalchemy import event

from tracker import queries
from tracker.gate import judge_run
from tracker.store import Store
from tracker.store.generate import Generator, Plan, fill
from tracker.thresholds import Thresholds

CASES, FEW, MANY = 12, 55, 550
Work = Callable[[Store, Sequence[str]], object]
PLAN = Plan(runs=MANY, cases=CASES, measurements=6, models=1)


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two files: one with a tenth of the runs of the other, the same ones."""
    few, many = (tmp_path_factory.mktemp("grown") / f"{n}.db" for n in (FEW, MANY))
    for path, runs in ((few, FEW), (many, MANY)):
        with Store.open(str(path)) as store:
            fill(store, Generator(PLAN).runs(0, runs))
    return few, many


def steps(path: Path, work: Work) -> int:
    """Return how many steps SQLite made, to the nearest ten."""
    count = 0

    def tick() -> int:
        nonlocal count
        count += 10
        return 0

    copy = Path(shutil.copy(path, path.with_suffix(".copy")))
    with Store.open(str(copy)) as store:
        line = line_of(store)
        store.cache.clear()
        event.listen(store.engine, "connect", lambda c, _: c.set_progress_handler(tick, 10))
        work(store, line)
    return count


def line_of(store: Store) -> Sequence[str]:
    # What git says where there is a checkout.
    return queries.ancestors(store, queries.find_run(store, "latest").sha or "")


def check(store: Store, line: Sequence[str]) -> None:
    head = queries.find_run(store, "latest")
    gate = judge_run(store, head, Thresholds(), today=date(2026, 3, 2), ancestors=line)
    assert len(gate.judged) == CASES


def record(store: Store, line: Sequence[str]) -> None:
    number = len(line) + len(line) // 9 + 3
    fill(store, [Generator(PLAN).run(number)])


def results(store: Store, line: Sequence[str]) -> None:
    assert len(queries.results(store, queries.find_run(store, "latest"))) == CASES


def overview(store: Store, line: Sequence[str]) -> None:
    assert queries.overview(store).cases == CASES


def scan(store: Store, line: Sequence[str]) -> None:
    with store.reading() as connection:
        connection.exec_driver_sql("SELECT sum(median_s) FROM results").all()


@pytest.mark.parametrize(
    ("work", "most"),
    [
        (check, 1.2),
        (results, 1.2),
        # This one reads every run, a row each, and none of its results.
        (overview, MANY / FEW * 1.2),
        (record, 1.2),
    ],
)
def test_ten_times_the_results_cost_no_more(
    grown: tuple[Path, Path], work: Work, most: float
) -> None:
    few, many = (steps(path, work) for path in grown)
    assert few > 500
    assert many <= most * few


def test_the_count_sees_what_grows(grown: tuple[Path, Path]) -> None:
    few, many = (steps(path, scan) for path in grown)
    assert many > 5 * few


def test_a_check_reads_the_measurements_of_a_few_runs_only(
    grown: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = import_module("tracker.queries.results")
    read: list[bytes] = []
    unpack_all = module.unpack_all

    def noted(several: list[bytes]) -> object:
        read.extend(several)
        return unpack_all(several)

    monkeypatch.setattr(module, "unpack_all", noted)
    with Store.open(str(grown[1])) as store:
        check(store, line_of(store))
    # Of 550 runs: those of the baseline's commit and of the level before it.
    assert 0 < len(read) <= 25 * CASES
