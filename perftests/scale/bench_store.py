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
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest

from perftests.scale.stores import HUGE, PLANS, Stores, cpu_clock, next_run, write_storage
from tracker import queries
from tracker.cli.main import main
from tracker.queries.columns import collector_paused
from tracker.record import load_run, write_run
from tracker.store import Store
from tracker.tests.cluster import Cluster, MissingError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROUNDS = int(os.environ.get("BANDWATCH_SCALE_ROUNDS", "7"))
WITH_HUGE = os.environ.get("BANDWATCH_SCALE_HUGE") == "yes"
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


def _record(measure: Any, address: str, file: Path, **figure: Any) -> None:
    """Measure a record file of 1,000 cases x 100 measurements: read, checked, stored."""
    with Store.open(address) as store:

        def prepare() -> None:
            write_run(next_run(store), file)

        def record() -> None:
            assert store.record(load_run(file)).inserted

        measure(record, setup=prepare, **figure)


def _check(measure: Any, address: str, **figure: Any) -> None:
    """Measure `bandwatch check` of the newest run: load, judge, print."""
    with Store.open(address) as store:
        store.record(next_run(store))

    def check() -> None:
        with redirect_stdout(io.StringIO()) as out:
            code = main(["check", "latest", "--store", address])
        assert code in {0, 1, 3}, out.getvalue()

    measure(check, **figure)


def _overview(measure: Any, address: str, **figure: Any) -> None:
    """Measure how much there is, by GPU model."""
    with Store.open(address, read_only=True) as store:
        measure(lambda: queries.overview(store), **figure)


@pytest.mark.parametrize("size", ["small", "large"])
def test_record(measure: Any, stores: Stores, engine: str, size: str, tmp_path: Path) -> None:
    """Recording into a store of 100,000 and of 1,000,000 results."""
    goal = None if size == "small" else {"sqlite": 1.0, "postgresql": 1.5}[engine]
    address, file = stores.address(engine, size), tmp_path / "run.json"
    _record(measure, address, file, figure=f"record, {size}", goal_s=goal)


@pytest.mark.parametrize("size", ["small", "large"])
def test_check(measure: Any, stores: Stores, engine: str, size: str) -> None:
    """Judging a run among 100 and among 1,000."""
    goal = 2.0 if size == "large" else None
    _check(measure, stores.address(engine, size), figure=f"check, {size}", goal_s=goal)


def test_overview(measure: Any, stores: Stores, engine: str) -> None:
    """What the first page asks for."""
    goal = {"sqlite": 0.3, "postgresql": 1.0}[engine]
    _overview(measure, stores.address(engine, "large"), figure="overview, large", goal_s=goal)


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


def test_compare_against_pytest_benchmark(
    stores: Stores, benchmark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two of 100 stored runs of 1,000 cases: both commands from the start of Python to their table.

    And both in one process, without that start; and our reading alone, since the other judges
    nothing.
    """
    monkeypatch.chdir(tmp_path)
    address = stores.address("sqlite", "small")
    with Store.open(address, read_only=True) as store:
        runs = sorted(queries.runs(store, limit=None), key=lambda run: run.number)
        first, second = (runs[index].run_id for index in (89, 97))
    commands = {"ours": ["bandwatch", "compare", first, second, "--store", address]}
    for name, data in (("stats only", False), ("with data", True)):
        folder = write_storage(stores.folder / f"storage-{name[:5].strip()}", address, data=data)
        storage = ["--storage", f"file://{folder}"]
        commands[name] = ["pytest-benchmark", *storage, "compare", "0090", "0098"]
    found: dict[str, list[float]] = {}
    cpu: dict[str, list[float]] = {}
    clock = cpu_clock(None)

    def once(name: str, work: Callable[[], int]) -> None:
        began, used = time.perf_counter(), clock()
        code = work()
        found.setdefault(name, []).append(time.perf_counter() - began)
        cpu.setdefault(name, []).append(clock() - used)
        assert code in {0, 1, 3}, name

    def one_round() -> None:
        # In turn, so that what else the machine does meets each alike.
        for name, command in commands.items():
            once(name, partial(_as_command, command))
            once(f"in process, {name}", partial(_in_process, command))
            side = partial(_side_by_side, address, first, second) if name == "ours" else None
            once(f"side by side, {name}", side or partial(_in_process, command))

    benchmark.pedantic(one_round, rounds=ROUNDS, iterations=1, warmup_rounds=1)
    kept = {name: values[1:] for name, values in found.items()}
    used = {name: values[1:] for name, values in cpu.items()}
    benchmark.extra_info.update(figure="compare", seconds=kept, cpu=used, load=os.getloadavg()[0])


def _as_command(command: list[str]) -> int:
    program = str(Path(sys.executable).with_name(command[0]))
    # As installed: the bytecode of both is there. Ours is that of a checkout, kept by the first of
    # the rounds unless the environment says not to.
    environ = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    # In an empty folder: there pytest-benchmark finds no conftest to import and no settings.
    with TemporaryDirectory() as folder:
        done = subprocess.run(
            [program, *command[1:]], capture_output=True, check=False, cwd=folder, env=environ
        )
    return done.returncode


def _side_by_side(address: str, first: str, second: str) -> int:
    # All as the command does it.
    with Store.open(address, read_only=True) as store, store.one_moment(), collector_paused():
        base, head = (queries.find_run(store, run_id) for run_id in (first, second))
        found = queries.side_by_side(store, base, head)
        numbers = [side[name] for name in queries.SIDE for side in (found.base, found.head)]
        form = "%-80s" + " %10.4g" * len(numbers)
        lines = [form % row for row in zip(found.labels, *numbers, strict=True)]
    return 0 if len("\n".join(lines)) > 100_000 else 2


def _in_process(command: list[str]) -> int:
    import pytest_benchmark.cli

    arguments = sys.argv
    try:
        sys.argv = command
        with redirect_stdout(io.StringIO()):
            if command[0] == "bandwatch":
                return main(command[1:])
            pytest_benchmark.cli.main()  # type: ignore[no-untyped-call]
    finally:
        sys.argv = arguments
    return 0


@pytest.mark.skipif(not WITH_HUGE, reason="asked for by --ten-million")
@pytest.mark.parametrize("engine", ["postgresql"], indirect=True)
@pytest.mark.parametrize("what", ["overview", "record", "check"])
def test_among_ten_million(
    measure: Any, stores: Stores, engine: str, what: str, tmp_path: Path
) -> None:
    """The same among 10,000,000 results; last of all, since the large store becomes that one."""
    address = stores.huge()
    with Store.open(address, read_only=True) as store:
        assert queries.overview(store).results >= 10_000_000, engine
    if what == "overview":
        _overview(measure, address, figure=f"overview, {HUGE}", goal_s=1.0)
    elif what == "record":
        _record(measure, address, tmp_path / "run.json", figure=f"record, {HUGE}", goal_s=None)
    else:
        _check(measure, address, figure=f"check, {HUGE}", goal_s=None)
