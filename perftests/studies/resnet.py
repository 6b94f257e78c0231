"""ResNet-50 from end to end: stock torch, torch.compile and our fused kernels."""

from __future__ import annotations

import time
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import torch

from perftests.harness.energy import EnergyError, Power
from perftests.studies import resnet_energy, resnet_report
from perftests.studies.frame import (
    Findings,
    Scope,
    Study,
    missing,
    reason_of,
)
from perftests.studies.kept import Timed, keep
from perftests.studies.resnet_arithmetic import Folded, Fused, Stock
from perftests.studies.resnet_bound import DEVIATIONS
from perftests.studies.resnet_loop import busy, idle_power, iteration_times, joined, loaded
from perftests.studies.resnet_model import RESNET50, Plan, ResNet
from perftests.studies.resnet_problem import Problem, channels_first
from perftests.studies.resnet_report import STOCK, UNITS, Measured, published_rows
from perftests.studies.tables import Section

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from perftests.harness.session import Bench
    from perftests.studies.counter import Load
    from perftests.studies.tables import Row

Make: TypeAlias = "Callable[[torch.Tensor], Callable[[torch.Tensor], torch.Tensor]]"
IMAGES, SIZE = 64, 224
SMALL_IMAGES, SMALL_SIZE = 2, 64
FEW_IMAGES = 4
"""A batch whose kernels are shorter than the host needs to launch them, on a large GPU."""
ENOUGH_S = 60.0
"""After this no further way is begun that must be compiled first."""
CLAIM = (
    "Fusing elementwise steps brings a ResNet-50 iteration from 58 to 41 ms (-29 %), GPU "
    "utilisation from 65 to 92 % and efficiency from 1.2 to 1.8 TFLOPS/W; the fusions are scale "
    "with ReLU, and Conv, BN, ReLU and Add as fused Conv-BN-ReLU and fused add. Source: the "
    'article "Elementwise optimisation in practice" (ReLU), which tells neither batch nor GPU, but '
    "names 900 GB/s of DRAM, those of a V100."
)


class Way(NamedTuple):
    """One way to run the model: images [N, 3, H, W], channels last, to logits.

    `make` builds it, which may take long; `folded` says that its weights hold the batch norms.
    """

    name: str
    make: Make
    folded: bool = False
    compiles: bool = False


def ways(model: ResNet, *, gpu: bool) -> tuple[Way, ...]:
    """Return the ways to run a prepared model in the order in which they are measured."""
    stock, fused = Way(STOCK, _eager(model, Stock())), Way("fused", _eager(model, Fused()))
    folded = Way("folded", _eager(model, Folded()), folded=True)
    if not gpu:
        return stock, fused, folded
    return (
        stock,
        fused,
        Way("torch.compile", _compiled(model, Stock()), compiles=True),
        Way("fused, CUDA graph", _graph(model, Fused())),
        folded,
        Way("fused, torch.compile", _compiled(model, Fused()), compiles=True),
    )


def ways_for_few(model: ResNet, *, gpu: bool) -> tuple[Way, ...]:
    """Return the ways that show the host's part: launches one by one, and a whole graph at once."""
    if not gpu:
        return ways(model, gpu=False)
    return (
        Way(STOCK, _eager(model, Stock())),
        Way("fused", _eager(model, Fused())),
        Way("stock, CUDA graph", _graph(model, Stock())),
        Way("fused, CUDA graph", _graph(model, Fused())),
    )


def _eager(model: ResNet, arithmetic: Stock) -> Make:
    return lambda _images: partial(model, arithmetic)


def _compiled(model: ResNet, arithmetic: Stock) -> Make:
    return lambda _images: partial(torch.compile(model, dynamic=False), arithmetic)


def _graph(model: ResNet, arithmetic: Stock) -> Make:
    return partial(Graphed, partial(model, arithmetic))


class Graphed:
    """A model as a CUDA graph over images of its own."""

    def __init__(self, call: Callable[[torch.Tensor], torch.Tensor], images: torch.Tensor) -> None:
        self._images = images.clone()
        call(self._images)
        torch.cuda.synchronize(images.device)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph, capture_error_mode="thread_local"):
            self._logits = call(self._images)

    def __call__(self, images: torch.Tensor) -> torch.Tensor:
        """Copy the images in, replay, and return the graph's own logits."""
        self._images.copy_(images)
        self._graph.replay()
        return self._logits


def run(scope: Scope) -> Findings:
    """Measure every way and hold each against fp32."""
    images, size = (SMALL_IMAGES, SMALL_SIZE) if scope.small else (IMAGES, SIZE)
    return study(scope, RESNET50, images, size)


def study(scope: Scope, plan: Plan, images: int, size: int) -> Findings:
    """Measure a network of any plan."""
    began = time.perf_counter()
    bench = scope.session.bench(scope.device)
    with fast_convolutions():
        problem = Problem(scope, plan, images, size)
        before, no_power = _idle(bench)
        ran: list[Ran] = []
        for way in ways(problem.model, gpu=scope.gpu):
            if way.compiles and time.perf_counter() - began > ENOUGH_S:
                ran.append(Ran(Measured(way.name, why="the study's time was up")))
                continue
            ran.append(_measured(scope, problem, way, powered=before is not None))
        after, _ = _idle(bench)
        few = _few(scope, problem) if scope.gpu else []
        found, found_few = _seen_busy(bench, ran), _seen_busy(bench, few)
    idle = before if before is None or after is None else joined(before, after)
    _keep_all(scope, problem, found, idle)
    return _findings(scope, problem, found, found_few, idle, no_power)


def _findings(
    scope: Scope,
    problem: Problem,
    found: list[Measured],
    found_few: list[Measured],
    idle: Power | None,
    no_power: str | None,
) -> Findings:
    rows = resnet_report.rows(found, problem.images, problem.flop)
    failed = [each for each in found if not each.seconds]
    if not rows:
        raise RuntimeError(f"nothing ran: {'; '.join(f'{f.name}: {f.why}' for f in failed)}")
    energies = resnet_energy.rows(found, problem.images, problem.flop, idle)
    sections = [Section("Iterations", _how(problem), rows, UNITS)]
    if energies:
        sections.append(
            Section("Efficiency", resnet_energy.how(idle), energies, resnet_energy.UNITS)
        )
    if no_power is not None:
        sections.append(missing("Efficiency", no_power))
    if scope.gpu:
        facts = scope.facts()["environment"]
        model, limit = str(facts["gpu_model"]), facts["power_limit_w"]
        beside = published_rows(rows, energies, model, limit)
        sections.append(Section("Published beside ours", _BESIDE, beside))
    few = _few_rows(found_few, problem.flop * FEW_IMAGES // problem.images)
    if few:
        sections.append(Section("With few images", _FEW, few, UNITS))
    sections += [missing(each.name, each.why or "unknown") for each in failed]
    told = resnet_report.verdict(rows, energies, failed, gpu=scope.gpu)
    told += resnet_report.told_few(few, FEW_IMAGES)
    draw = partial(resnet_report.draw, ways=rows, energies=energies)
    return Findings(tuple(sections), told, draw)


@contextmanager
def fast_convolutions() -> Iterator[None]:
    """Let cuDNN look for its fastest algorithm, as one does who runs one shape again and again."""
    before = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = True
    try:
        yield
    finally:
        torch.backends.cudnn.benchmark = before


def _idle(bench: Bench) -> tuple[Power | None, str | None]:
    """Return the idle power, or why there is none."""
    if bench.device.kind == "cpu":
        return None, "a CPU has no energy counter that is read here"
    try:
        with _on(bench):
            return idle_power(bench), None
    except EnergyError as error:
        return None, str(error)


class Ran(NamedTuple):
    """What was found of a way, and the call that runs it once more, None where it failed."""

    measured: Measured
    call: Callable[[], object] | None = None


def _measured(scope: Scope, problem: Problem, way: Way, *, powered: bool) -> Ran:
    """Measure one way: through the chain of trust, then in a loop as an application runs it."""
    bench = scope.session.bench(scope.device)
    images = channels_first(problem.sample)
    try:
        with _on(bench), torch.no_grad():
            began = time.perf_counter()
            call = way.make(images)
            call(images)
            bench.device.synchronize()
            first_s = time.perf_counter() - began
        outcome = scope.measure(problem.workload(way.name, call, folded=way.folded))
        loop = partial(call, images)
        with _on(bench), torch.no_grad():
            seconds = iteration_times(loop, bench)
            load, why = _load(loop, bench, median(seconds)) if powered else (None, None)
            if scope.gpu:  # a host's pace drifts: half before the window for energy, half after
                seconds += iteration_times(loop, bench)
    except Exception as error:  # noqa: BLE001 - the other ways go on
        return Ran(Measured(way.name, why=reason_of(error)))
    gpu_s = median(outcome.seconds) if scope.gpu else None
    ratio = outcome.result["correctness"]["worst_ratio"]
    return Ran(Measured(way.name, seconds, first_s, gpu_s, ratio, load=load, no_load=why), loop)


def _load(
    loop: Callable[[], object], bench: Bench, iteration_s: float
) -> tuple[Load | None, str | None]:
    """Return the energy of a way's iterations, or why there is none; its times count without."""
    try:
        return loaded(loop, bench, iteration_s), None
    except EnergyError as error:
        return None, str(error)


def _few(scope: Scope, problem: Problem) -> list[Ran]:
    """Time a batch so small that the host is the limit, each way that needs no compiler."""
    bench, small = scope.session.bench(scope.device), problem.of(FEW_IMAGES)
    images = channels_first(small.sample)
    ran = []
    for way in ways_for_few(problem.model, gpu=scope.gpu):
        try:
            with _on(bench), torch.no_grad():
                call = way.make(images)
                rough = small.expected(small.sample, folded=way.folded)
                error = (call(images).float() - rough.value).abs() / rough.variance.sqrt()
                worst = float(error.max()) / DEVIATIONS
                if not worst <= 1:
                    why = f"its error is {worst:.3g} of the bound"
                    ran.append(Ran(Measured(way.name, why=why)))
                    continue
                loop = partial(call, images)
                seconds = iteration_times(loop, bench)
        except Exception as error:  # noqa: BLE001 - the other ways go on
            ran.append(Ran(Measured(way.name, why=reason_of(error))))
            continue
        ran.append(Ran(Measured(way.name, seconds, of_bound=worst), loop))
    return ran


def _few_rows(found: list[Measured], flop: int) -> list[Row]:
    rows = resnet_report.rows(found, FEW_IMAGES, flop)
    return rows + [{"way": each.name, "not measured": str(each.why)} for each in found if each.why]


def _seen_busy(bench: Bench, ran: list[Ran]) -> list[Measured]:
    """Return what was found with how busy the GPU is, which is looked at when all is timed.

    torch's profiler leaves CUPTI in the process, which makes every launch after it slower: what is
    timed before it and what is timed after it do not compare.
    """
    found = []
    for measured, call in ran:
        if call is None or bench.device.kind == "cpu":
            found.append(measured)
            continue
        try:
            with _on(bench), torch.no_grad():
                found.append(replace(measured, busy=busy(call, bench)))
        except Exception:  # noqa: BLE001 - no more than how busy the GPU is remains untold
            found.append(measured)
    return found


@contextmanager
def _on(bench: Bench) -> Iterator[None]:
    with ExitStack() as stack:
        stack.enter_context(bench.lock.alone())
        stack.enter_context(bench.device.stream())
        yield


def _keep_all(scope: Scope, problem: Problem, found: list[Measured], idle: Power | None) -> None:
    """Keep the iterations for the store; the chain of trust has passed their output."""
    for each in found:
        if each.seconds:
            _keep(scope, problem, each, idle)


def _keep(scope: Scope, problem: Problem, each: Measured, idle: Power | None) -> None:
    described = problem.workload(each.name, lambda images: images)
    energy = resnet_energy.as_record(each, problem.flop, idle)
    reason = f"not measured: {each.no_load}" if each.no_load else None
    keep(
        scope,
        Timed(
            kernel=described.kernel,
            implementation=described.implementation,
            dtype=described.identity_dtype,
            shape=described.identity_shape,
            seconds=each.seconds,
            timer="cuda_event_iterations" if scope.gpu else "host_clock",
            passed=True,
            cache="iterations",
            bytes_moved=described.bytes_moved,
            flop=described.flop,
            energy=energy,
            reasons={} if reason is None else {"energy": reason},
            source_file=described.source_file,
        ),
    )


def _how(problem: Problem) -> str:
    return (
        f"{problem.images} images of {problem.size} x {problem.size} in fp16, channels last, "
        f"{problem.flop / problem.images / 2e9:.2f} GMAC an image; iterations one behind the "
        "other, the host's pace included; `launches alone` is the same through the chain of trust, "
        "L2 cold, the host's latency hidden; busy is the time in which a kernel runs (CUPTI, after "
        "all was timed: it slows launches for the rest of a process) over the iteration; the bound "
        f"is {DEVIATIONS:g} standard deviations of all fp16 roundings followed to the logits"
    )


_FEW = (
    f"The same with {FEW_IMAGES} images, whose kernels are shorter than the host needs to launch "
    "them one by one; outputs held against the same bound"
)


_BESIDE = (
    "The article's figures before and after its fusions, and ours for stock torch and the fastest "
    "way; the batch of the article is unknown, so that only relations can be compared"
)

STUDY = Study("resnet", "ResNet-50 from end to end", CLAIM, run, host=True)
