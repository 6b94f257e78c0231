"""A realistic store of any size: commits in a row, noise, steps, reruns, a driver upgrade.

    python -m tracker.store.generate FILE --results 1000000

Seeded: one call gives one content. Every result is one of some dozens that were made for its case,
so that a million take minutes; everything else (rows, indexes, digests) is as if recorded.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from itertools import islice, product

import click
import numpy as np

from tracker.errors import StoreError
from tracker.model import (
    Case,
    Checkout,
    Commit,
    Correctness,
    Device,
    DeviceState,
    Environment,
    FirstCall,
    Peaks,
    Result,
    Run,
    Status,
)
from tracker.record.dump import digest_of_parts, result_digest
from tracker.stats.summary import summarize
from tracker.store.prepare import Prepared, PreparedResult, prepare_header, prepare_result
from tracker.store.store import Store
from tracker.store.writer import Stored, write_run

KERNELS = ("copy", "relu", "add", "silu", "softmax", "layer_norm", "rms_norm", "fused_transform")
IMPLEMENTATIONS = ("torch", "torch_compile", "triton", "cuda_scalar", "cuda_vector")
DTYPES = {"float32": 4, "float16": 2, "bfloat16": 2}
CACHES = ("cold", "warm")
# Name, copy bandwidth in bytes per second, share of the runs.
MODELS = (("NVIDIA H200", 4.2e12, 0.7), ("NVIDIA A100", 1.7e12, 0.2), ("NVIDIA L40S", 7e11, 0.1))
START = datetime(2024, 1, 1, tzinfo=UTC)
_VARIANTS = 20
_RUNS_A_TRANSACTION = 20


@dataclass(frozen=True, slots=True)
class Plan:
    """What to make: runs of `cases` cases with `measurements` each; equal plans, equal stores."""

    runs: int
    cases: int = 1000
    measurements: int = 100
    models: int = 3
    seed: int = 1


def cases(count: int) -> list[Case]:
    """Return distinct cases as a suite of kernels has them."""
    sizes = (1 << 20, 1 << 24, 1 << 26, *((1 << 20) + 4099 * n for n in range(1, count)))
    named = product(sizes, CACHES, DTYPES, KERNELS, IMPLEMENTATIONS)
    return [
        Case(kernel, implementation, dtype, (size,), cache=cache)
        for size, cache, dtype, kernel, implementation in islice(named, count)
    ]


class Generator:
    """Runs of a plan, one by one, in the order of their commits."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._rng = np.random.default_rng(plan.seed)
        self._cases = cases(plan.cases)
        # Where each case's level changes, as a share of the history, and by how much.
        self._steps = self._rng.uniform(0.2, 0.9, plan.cases)
        changed = self._rng.random(plan.cases) < 0.3
        self._factors = np.where(changed, self._rng.uniform(0.9, 1.12, plan.cases), 1.0)
        self._shares = np.array([share for _, _, share in MODELS[: plan.models]])
        self._facts: dict[str, tuple[str | None, str]] = {}
        self._made: dict[int, list[list[tuple[PreparedResult, bytes]]]] = {}

    def runs(self, first: int = 0, last: int | None = None) -> Iterator[Prepared]:
        """Yield the plan's runs `first` to `last` (excluded; past the plan's end is allowed)."""
        for number in range(first, self.plan.runs if last is None else last):
            yield self.run(number)

    def run(self, number: int) -> Prepared:
        """Return one run's rows."""
        rng = np.random.default_rng((self.plan.seed, number))
        model = int(rng.choice(len(self._shares), p=self._shares / self._shares.sum()))
        made = self._results_on(model)
        place = number / max(1, self.plan.runs)
        half = self._variants // 2
        picks = rng.integers(0, half, self.plan.cases) + half * (place >= self._steps)
        chosen = [made[case][pick] for case, pick in enumerate(picks)]
        run = self._header(number, model, dirty=bool(rng.random() < 0.03))
        digest = digest_of_parts(run, (part for _, part in chosen))
        facts = {p.facts_key: self._facts[p.facts_key] for p, _ in chosen}
        return prepare_header(run, digest, facts, tuple(p for p, _ in chosen))

    @cached_property
    def _variants(self) -> int:
        return 2 * max(2, min(_VARIANTS, self.plan.runs) // 2)

    def _header(self, number: int, model: int, *, dirty: bool) -> Run:
        name = MODELS[model][0]
        began = START + timedelta(minutes=30 * number)
        # Every tenth run measures the commit before it again.
        commit = number - 1 if number % 10 == 9 else number
        upgraded = number > 0.6 * self.plan.runs
        return Run(
            run_id=f"generated-{self.plan.seed}-{number:08d}",
            started_at=began.isoformat(),
            finished_at=(began + timedelta(minutes=9)).isoformat(),
            environment=Environment(
                backend="cuda",
                gpu_model=name,
                driver="580.95.05" if upgraded else "570.86.10",
                cuda="13.0",
                compute_capability="9.0",
                libraries={"torch": "2.11.0", "triton": "3.6.0"},
                clock_policy="default",
                power_limit_w=700.0,
                ecc=True,
                mig=False,
                l2_bytes=62914560,
                os="Linux 6.8",
                python="3.12.3",
            ),
            device=Device(f"GPU-{model}0000000-0000-0000-0000-000000000000", name, 150 << 30, 132),
            checkout=Checkout(commit=commit_of(commit), branch="main", dirty=dirty),
            results=(),
            command="pytest --benchmark",
            ci={"name": "github", "url": f"https://ci.example/runs/{number}"},
        )

    def _results_on(self, model: int) -> list[list[tuple[PreparedResult, bytes]]]:
        """Return for each case its variants, those of the level before the step first."""
        if model not in self._made:
            self._made[model] = [
                [self._packed(result) for result in self._of_case(index, case, model)]
                for index, case in enumerate(self._cases)
            ]
        return self._made[model]

    def _packed(self, result: Result) -> tuple[PreparedResult, bytes]:
        return prepare_result(result, self._facts), result_digest(result)

    def _of_case(self, index: int, case: Case, model: int) -> Iterator[Result]:
        rng = np.random.default_rng((self.plan.seed, model, index, 7))
        rate = MODELS[model][1] * rng.uniform(0.5, 0.97)
        bytes_moved = 2 * case.shape[0] * DTYPES[case.dtype]
        base = 2e-6 + bytes_moved / rate
        first = _result(case, bytes_moved, MODELS[model][1])
        for variant in range(self._variants):
            late = variant >= self._variants // 2
            level = base * (self._factors[index] if late else 1.0) * np.exp(rng.normal(0, 0.003))
            noise = rng.normal(0, 0.004, self.plan.measurements)
            spikes = rng.random(self.plan.measurements) < 0.01
            times = level * np.exp(noise + np.where(spikes, rng.uniform(0.1, 0.5), 0.0))
            sample = _event_times(times)
            yield replace(
                first,
                measurements_s=sample,
                summary=summarize(sample),
                median_cycles=round(float(np.median(sample)) * 1.98e9, 1),
                during=DeviceState(
                    1.98e9 - 1.5e7 * float(rng.integers(0, 8)), 3.2e9, 44.0, 498.2, (), 0
                ),
                code_fingerprint=f"{index:08x}{int(late):08x}",
            )


def _event_times(times_s: np.ndarray) -> tuple[float, ...]:
    """Return times as CUDA events give them: float32 milliseconds in steps of 32 ns."""
    steps = np.maximum(1, np.rint(times_s / 32e-9)) * 32
    return tuple(((steps * 1e-6).astype(np.float32).astype(np.float64) / 1e3).tolist())


def _result(case: Case, bytes_moved: int, copy: float) -> Result:
    return Result(
        case=case,
        status=Status.OK,
        bytes_moved=bytes_moved,
        flop=case.shape[0],
        timer="cuda events",
        stop_reason="interval narrow enough",
        correctness=Correctness(checked=True, passed=True, worst_error=0.0, bound=0.0),
        first_call=FirstCall(0.31, 0.002, 2.5e-5),
        before=DeviceState(1.98e9, 3.2e9, 41.0, 121.5, (), 0),
        after=DeviceState(1.98e9, 3.2e9, 43.0, 250.0, (), 0),
        peaks=Peaks(1.15 * copy, copy, "copy of the same size", None, 6.7e13, 2.4e-6),
        source_file=f"kernels/{case.kernel}/cuda.cu",
        source_line=12,
        test=f"perftests/test_{case.kernel}.py::test_{case.kernel}[{case.implementation}]",
        reasons={"energy": "not asked for", "counters": "not asked for"},
    )


def commit_of(number: int) -> Commit:
    """Return one commit of the generated line."""
    time = (START + timedelta(minutes=30 * number)).isoformat()
    # Commits 9, 19, ... do not exist: their runs measured the one before again.
    parents = (_sha(number - (2 if number % 10 == 0 else 1)),) if number else ()
    return Commit(_sha(number), parents, "Ada <ada@example.org>", time, time, f"Change {number}")


def _sha(number: int) -> str:
    return f"{number * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF:016x}{number:024x}"


def fill(store: Store, runs: Iterator[Prepared] | Sequence[Prepared]) -> int:
    """Write prepared runs, several in one transaction, and return how many there were."""
    iterator, count = iter(runs), 0
    while batch := list(islice(iterator, _RUNS_A_TRANSACTION)):
        with store.writing("generate runs") as (connection, revision):
            for prepared in batch:
                write_run(connection, prepared, Stored(revision, prepared.run.finished_at))
        count += len(batch)
    return count


@click.command()
@click.argument("address", metavar="STORE")
@click.option("--results", type=click.IntRange(1), default=100_000, show_default=True)
@click.option("--cases", "count", type=click.IntRange(1), default=1000, show_default=True)
@click.option("--measurements", type=click.IntRange(1), default=100, show_default=True)
@click.option("--models", type=click.IntRange(1, len(MODELS)), default=3, show_default=True)
@click.option("--seed", type=int, default=1, show_default=True)
def main(address: str, results: int, count: int, measurements: int, models: int, seed: int) -> None:
    """Fill an empty STORE with about so many results."""
    plan = Plan(max(1, results // count), count, measurements, models, seed)
    try:
        with Store.open(address) as store:
            runs = fill(store, Generator(plan).runs())
            click.echo(f"{store.name}: {runs} runs, {runs * count} results")
    except StoreError as error:
        raise click.ClickException(str(error)) from error


if __name__ == "__main__":
    main()
