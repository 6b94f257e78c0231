"""Benchmarks of a store at scale. Run by `python -m perftests.scale`, which makes the table.

Not collected with the suite: its name does not begin with `test_`. Each benchmark notes its goal
and the processor time of its rounds, which a busy machine disturbs less than the wall clock.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import time
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from perftests.scale.stores import PLANS, Stores, cpu_clock, next_run, write_storage
from tracker import queries
from tracker.cli.main import main
from tracker.record import load_run, write_run
from tracker.store import Store
from tracker.tests.cluster import Cluster, MissingError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROUNDS = int(os.environ.get("BANDWATCH_SCALE_ROUNDS", "7"))
ENGINES = ("sqlite", "postgresql")
Measure = "Callable[..., Any]"


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster | None]:
    """A server that keeps what it promised, None where there is none."""
    try:
        server = Cluster(durable=True, settings=("shared_buffers=512MB",))
    except MissingError as error:
        sys.stderr.write(f"no PostgreSQL: {error}\n")
        yield None
        return
    yield server
    server.close()


@pytest.fixture(scope="session")
def stores(cluster: Cluster | None) -> Stores:
    """The filled stores."""
    folder = Path(os.environ.get("BANDWATCH_SCALE_FOLDER", ".bandwatch/scale"))
    folder.mkdir(parents=True, exist_ok=True)
    return Stores(folder.resolve(), cluster)


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest, cluster: Cluster | None) -> str:
    """Each engine in turn."""
    if request.param == "postgresql" and cluster is None:
        pytest.skip("no PostgreSQL binaries")
    return str(request.param)


@pytest.fixture
def measure(benchmark: Any, cluster: Cluster | None, engine: str) -> Callable[..., None]:
    """Time rounds of a function, each after `setup`; note goal and processor time."""
    clock = cpu_clock(cluster if engine == "postgresql" else None)

    def run(
        function: Callable[..., Any], *, figure: str, goal_s: float | None, **more: Any
    ) -> None:
        cpu: list[float] = []

        def timed(*arguments: Any) -> None:
            before = clock()
            function(*arguments)
            cpu.append(clock() - before)

        warm = more.pop("warmup_rounds", 1)
        benchmark.extra_info.update(figure=figure, engine=engine, goal_s=goal_s, cpu_s=cpu)
        benchmark.extra_info["load"] = os.getloadavg()[0]
        benchmark.pedantic(timed, rounds=ROUNDS, iterations=1, warmup_rounds=warm, **more)
        del cpu[:warm]

    return run


@pytest.mark.parametrize("size", ["small", "large"])
def test_record(measure: Any, stores: Stores, engine: str, size: str, tmp_path: Path) -> None:
    """A record file of 1,000 cases x 100 measurements: read, checked, stored."""
    address = stores.address(engine, size)
    path = tmp_path / "run.json"
    with Store.open(address) as store:

        def prepare() -> None:
            write_run(next_run(store), path)

        def record() -> None:
            assert store.record(load_run(path)).inserted

        goal = None if size == "small" else {"sqlite": 1.0, "postgresql": 1.5}[engine]
        measure(record, figure=f"record, {size}", goal_s=goal, setup=prepare)


@pytest.mark.parametrize("size", ["small", "large"])
def test_check(measure: Any, stores: Stores, engine: str, size: str) -> None:
    """`bandwatch check` of the newest run: load, judge, print."""
    address = stores.address(engine, size)
    with Store.open(address) as store:
        store.record(next_run(store))

    def check() -> None:
        with redirect_stdout(io.StringIO()) as out:
            code = main(["check", "latest", "--store", address])
        assert code in {0, 1, 3}, out.getvalue()

    measure(check, figure=f"check, {size}", goal_s=2.0 if size == "large" else None)


def test_overview(measure: Any, stores: Stores, engine: str) -> None:
    """How much there is, by GPU model."""
    with Store.open(stores.address(engine, "large"), read_only=True) as store:
        measure(
            lambda: queries.overview(store),
            figure="overview, large",
            goal_s={"sqlite": 0.3, "postgresql": 1.0}[engine],
        )


@pytest.mark.parametrize("again", [False, True], ids=["first", "again"])
def test_series(measure: Any, stores: Stores, engine: str, again: bool) -> None:
    """One case over 10,000 runs: by a process that read none before, and by one that did."""
    with Store.open(stores.address(engine, "long"), read_only=True) as store:
        info = queries.series_list(store)[0]

        def read() -> None:
            found = queries.series(store, info.case_key, info.gpu_model, dirty=True)
            assert len(found) >= PLANS["long"].runs

        def forget() -> None:
            store.cache.clear()

        figure = f"series of 10,000 runs, {'again' if again else 'first'}"
        measure(read, figure=figure, goal_s=0.05, setup=None if again else forget)


def test_compare_against_pytest_benchmark(stores: Stores, benchmark: Any) -> None:
    """Two of 100 stored runs of 1,000 cases, both commands from their start to their table."""
    address = stores.address("sqlite", "small")
    with Store.open(address, read_only=True) as store:
        runs = sorted(queries.runs(store, limit=None), key=lambda run: run.number)
        first, second = (runs[index].run_id for index in (89, 97))
    ours = [sys.executable, "-m", "tracker.cli.main", "compare", first, second, "--store", address]
    found: dict[str, list[float]] = {"ours": [], "stats only": [], "with data": []}
    cpu: dict[str, list[float]] = {name: [] for name in found}
    clock = cpu_clock(None)
    storages = {
        name: write_storage(stores.folder / f"storage-{name[:5].strip()}", address, data=data)
        for name, data in (("stats only", False), ("with data", True))
    }

    def once(name: str, command: list[str]) -> None:
        began, used = time.perf_counter(), clock()
        done = subprocess.run(command, capture_output=True, check=False)
        found[name].append(time.perf_counter() - began)
        cpu[name].append(clock() - used)
        assert done.returncode in {0, 1, 3}, done.stderr.decode()

    def one_round() -> None:
        # In turn, so that what else the machine does meets each alike.
        once("ours", ours)
        for name, storage in storages.items():
            tool = [str(Path(sys.executable).with_name("pytest-benchmark"))]
            once(name, [*tool, "--storage", f"file://{storage}", "compare", "0090", "0098"])

    benchmark.pedantic(one_round, rounds=ROUNDS, iterations=1, warmup_rounds=1)
    kept = {name: values[1:] for name, values in found.items()}
    used = {name: values[1:] for name, values in cpu.items()}
    benchmark.extra_info.update(figure="compare", seconds=kept, cpu=used, load=os.getloadavg()[0])
