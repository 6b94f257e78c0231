"""ResNet-50 from end to end: stock torch, torch.compile and our fused kernels."""

from __future__ import annotations

import time
from contextlib import ExitStack, contextmanager
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import torch

from perftests.harness.energy import EnergyError, Power
from perftests.studies import resnet_report
from perftests.studies.frame import (
    Findings,
    Scope,
    Study,
    attempted,
    measured_rows,
    missing,
    reason_of,
)
from perftests.studies.kept import Timed, keep
from perftests.studies.resnet_arithmetic import Folded, Fused, Stock
from perftests.studies.resnet_bound import DEVIATIONS
from perftests.studies.resnet_loop import Busy, Load, busy, idle_power, iteration_times, loaded
from perftests.studies.resnet_model import RESNET50, Plan, ResNet
from perftests.studies.resnet_problem import Problem, channels_first
from perftests.studies.resnet_report import STOCK, UNITS, Measured, published_rows
from perftests.studies.tables import Section

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from perftests.harness.session import Bench

Make: TypeAlias = "Callable[[torch.Tensor], Callable[[torch.Tensor], torch.Tensor]]"
IMAGES, SIZE = 64, 224
SMALL_IMAGES, SMALL_SIZE = 2, 64
FEW_IMAGES = 4
"""A batch whose kernels are shorter than the host needs to launch them, on a large GPU."""
ENOUGH_S = 45.0
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
        idle, no_power = _idle(bench)
        found = []
        for way in ways(problem.model, gpu=scope.gpu):
            if way.compiles and time.perf_counter() - began > ENOUGH_S:
                found.append(Measured(way.name, why="the study's time was up"))
                continue
            found.append(_measured(scope, problem, way, powered=idle is not None))
        few = attempted("With few images", lambda: _few(scope, problem)) if scope.gpu else None
    rows = resnet_report.rows(found, images, problem.flop, idle)
    failed = [each for each in found if not each.seconds]
    if not rows:
        raise RuntimeError(f"nothing ran: {'; '.join(f'{f.name}: {f.why}' for f in failed)}")
    sections = [Section("Iterations", _how(problem), rows, UNITS)]
    if scope.gpu:
        facts = scope.facts()["environment"]
        beside = published_rows(rows, str(facts["gpu_model"]), facts["power_limit_w"])
        sections.append(Section("Published beside ours", _BESIDE, beside))
    if few is not None:
        sections.append(few)
    sections += [missing(each.name, each.why or "unknown") for each in failed]
    if no_power is not None:
        sections.append(missing("Power and efficiency", no_power))
    told = resnet_report.verdict(rows, failed, gpu=scope.gpu)
    if few is not None:
        told += resnet_report.told_few(measured_rows(few), FEW_IMAGES)
    return Findings(tuple(sections), told, lambda figure: resnet_report.draw(figure, rows))


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
        with bench.lock.alone(), bench.device.stream():
            return idle_power(bench), None
    except EnergyError as error:
        return None, str(error)


def _measured(scope: Scope, problem: Problem, way: Way, *, powered: bool) -> Measured:
    """Measure one way: through the chain of trust, then in a loop as an application runs it."""
    bench = scope.session.bench(scope.device)
    try:
        with _on(bench), torch.no_grad():
            began = time.perf_counter()
            call = way.make(channels_first(problem.sample))
            call(channels_first(problem.sample))
            bench.device.synchronize()
            first_s = time.perf_counter() - began
        outcome = scope.measure(problem.workload(way.name, call, folded=way.folded))
        with _on(bench), torch.no_grad():
            seconds = iteration_times(partial(call, channels_first(problem.sample)), bench)
            loop = partial(call, channels_first(problem.sample))
            seen, load = _watched(loop, bench, median(seconds) if powered else None)
    except Exception as error:  # noqa: BLE001 - the other ways go on
        return Measured(way.name, why=reason_of(error))
    _keep(scope, problem, way, seconds, load)
    gpu_s = median(outcome.seconds) if scope.gpu else None
    ratio = outcome.result["correctness"]["worst_ratio"]
    return Measured(way.name, seconds, first_s, gpu_s, ratio, seen, load)


def _few(scope: Scope, problem: Problem) -> Section:
    """Measure a batch so small that the host is the limit, each way that needs no compiler."""
    bench, small = scope.session.bench(scope.device), problem.of(FEW_IMAGES)
    found = []
    for way in ways_for_few(problem.model, gpu=scope.gpu):
        with _on(bench), torch.no_grad():
            images = channels_first(small.sample)
            call = way.make(images)
            rough = small.expected(small.sample, folded=way.folded)
            error = (call(images).float() - rough.value).abs() / rough.variance.sqrt()
            worst = float(error.max()) / DEVIATIONS
            if not worst <= 1:
                found.append(Measured(way.name, why=f"its error is {worst:.3g} of the bound"))
                continue
            call = partial(call, images)
            seconds = iteration_times(call, bench)
            found.append(Measured(way.name, seconds, of_bound=worst, busy=busy(call, bench)))
    rows = resnet_report.rows(found, FEW_IMAGES, small.flop, None)
    rows += [{"way": each.name, "not measured": str(each.why)} for each in found if each.why]
    how = (
        f"The same with {FEW_IMAGES} images, whose kernels are shorter than the host needs to "
        "launch them one by one; outputs held against the same bound"
    )
    return Section("With few images", how, rows, UNITS)


@contextmanager
def _on(bench: Bench) -> Iterator[None]:
    with ExitStack() as stack:
        stack.enter_context(bench.lock.alone())
        stack.enter_context(bench.device.stream())
        yield


def _watched(
    call: Callable[[], object], bench: Bench, iteration_s: float | None
) -> tuple[Busy | None, Load | None]:
    """Return how busy the GPU is and what it draws, None for what cannot be told here.

    Without `iteration_s` there is no counter of energy to read.
    """
    if bench.device.kind == "cpu":
        return None, None
    return busy(call, bench), None if iteration_s is None else loaded(call, bench, iteration_s)


def _keep(
    scope: Scope, problem: Problem, way: Way, seconds: list[float], load: Load | None
) -> None:
    """Keep the iterations for the store; the chain of trust has passed their output."""
    described = problem.workload(way.name, lambda images: images)
    energy: dict[str, float | None] | None = None
    reasons = {}
    if load is not None and load.per_s * median(seconds) < resnet_report.LEAST_PACE:
        reasons["energy"] = "the device waited for the host while the energy counter was read"
    elif load is not None:
        energy = {
            "power_w": load.power.watts,
            "power_w_error": load.power.error_w,
            "gflops_per_w": problem.flop * load.per_s / load.power.watts / 1e9,
            "launches_per_s": load.per_s,
            "window_s": load.power.window_s,
            "steps": float(load.power.steps),
        }
    keep(
        scope,
        Timed(
            kernel=described.kernel,
            implementation=described.implementation,
            dtype=described.dtype,
            shape=described.identity_shape,
            seconds=seconds,
            timer="cuda_event_iterations" if scope.gpu else "host_clock",
            passed=True,
            cache="iterations",
            bytes_moved=described.bytes_moved,
            flop=described.flop,
            energy=energy,
            reasons=reasons,
            source_file=described.source_file,
        ),
    )


def _how(problem: Problem) -> str:
    return (
        f"{problem.images} images of {problem.size} x {problem.size} in fp16, channels last, "
        f"{problem.flop / problem.images / 2e9:.2f} GMAC an image; iterations one behind the "
        "other, the host's pace included; `launches alone` is the same through the chain of trust, "
        "L2 cold, the host's latency hidden; busy is the time in which a kernel runs (CUPTI) over "
        "the iteration; power is that of the board by its energy counter, pace "
        f"the iterations while it was read over those alone, and FLOP a joule are left out below "
        f"{resnet_report.LEAST_PACE:.0%} of it; the bound is "
        f"{DEVIATIONS:g} standard deviations of all fp16 roundings followed to the logits"
    )


_BESIDE = (
    "The article's figures before and after its fusions, and ours for stock torch and the fastest "
    "way; the batch of the article is unknown, so that only relations can be compared"
)

STUDY = Study("resnet", "ResNet-50 from end to end", CLAIM, run)
