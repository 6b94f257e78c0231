"""The stores that are measured: made once, kept in a folder between measurements."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select

from perftests.scale.enlarge import enlarge
from tracker import queries
from tracker.record import new_run_id
from tracker.store import Store
from tracker.store.generate import START, Generator, Plan, commit_of, fill
from tracker.store.schema import RunRow
from tracker.store.upgrading import store_info

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tracker.model import Result, Run
    from tracker.tests.cluster import Cluster

# One GPU model: every run is then among the candidates of every other.
PLANS = {
    "large": Plan(runs=1000, models=1),
    "small": Plan(runs=100, models=1),
    "long": Plan(runs=10_000, cases=5, models=1),
}
# The store on the server that is ten times the large one, copied there by the server itself.
HUGE, TIMES = "huge", 10
FACTS = "facts.json"


class Stores:
    """Addresses of filled stores by engine and size; facts of each as it was before measuring."""

    def __init__(self, folder: Path, cluster: Cluster | None) -> None:
        self.folder, self.cluster = folder, cluster

    def address(self, engine: str, size: str) -> str:
        """Return the address of a filled store, made when first asked for."""
        plan = PLANS[size]
        if engine == "sqlite":
            address = f"sqlite:///{self.folder / f'{size}.db'}"
        else:
            if self.cluster is None:
                raise ValueError("no PostgreSQL server was started")
            address = self.cluster.url(size)
            if not self._exists(size):
                self.cluster.execute(f"CREATE DATABASE {size}")
        with Store.open(address) as store:
            with store.reading() as connection:
                held = connection.execute(select(func.count()).select_from(RunRow)).scalar_one()
            if held < plan.runs:
                fill(store, Generator(plan).runs(first=held))
                self._settle(engine, size)
        if held <= plan.runs:
            # Later it also holds what benchmarks recorded.
            self._note(f"{engine} {size}", address, plan)
        return address

    def huge(self) -> str:
        """Return the address of a server's store of ten million results, made from the large one.

        The large one becomes it: two of that size would not fit on a small disk.
        """
        if self.cluster is None:
            raise ValueError("no PostgreSQL server was started")
        if not self._exists(HUGE):
            self.address("postgresql", "large")
            self.cluster.execute(f"ALTER DATABASE large RENAME TO {HUGE}")
            enlarge(self.cluster, HUGE, TIMES)
            self._note(f"postgresql {HUGE}", self.cluster.url(HUGE), PLANS["large"], TIMES)
        return self.cluster.url(HUGE)

    def _exists(self, name: str) -> bool:
        import psycopg

        if self.cluster is None:
            return False
        with psycopg.connect(self.cluster.dsn("postgres")) as connection:
            found = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name])
            return found.fetchone() is not None

    def _settle(self, engine: str, size: str) -> None:
        # What a server does by itself after a while.
        if engine == "postgresql" and self.cluster is not None:
            self.cluster.execute("VACUUM ANALYZE", "CHECKPOINT", database=size)

    def _note(self, name: str, address: str, plan: Plan, times: int = 1) -> None:
        results = plan.runs * plan.cases * times
        facts = {"results": results, "bytes_per_result": store_info(address).size_bytes / results}
        path = self.folder / FACTS
        known = json.loads(path.read_text()) if path.exists() else {}
        path.write_text(json.dumps({**known, name: facts}))


_LIKE = 50
_STRIDE = 17
"""Runs are counted from the newest, so a stride of one would find the same run each time."""


def next_run(store: Store) -> Run:
    """Return a run of the next commit, with the results of one of the newest whole runs.

    Of another each time: what repeats to the last digit no machine measures, and it would look like
    a change in every series.
    """
    newest, *_ = last = [run for run in queries.runs(store, limit=_LIKE) if run.complete]
    began = datetime.fromtimestamp(newest.started, UTC) + timedelta(minutes=30)
    number = round((began - START) / timedelta(minutes=30))
    like = last[number * _STRIDE % len(last)]
    run = queries.load_run(store, like.run_id)
    commit = commit_of(number)
    parents = (newest.sha,) if newest.sha else ()
    return replace(
        run,
        run_id=new_run_id(),
        started_at=began.isoformat(),
        finished_at=None,
        checkout=replace(run.checkout, commit=replace(commit, parents=parents), dirty=False),
    )


def to_pytest_benchmark(run: Run, *, data: bool) -> dict[str, Any]:
    """Return a run as pytest-benchmark saves it, with the measurements or without."""
    return {
        "machine_info": {
            "node": "runner",
            "processor": "x86_64",
            "machine": "x86_64",
            "python_compiler": "GCC 13.3",
            "python_implementation": "CPython",
            "python_implementation_version": "3.12.3",
            "python_version": "3.12.3",
            "python_build": ["main", "1"],
            "release": "6.8",
            "system": "Linux",
            "cpu": {"brand_raw": "cpu", "arch": "X86_64"},
        },
        "commit_info": {
            "id": run.checkout.commit.sha if run.checkout.commit else None,
            "time": run.started_at,
            "author_time": run.started_at,
            "dirty": False,
            "project": "kernels",
            "branch": "main",
        },
        "benchmarks": [_benchmark(result, data=data) for result in run.results],
        "datetime": run.started_at,
        "version": "5.1.0",
    }


def _benchmark(result: Result, *, data: bool) -> dict[str, Any]:
    summary = result.summary
    if summary is None:
        raise ValueError(f"{result.case.label} has no summary")
    name = f"test_{result.case.kernel}[{result.case.fingerprint}]"
    spread = summary.q3_s - summary.q1_s
    stats = {
        "min": summary.min_s,
        "max": summary.max_s,
        "mean": summary.mean_s,
        "stddev": summary.stddev_s,
        "rounds": summary.count,
        "median": summary.median_s,
        "iqr": spread,
        "q1": summary.q1_s,
        "q3": summary.q3_s,
        "iqr_outliers": 0,
        "stddev_outliers": 0,
        "outliers": "0;0",
        "ld15iqr": summary.min_s,
        "hd15iqr": summary.max_s,
        "ops": 1 / summary.mean_s,
        "total": summary.mean_s * summary.count,
        "iterations": 1,
        **({"data": list(result.measurements_s)} if data else {}),
    }
    return {
        "group": None,
        "name": name,
        "fullname": f"perftests/test_{result.case.kernel}.py::{name}",
        "params": None,
        "param": None,
        "extra_info": {},
        "options": {
            "disable_gc": False,
            "timer": "perf_counter",
            "min_rounds": 5,
            "max_time": 1.0,
            "min_time": 5e-06,
            "warmup": False,
        },
        "stats": stats,
    }


def write_storage(folder: Path, address: str, *, data: bool) -> Path:
    """Write every run of a store into a folder as pytest-benchmark would have saved it."""
    place = folder / "Linux-CPython-3.12-64bit"
    if not place.exists():
        partial = place.with_name("partial")
        partial.mkdir(parents=True, exist_ok=True)
        with Store.open(address, read_only=True) as store:
            # As many as were generated: what measuring recorded since is left out.
            runs = sorted(queries.runs(store, limit=None), key=lambda run: run.number)[:100]
            for number, info in enumerate(runs, start=1):
                document = to_pytest_benchmark(queries.load_run(store, info.run_id), data=data)
                name = f"{number:04d}_{info.sha}_20260302_120000.json"
                (partial / name).write_text(json.dumps(document, indent=4))
        partial.rename(place)
    return folder


def cpu_clock(cluster: Cluster | None) -> Callable[[], float]:
    """Return a clock of processor seconds: this process, those it waited for, the server."""
    import resource

    def clock() -> float:
        used = 0.0
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
            usage = resource.getrusage(who)
            used += usage.ru_utime + usage.ru_stime
        return used + (cluster.cpu_seconds() if cluster is not None else 0.0)

    return clock
