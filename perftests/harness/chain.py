"""The chain of trust: a time is reported only when every link held.

poison -> run -> compare -> guard zones -> warm up -> timed loop -> compare what the timed loop
left -> run on fresh inputs at the same addresses -> compare again. The first link that breaks is
named, and no time leaves this module.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any, TypeVar

import torch

from perftests.harness.buffers import (
    POISON_NAN,
    POISON_NUMBER,
    BufferSet,
    BufferSets,
    allocate,
    footprint_bytes,
    same_bits,
)
from perftests.harness.clock import perf_counter
from perftests.harness.energy import measure_energy
from perftests.harness.errors import ChainBrokenError, Link, SettingError, UnfitError
from perftests.harness.record import Findings, drawn, envelope
from perftests.harness.settings import known_mode
from perftests.harness.settle import compared, settle
from perftests.harness.timing import look_at_launch, time_workload

if TYPE_CHECKING:
    from collections.abc import Callable

    from perftests.harness.arena import Arena
    from perftests.harness.compare import Comparison
    from perftests.harness.oracle import Oracle, Truth
    from perftests.harness.session import Bench, Session
    from perftests.harness.workload import Workload

_INCORRECT = {Link.COMPARE, Link.STREAM, Link.GUARD, Link.INPUTS, Link.TIMED, Link.FRESH}
_STATUS = {Link.SAMPLES: "no_sample", Link.PEAK: "over_peak"}
_MOST_SETS = 4096
_OF_CUDA = "CUDA error: "
"""How torch begins what the CUDA runtime told it of any call, its own or another's."""
_OUT_OF_ORDER = (
    "the output is right only after waiting for the whole device: the work does not run in the "
    "order of the launch stream; launch on the current stream"
)
Given = TypeVar("Given")


@dataclass(frozen=True)
class Outcome:
    """What the chain found. `seconds` is empty when nothing was timed or a link broke.

    `walls` says where the wall time went: see `Findings`.
    """

    envelope: dict[str, Any]
    broken: ChainBrokenError | None
    seconds: list[float]
    timer: str | None
    walls: dict[str, float]

    @property
    def result(self) -> dict[str, Any]:
        """The result as the record carries it."""
        found: dict[str, Any] = self.envelope["result"]
        return found


def measure(
    workload: Workload, session: Session, *, mode: str = "cold", test: str | None = None
) -> Outcome:
    """Check a workload, time it if the session times, and return what was found.

    Without timing, the workload's small form is checked where it has one. Raises UnfitError when
    its device cannot measure, SettingError for an unknown mode; a broken link is in the outcome.
    """
    known_mode(mode)
    began = perf_counter()
    timing = session.settings.timing
    whole = timing or session.settings.profile
    chosen = workload if whole or workload.small is None else workload.small()
    findings = Findings(chosen, mode, test, inputs=drawn(chosen, session.settings))
    truth = session.oracle.truth(chosen, session.settings.seed)
    bench = session.bench(truth.values[0].device)
    links = _Chain(findings, bench, session.oracle, truth)
    broken = None
    try:
        bench.device.synchronize()  # the inputs were made on the caller's stream
        with bench.device.stream():
            links.run(timing=timing)
    except Exception as error:  # noqa: BLE001  _broken raises what is no broken link
        broken = _broken(error, bench, theirs=links.asks)
        _refuse(findings, broken)
    sample = findings.sample
    walls = findings.walls
    walls["total"] = perf_counter() - began
    if session.budget is not None:
        session.budget.spent(walls.get("loop", 0.0))
    return Outcome(
        envelope(findings, bench.environment, bench.facts),
        broken,
        list(sample.seconds) if sample else [],
        sample.timer if sample else None,
        walls,
    )


def _refuse(found: Findings, broken: ChainBrokenError) -> None:
    """Note the broken link; no time that was taken before it broke is left."""
    found.correct = False if broken.link in _INCORRECT else found.correct
    found.detail = str(broken)
    found.status = _STATUS.get(broken.link, "incorrect" if broken.link in _INCORRECT else "error")
    parts = {f"first_call.{name}": seconds for name, seconds in found.first_call.items()}
    taken = {"energy": found.energy, **parts}
    told = {name: f"a link broke: {broken.link}" for name, value in taken.items() if value}
    found.reasons.update(told)
    found.sample, found.energy, found.first_call = None, None, {}


def _broken(error: Exception, bench: Bench, *, theirs: bool) -> ChainBrokenError:
    """Return the broken link; raise an error that is none, nor of the device or a launch.

    One of `theirs` came of making inputs or a reference: it is no launch's, whatever it says.
    """
    if isinstance(error, ChainBrokenError):
        return error
    try:
        bench.device.synchronize()
    except ChainBrokenError:
        return ChainBrokenError(Link.DEVICE, _told(error), sticky=True)
    if isinstance(error, torch.OutOfMemoryError):
        return ChainBrokenError(
            Link.DEVICE,
            f"the buffers do not fit: {_told(error)}; end what else uses the device, or measure a "
            "smaller case",
        )
    kept = str(error).startswith(_OF_CUDA)  # by the runtime, for whoever asks it next: us
    if kept and not theirs:
        return ChainBrokenError(
            Link.LAUNCH, f"it failed and did not say so: {_told(error)}; check each launch"
        )
    raise error


class _Chain:
    """The links over one workload's buffers, on the current launch stream."""

    def __init__(self, findings: Findings, bench: Bench, oracle: Oracle, truth: Truth) -> None:
        self.found = findings
        self.workload = findings.workload
        self.bench = bench
        self.oracle = oracle
        self.truth = truth
        self.asks = False
        """Whether the workload is asked for inputs or a reference right now."""
        self._right: torch.Tensor | None = None
        """An output found right for the present inputs: one with its bits is as right."""

    def run(self, *, timing: bool) -> None:
        """Go through every link; raise ChainBrokenError at the first that does not hold.

        Compiling and checking share the device: only what is timed has it alone.
        """
        if timing:
            with self.bench.lock.shared():
                if self.bench.device.blind is not None:
                    raise UnfitError(f"cannot time on this GPU: {self.bench.device.blind}")
                first = self._first_links()
            arena = self.bench.device.arena
            with self.bench.lock.alone(), arena.region():
                sets = BufferSets(first, self._sets_wanted(), arena)
                self._note_shortages(sets, arena)
                self._timed_links(sets)
        elif self.bench.settings.profile:
            with self.bench.lock.alone():
                self._marked(self._first_links())
        else:
            with self.bench.lock.shared():
                sets = BufferSets(self._first_links())
                self._fresh(sets, partial(self._launch_all, sets))
        self.found.correct = True
        if self.found.sample is None:
            self.found.status = "ok"
            self.found.reasons["measurements_s"] = "timing was off in this session"

    def _marked(self, buffers: BufferSet) -> None:
        """Launch once between the marks that a profiler waits for."""
        if self.bench.device.kind == "cuda":
            self.bench.device.profiled(self._guarded(buffers))  # type: ignore[union-attr]

    def _first_links(self) -> BufferSet:
        """Poison, run in stream order, compare, guard zones, inputs unchanged."""
        buffers = allocate(self.workload, self.truth.values)
        buffers.load(self.truth.values)
        self._first_call(buffers)
        self._is_in_order(self._look(buffers), buffers)
        self._settle(Link.COMPARE, BufferSets(buffers), POISON_NAN)
        return buffers

    def _look(self, buffers: BufferSet, *stream: Any) -> torch.Tensor:
        """Return the output as its stream sees it, and note where work beside it would not show."""
        seen = self.bench.device.ordered(self._guarded(buffers), buffers, *stream)
        if seen.unseen is not None:
            self.found.warnings["order_unseen"] = seen.unseen
        return seen.output

    def _is_in_order(self, seen: torch.Tensor, buffers: BufferSet) -> bool:
        """Whether what a stream saw is right, be it by the bits of an output that was.

        Raises ChainBrokenError where it is wrong, and right after a wait for the whole device. What
        is wrong then too stays in the buffers, for a comparison that says how.
        """
        if self._right is not None and same_bits(seen, self._right):
            return True
        outcome = self._compare(seen)
        if outcome.passed:
            self.found.comparisons.append(outcome)
            self._right = seen
            return True
        if self._is_right_in_the_end(buffers):
            raise ChainBrokenError(Link.STREAM, _OUT_OF_ORDER)
        return False

    def _is_right_in_the_end(self, buffers: BufferSet) -> bool:
        """Whether a launch between two waits for the whole device gives the right output.

        What it leaves in the buffers stays there when it does not.
        """
        buffers.output.poison(POISON_NAN)
        self.bench.device.synchronize()
        self._guarded(buffers)()
        self.bench.device.synchronize()
        return self._compare(buffers.output_tensor).passed

    def _note_shortages(self, sets: BufferSets, arena: Arena) -> None:
        if self.found.mode != "cold":
            return
        if arena.missing and not sets.others:
            self.found.warnings["one_place"] = (
                f"all launches went through one place in memory, which shifts this process's times "
                f"by some 0.1 us: the device has no {arena.missing / 1e9:.2f} GB left for more; "
                "end what else uses it"
            )
        if self.bench.device.has_one_context:
            self.found.warnings["one_context"] = (
                "all launches went through one CUDA context, which shifts this process's times by "
                "some 0.05 us: the device has no memory left for more, or its driver makes none; "
                "end what else uses it, or install a driver for CUDA 12.5 or later"
            )

    def _sets_wanted(self) -> int:
        """Return how many buffer sets the launches of this cache mode go through.

        Raises SettingError where so many would be needed that their guard zones fill the memory.
        """
        size = max(1, footprint_bytes(self.workload, self.truth.values))
        wanted = self.bench.device.sets_needed(self.found.mode, size)
        if wanted > _MOST_SETS:
            raise SettingError(
                f"cannot measure {self.workload.label} in mode {self.found.mode}: it would take "
                f"{wanted} buffer sets of {size} bytes to pass the caches, expected at most "
                f"{_MOST_SETS}; choose a larger shape or mode cold"
            )
        return wanted

    def _timed_links(self, sets: BufferSets) -> None:
        """Time, then compare what the timed loop left and what it makes of fresh inputs."""
        launches = [self._bare(buffers) for buffers in sets]
        poison = partial(sets.poison, POISON_NAN)
        timed = self._tried(lambda: time_workload(self.found, self.bench, launches, poison))
        self._settle(Link.TIMED, sets, POISON_NAN)
        self._tried(lambda: look_at_launch(self.found, self.bench, launches[0]))
        self._keep_order(sets)
        if self.bench.settings.energy:
            median_s = float(median(timed.sample.seconds))
            self._tried(lambda: measure_energy(self.found, self.bench, launches, median_s))
        self._fresh(sets, timed.once, timed.runner.rounds)
        timed.accept(self.found)

    def _keep_order(self, sets: BufferSets) -> None:
        """Look once more at the stream's order, on the first and the last of those timed.

        Work that is sent to a stream kept from some call, whichever, is out of order on one of
        them: done before the poison or after the look.
        """
        device = self.bench.device
        if device.kind != "cuda" or self.found.mode != "cold":
            return
        if self.workload.allocates is not None:  # it is timed on its first stream alone
            return
        streams = device.streams(1 + len(sets.others))  # type: ignore[union-attr]
        for stream in streams[:1] + streams[1:][-1:]:
            if not self._is_in_order(self._look(sets.first, stream), sets.first):
                self._settle(Link.TIMED, BufferSets(sets.first), POISON_NAN)

    def _fresh(self, sets: BufferSets, run: Callable[[], object], rounds: int = 1) -> None:
        """Load other values into the same addresses, run as timed, compare again, round by round.

        Each round wants its outputs written anew: what another stream left there is gone.
        """
        sets.first.output.poison(POISON_NUMBER)  # meets an error that a launch did not tell
        self._right = None  # before inputs and reference, which want its memory
        self.asks = True
        self.truth = self.oracle.truth(self.workload, self.bench.settings.fresh_seed)
        self.asks = False
        sets.load(self.truth.values, POISON_NUMBER)
        for left in reversed(range(rounds)):
            self._tried(run)
            self._settle(Link.FRESH, sets, POISON_NUMBER)
            if left:
                self._right = sets.first.output_tensor.clone()
                sets.poison(POISON_NUMBER)

    def _settle(self, link: Link, sets: BufferSets, poison: int) -> None:
        """Wait for the device and hold every set against the reference and its guard zones."""
        self.bench.device.synchronize()
        settle(self.found, self.truth, link, sets, poison, self._right)

    def _compare(self, output: torch.Tensor) -> Comparison:
        return compared(self.workload, self.truth, output)

    def _first_call(self, buffers: BufferSet) -> None:
        """Run once, split into compiling, loading and launching as far as these take place."""
        workload, found, launched = self.workload, self.found, self.bench.launched
        again = workload.launched_key in launched
        launch = self._bare(buffers)

        def call() -> None:
            launch()
            self.bench.device.synchronize()

        found.first_call, reasons = self._tried(lambda: workload.split(call, again=again))
        launched.add(workload.launched_key)
        found.reasons |= {f"first_call.{name}": reason for name, reason in reasons.items()}

    def _bare(self, buffers: BufferSet) -> Callable[[], object]:
        """Return the launch as it is timed: nothing around the call."""
        return partial(self.workload.launch, buffers.input_tensors, buffers.output_tensor)

    def _guarded(self, buffers: BufferSet) -> Callable[[], object]:
        """Return the launch with its errors turned into the broken link."""
        return partial(self._tried, self._bare(buffers))

    def _tried(self, call: Callable[[], Given]) -> Given:
        """Return what a call gives, any error of it turned into the broken link."""
        try:
            return call()
        except ChainBrokenError:
            raise
        except Exception as error:
            raise self._launch_error(error) from error

    def _launch_all(self, sets: BufferSets) -> None:
        for buffers in sets:
            self._bare(buffers)()

    def _launch_error(self, error: Exception) -> ChainBrokenError:
        """Return the broken link; the context is lost when waiting for the device fails too."""
        try:
            self.bench.device.synchronize()
        except ChainBrokenError:
            return ChainBrokenError(Link.DEVICE, _told(error), sticky=True)
        return ChainBrokenError(Link.LAUNCH, _told(error))


def _told(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
