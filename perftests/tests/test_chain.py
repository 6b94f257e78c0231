"""What the chain does around its links: forms, first calls, budgets, a lost device. No GPU."""

from __future__ import annotations

import time
from contextlib import nullcontext
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import torch

from perftests.harness import chain
from perftests.harness.budget import Budget
from perftests.harness.buffers import POISON_NAN, BufferSet, BufferSets, allocate
from perftests.harness.chain import measure
from perftests.harness.cpu import CpuDevice
from perftests.harness.errors import ChainBrokenError, Link, SettingError, UnfitError
from perftests.harness.order import Look
from perftests.harness.record import Findings
from perftests.harness.session import Session
from perftests.harness.settings import Settings
from perftests.tests import workloads
from perftests.tests.workloads import relu_workload

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from perftests.harness.workload import Inputs


def session(budget: Budget | None = None, **settings: Any) -> Session:
    limits = {"max_seconds": 0.02, "max_samples": 8, "lock_seconds": 30.0}
    return Session(Settings(**limits | settings), budget)


@pytest.mark.parametrize(
    ("settings", "size"),
    [
        ({"timing": False}, 67),
        ({"timing": True}, 5003),
        ({"timing": False, "profile": True}, 5003),
    ],
)
def test_only_a_correctness_run_takes_the_small_form(settings: dict[str, Any], size: int) -> None:
    seen: set[int] = set()

    def noted(inputs: Inputs, out: torch.Tensor) -> None:
        seen.add(out.numel())
        workloads.relu_of_torch(inputs, out)

    workload = relu_workload(noted, small=lambda: relu_workload(noted, n=67))
    outcome = measure(workload, session(**settings))
    assert outcome.broken is None
    assert seen == {size}
    assert outcome.result["case"]["shape"] == [size]


def test_a_profiled_run_checks_before_the_marks() -> None:
    here = session(timing=False, profile=True)
    outcome = measure(relu_workload(workloads.does_nothing), here)
    assert outcome.broken is not None
    assert outcome.broken.link is Link.COMPARE


def test_every_case_is_taken_off_the_budget_broken_ones_too() -> None:
    budget = Budget(10.0, 4)
    here = session(budget)
    measure(relu_workload(), here)
    used = budget._used
    assert 0 < used < 1
    assert budget._done == 1
    measure(relu_workload(workloads.does_nothing), here)
    assert (budget._done, budget._used) == (2, used)


def test_the_first_call_of_every_case_is_split_and_says_what_was_at_hand() -> None:
    """A planted compiler: it has code for even lengths, for odd ones, or for neither."""
    had: set[object] = set()

    def first_call(n: int, call: Callable[[], object]) -> Mapping[str, float | str]:
        call()
        if n % 2 in had:
            return {"compile_s": "at hand", "load_s": "at hand", "launch_s": 0.125}
        had.add(n % 2)
        return {"compile_s": 0.5, "load_s": "it loads as it compiles", "launch_s": 0.25}

    here = session(timing=False)

    def told(n: int, mode: str = "cold") -> tuple[dict[str, float | None], dict[str, str]]:
        case = relu_workload(n=n, first_call=partial(first_call, n))
        result = measure(case, here, mode=mode).result
        return result["first_call"], result["reasons"]

    seconds, reasons = told(67)
    assert seconds == {"compile_s": 0.5, "load_s": None, "launch_s": 0.25}
    assert reasons["first_call.load_s"] == "it loads as it compiles"
    seconds, reasons = told(69)
    assert seconds == {"compile_s": None, "load_s": None, "launch_s": 0.125}
    assert reasons["first_call.compile_s"] == "at hand"
    assert told(68)[0]["compile_s"] == 0.5, "another shape may be another kernel"
    seconds, reasons = told(67, "hot")
    assert set(seconds.values()) == {None}
    assert reasons["first_call.compile_s"] == "at hand"
    assert reasons["first_call.launch_s"] == "this process had launched it before"
    had.clear()
    assert told(67, "rotated")[0] == {"compile_s": 0.5, "load_s": None, "launch_s": 0.25}


def test_a_call_that_nothing_splits_is_told_whole_at_each_case() -> None:
    here = session(timing=False)
    known: list[float | None] = [
        measure(relu_workload(n=n, dtype=dtype), here).result["first_call"]["launch_s"]
        for n, dtype in [(67, torch.float32), (131, torch.float32), (67, torch.float16)]
    ]
    assert all(known)
    assert measure(relu_workload(n=67), here).result["first_call"]["launch_s"] is None


def test_a_first_call_lasts_until_the_device_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CpuDevice, "synchronize", lambda _device: time.sleep(0.02))
    result = measure(relu_workload(), session(timing=False)).result
    assert result["first_call"]["launch_s"] >= 0.02
    assert result["first_call"]["compile_s"] is None
    assert result["reasons"]["first_call.compile_s"] == "the workload does not split its first call"


def test_a_first_call_that_cannot_compile_is_a_broken_launch() -> None:
    def broken(_call: object) -> Mapping[str, float | str]:
        raise RuntimeError("nvrtc: error: identifier undefined\nand more")

    outcome = measure(relu_workload(first_call=broken), session())
    assert outcome.broken is not None
    assert str(outcome.broken) == "launch: RuntimeError: nvrtc: error: identifier undefined"


class Lost:
    """A device whose context is gone from the first launch that raises on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_lost = False
        monkeypatch.setattr(CpuDevice, "synchronize", lambda _device: self.wait())

    def wait(self) -> None:
        if self.is_lost:
            raise ChainBrokenError(Link.DEVICE, "an illegal memory access", sticky=True)

    def __call__(self, _inputs: Inputs, _out: torch.Tensor) -> None:
        self.is_lost = True
        raise RuntimeError("launch failed")


def test_a_launch_that_takes_the_device_with_it_is_told_as_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    outcome = measure(relu_workload(Lost(monkeypatch)), session())
    assert outcome.broken is not None
    assert (outcome.broken.link, outcome.broken.sticky) == (Link.DEVICE, True)
    assert outcome.result["status"] == "error"
    assert outcome.result["correctness"]["passed"] is None


def unordered(_device: CpuDevice, launch: Callable[[], object], buffers: BufferSet) -> Look:
    """Return the output as a stream sees it that the work does not run on."""
    buffers.output.poison(POISON_NAN)
    seen = buffers.output_tensor.clone()
    launch()
    return Look(seen)


def test_work_outside_the_order_of_its_stream_is_refused_though_it_is_right_in_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(CpuDevice, "ordered", unordered)
    outcome = measure(relu_workload(), session())
    assert outcome.broken is not None
    assert outcome.broken.link is Link.STREAM
    assert outcome.result["status"] == "incorrect"
    wrong = measure(relu_workload(workloads.drops_nan), session())
    assert wrong.broken is not None
    assert wrong.broken.link is Link.COMPARE


def test_a_look_that_could_not_tell_leaves_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    def unseen(_device: CpuDevice, launch: Callable[[], object], buffers: BufferSet) -> Look:
        launch()
        return Look(buffers.output_tensor.clone(), "the host was too slow")

    assert "order_unseen" not in _codes(measure(relu_workload(), session()))
    monkeypatch.setattr(CpuDevice, "ordered", unseen)
    assert _codes(measure(relu_workload(), session()))["order_unseen"] == "the host was too slow"


def _codes(outcome: chain.Outcome) -> dict[str, str]:
    return {warning["code"]: warning["message"] for warning in outcome.result["warnings"]}


def test_a_device_on_which_streams_wait_for_each_other_times_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(CpuDevice, "blind", "a kernel waits; unset IT=1")
    with pytest.raises(UnfitError, match=r"^cannot time on this GPU: a kernel waits; unset IT=1$"):
        measure(relu_workload(), session())
    assert measure(relu_workload(), session(timing=False)).result["status"] == "ok"


def test_an_error_of_the_harness_itself_is_raised_unless_the_device_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lost = Lost(monkeypatch)

    class Odd:
        def __init__(self, *, lose: bool) -> None:
            self.lose = lose

        def __call__(self, *_: object) -> None:
            lost.is_lost = self.lose
            raise KeyError("a slip of ours")

    monkeypatch.setattr("perftests.harness.chain.settle", Odd(lose=False))
    with pytest.raises(KeyError, match="a slip of ours"):
        measure(relu_workload(), session())
    monkeypatch.setattr("perftests.harness.chain.settle", Odd(lose=True))
    outcome = measure(relu_workload(), session())
    assert outcome.broken is not None
    assert outcome.broken.sticky


def test_a_stop_key_leaves_the_lock_free() -> None:
    here = session()

    def stopped(inputs: Inputs, out: torch.Tensor) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure(relu_workload(stopped), here)
    assert measure(relu_workload(), here).broken is None


@pytest.mark.parametrize("mode", ["lukewarm", "Cold", "", "hot,cold"])
def test_a_mode_that_is_none_is_not_measured_under_its_name(mode: str) -> None:
    """It would be timed without a flush, and no rate would be too high."""
    with pytest.raises(SettingError, match="expected one of cold, hot, rotated"):
        measure(relu_workload(), session(), mode=mode)


@pytest.mark.parametrize("launch", [workloads.relu_of_torch, workloads.does_nothing])
@pytest.mark.parametrize("timing", [True, False])
def test_what_was_drawn_stands_in_every_record(
    launch: Callable[..., None], timing: bool, validate: Callable[[Any], Any]
) -> None:
    outcome = measure(relu_workload(launch), session(timing=timing, seed=7))
    assert outcome.result["inputs"] == {
        "seed": 7,
        "fresh_seed": Settings(seed=7).fresh_seed,
        "distribution": None,
        "specials": True,
    }
    assert "does not name it" in outcome.result["reasons"]["inputs.distribution"]
    validate(outcome.envelope)


def test_no_time_is_left_of_a_case_whose_last_link_breaks(
    monkeypatch: pytest.MonkeyPatch, validate: Callable[[Any], Any]
) -> None:
    """Energy is measured before the fresh inputs, and tells launches a second."""

    def parts(call: Callable[[], object]) -> dict[str, float]:
        call()
        return {"compile_s": 2.0, "load_s": 3.0, "launch_s": 1.0}

    def measured(found: Findings, *_: object) -> None:
        found.energy = {"joules_per_launch": 1.0, "launches_per_s": 5.0}

    monkeypatch.setattr(chain, "measure_energy", measured)
    here = session(energy=True)
    assert measure(relu_workload(), here).result["energy"]["launches_per_s"] == 5.0
    cached = relu_workload(workloads.CachesItsOutput(), dtype=torch.float64, first_call=parts)
    outcome = measure(cached, here)
    assert outcome.broken is not None
    assert outcome.broken.link is Link.FRESH
    assert outcome.result["energy"] is None
    assert set(outcome.result["first_call"].values()) == {None}
    gone = {"energy", "first_call.compile_s", "first_call.load_s", "first_call.launch_s"}
    told = {name: outcome.result["reasons"][name] for name in gone}
    assert set(told.values()) == {"a link broke: fresh inputs"}
    validate(outcome.envelope)


def test_a_device_that_is_lost_before_the_first_link_is_a_broken_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def lost(_device: object) -> None:
        raise ChainBrokenError(Link.DEVICE, "an illegal memory access was encountered", sticky=True)

    monkeypatch.setattr(CpuDevice, "synchronize", lost)
    outcome = measure(relu_workload(), session())
    assert outcome.broken is not None
    assert outcome.broken.sticky
    assert outcome.result["status"] == "error"


@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize("places", [1, 32])
@pytest.mark.parametrize(
    ("bad", "mode", "allocates", "asked"),
    [
        (None, "cold", None, ["first", "last"]),
        ("first", "cold", None, ["first"]),
        ("last", "cold", None, ["first", "last"]),
        ("first", "hot", None, []),
        ("first", "cold", "it sorts", []),
    ],
)
def test_the_order_is_looked_at_on_two_timed_streams_as_well(
    bad: str | None, mode: str, allocates: str | None, asked: list[str], places: int, early: bool
) -> None:
    """What goes to a stream kept from some call is out of order on one of the two.

    It comes too late for the look, or so early that the poison wipes it out.
    """
    seen: list[str] = []

    def ordered(launch: Callable[[], object], buffers: BufferSet, stream: str) -> Look:
        seen.append(stream)
        launch()
        right = buffers.output_tensor.clone()
        if stream != bad:
            return Look(right)
        if early:
            buffers.output.poison(POISON_NAN)
        return Look(buffers.output_tensor.clone() if early else right.fill_(float("nan")))

    def streams(count: int) -> tuple[str, ...]:
        assert count == places
        return ("first", *("between" for _ in range(places)), "last")

    here = session()
    workload = relu_workload(allocates=allocates)
    truth = here.oracle.truth(workload, 1)
    sets = BufferSets(allocate(workload, truth.values), places)
    sets.load(truth.values, POISON_NAN)
    device = SimpleNamespace(
        kind="cuda", ordered=ordered, streams=streams, synchronize=lambda: None
    )
    bench: Any = SimpleNamespace(device=device)
    link = chain._Chain(Findings(workload, mode), bench, here.oracle, truth)
    link._launch_all(sets)
    refused = pytest.raises(ChainBrokenError, match="order of the launch")
    with refused if bad in asked else nullcontext():
        link._keep_order(sets)
    assert seen == asked


def test_an_output_that_turns_wrong_on_a_timed_stream_is_no_matter_of_order() -> None:
    """Two waits do not make it right: the comparison says how it is wrong."""

    def ordered(launch: Callable[[], object], buffers: BufferSet, stream: str) -> Look:
        launch()
        return Look(buffers.output_tensor.clone())

    here = session()
    calls: list[int] = []

    def tires(inputs: Inputs, out: torch.Tensor) -> None:
        workloads.relu_of_torch(inputs, out)
        calls.append(1)
        if len(calls) > 2:
            out[7] += 1

    workload = relu_workload(tires)
    truth = here.oracle.truth(workload, 1)
    sets = BufferSets(allocate(workload, truth.values), 2)
    sets.load(truth.values, POISON_NAN)
    device = SimpleNamespace(
        kind="cuda", ordered=ordered, streams=lambda _: ("first",), synchronize=lambda: None
    )
    bench: Any = SimpleNamespace(device=device)
    link = chain._Chain(Findings(workload, "cold"), bench, here.oracle, truth)
    link._launch_all(sets)
    with pytest.raises(ChainBrokenError, match="1 of 5003") as broken:
        link._keep_order(sets)
    assert broken.value.link is Link.TIMED
