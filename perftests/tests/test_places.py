"""A cold sample from several places in memory, on a CPU that is made to have them."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
import torch

from perftests.harness import chain, energy, timing
from perftests.harness.arena import Arena
from perftests.harness.chain import measure
from perftests.harness.cpu import CpuDevice, _ColdRunner
from perftests.harness.errors import Link, SettingError
from perftests.harness.lock import DeviceLock
from perftests.harness.record import Findings
from perftests.harness.sampling import Sample, collect
from perftests.harness.session import Session
from perftests.harness.settings import Settings
from perftests.tests import workloads
from perftests.tests.workloads import relu_workload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from perftests.harness.workload import Inputs, Launch

PLACES = 4
CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def several_places(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = CpuDevice.sets_needed

    def needed(device: CpuDevice, mode: str, set_bytes: int) -> int:
        return PLACES if mode == "cold" else usual(device, mode, set_bytes)

    monkeypatch.setattr(CpuDevice, "sets_needed", needed)
    monkeypatch.setattr(CpuDevice, "flush", lambda _device: None)


def session(samples: int = 9, **settings: Any) -> Session:
    return Session(Settings(max_seconds=1.0, max_samples=samples, lock_seconds=30, **settings))


class Places:
    """The places that a launch has seen, in order of the first visit."""

    def __init__(self, act: Callable[[int, Inputs, torch.Tensor], None]) -> None:
        self.seen: list[int] = []
        self.act = act

    def __call__(self, inputs: Inputs, out: torch.Tensor) -> None:
        if out.data_ptr() not in self.seen:
            self.seen.append(out.data_ptr())
        workloads.relu_of_torch(inputs, out)
        self.act(self.seen.index(out.data_ptr()), inputs, out)


def test_an_honest_kernel_goes_through_all_places() -> None:
    launch = Places(lambda *_: None)
    outcome = measure(relu_workload(launch), session())
    assert outcome.broken is None
    assert len(launch.seen) == PLACES


def _wrong_output(inputs: Inputs, out: torch.Tensor) -> None:
    out[-1:].fill_(3.0)


def _written_behind(inputs: Inputs, out: torch.Tensor) -> None:
    out.as_strided((1,), (1,), out.storage_offset() + out.numel()).fill_(3.0)


def _written_before(inputs: Inputs, out: torch.Tensor) -> None:
    out.as_strided((1,), (1,), out.storage_offset() - 1).fill_(3.0)


def _changed_input(inputs: Inputs, out: torch.Tensor) -> None:
    inputs[0][7] += 1


SPOILERS = [
    (Link.TIMED, _wrong_output),
    (Link.GUARD, _written_behind),
    (Link.GUARD, _written_before),
    (Link.INPUTS, _changed_input),
]


@pytest.mark.parametrize("place", range(1, PLACES))
@pytest.mark.parametrize(("link", "spoil"), SPOILERS)
def test_a_fault_at_one_place_alone_is_refused(
    place: int, link: Link, spoil: Callable[[Inputs, torch.Tensor], None]
) -> None:
    def act(at: int, inputs: Inputs, out: torch.Tensor) -> None:
        if at == place:
            spoil(inputs, out)

    outcome = measure(relu_workload(Places(act)), session())
    assert outcome.broken is not None
    assert outcome.broken.link is link
    assert outcome.seconds == []


def test_an_output_cached_by_its_address_is_refused() -> None:
    kept: dict[int, torch.Tensor] = {}

    def cached(inputs: Inputs, out: torch.Tensor) -> None:
        if out.data_ptr() not in kept:
            kept[out.data_ptr()] = inputs[0].clamp_min(0)
        out.copy_(kept[out.data_ptr()])

    outcome = measure(relu_workload(cached, allocates="its cache"), session())
    assert outcome.broken is not None
    assert outcome.broken.link is Link.FRESH


def test_an_output_cached_at_all_places_but_the_first_is_refused() -> None:
    kept: dict[int, torch.Tensor] = {}

    def act(at: int, inputs: Inputs, out: torch.Tensor) -> None:
        if at:
            out.copy_(kept.setdefault(at, out.clone()))

    outcome = measure(relu_workload(Places(act), allocates="its cache"), session())
    assert outcome.broken is not None
    assert outcome.broken.link is Link.FRESH


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_a_kernel_that_is_idle_in_a_later_round_of_fresh_inputs_is_refused(
    rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one would be that does nothing on some stream, where the round before wrote the output."""
    usual, begun = _ColdRunner.once, []

    def once(runner: _ColdRunner) -> None:
        begun.append(1)
        usual(runner)

    def idle_at_last(inputs: Inputs, out: torch.Tensor) -> None:
        if len(begun) != rounds:
            workloads.relu_of_torch(inputs, out)

    monkeypatch.setattr(_ColdRunner, "rounds", rounds)
    monkeypatch.setattr(_ColdRunner, "once", once)
    outcome = measure(relu_workload(idle_at_last), session())
    assert len(begun) == rounds
    assert outcome.broken is not None
    assert outcome.broken.link is Link.FRESH


class WrongInTheLoop:
    """Right but for the launches that count, which a short loop or a load for energy follows."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.counts = False

        def counted(*given: Any, **named: Any) -> Sample:
            self.counts = True
            sample = collect(*given, **named)
            self.counts = False
            return sample

        monkeypatch.setattr(timing, "collect", counted)

    def __call__(self, inputs: Inputs, out: torch.Tensor) -> None:
        workloads.relu_of_torch(inputs, out)
        if self.counts:
            out[0] = 3.0


class IdleInTheLoop(WrongInTheLoop):
    """Writes nothing while it counts, but at the first place."""

    first = 0

    def __call__(self, inputs: Inputs, out: torch.Tensor) -> None:
        self.first = self.first or out.data_ptr()
        if not self.counts or out.data_ptr() == self.first:
            workloads.relu_of_torch(inputs, out)


@pytest.mark.parametrize("samples", [1, 3, 9])
def test_what_a_short_loop_left_is_compared_though_launches_follow_it(
    samples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = measure(relu_workload(WrongInTheLoop(monkeypatch)), session(samples))
    assert outcome.broken is not None
    assert outcome.broken.link is Link.TIMED


def test_what_warm_up_left_at_a_place_is_gone_before_the_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    outcome = measure(relu_workload(IdleInTheLoop(monkeypatch)), session())
    assert outcome.broken is not None
    assert outcome.broken.link is Link.TIMED
    assert "5003 of 5003 elements were never written" in str(outcome.broken)


def test_what_the_loop_left_is_compared_before_launches_for_energy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def load(_found: object, _bench: object, launches: Sequence[Launch], _median: float) -> None:
        for launch in launches:
            launch()  # type: ignore[call-arg]

    monkeypatch.setattr(chain, "measure_energy", load)
    outcome = measure(relu_workload(WrongInTheLoop(monkeypatch)), session(energy=True))
    assert outcome.broken is not None
    assert outcome.broken.link is Link.TIMED


@pytest.mark.parametrize("samples", [1, 2, 3, 5])
def test_fewer_launches_than_places_are_no_fault(samples: int) -> None:
    outcome = measure(relu_workload(), session(samples))
    assert outcome.broken is None
    assert len(outcome.seconds) == samples


@pytest.mark.parametrize(
    ("dtype", "n"),
    [(torch.uint8, 1), (torch.uint8, 4099), (torch.int8, 513), (torch.bool, 7), (torch.int64, 3)],
)
def test_odd_sizes_of_any_width_pass(dtype: torch.dtype, n: int) -> None:
    workload = relu_workload(
        lambda inputs, out: out.copy_(inputs[0]),
        n=n,
        dtype=dtype,
        make_inputs=lambda seed: (
            torch.randint(0, 2, (n,), generator=torch.Generator().manual_seed(seed)).to(dtype),
        ),
        reference=lambda inputs: inputs[0].double(),
        input_offsets=(3,),
        output_offset=1,
    )
    assert measure(workload, session()).broken is None


@pytest.mark.parametrize("inputs_empty", [False, True])
def test_a_tensor_without_elements_passes(*, inputs_empty: bool) -> None:
    workload = relu_workload(
        lambda inputs, out: out.fill_(2.0),
        bytes_moved=4,
        make_inputs=lambda _seed: (torch.ones(0 if inputs_empty else 3),),
        reference=lambda _inputs: torch.full((5 if inputs_empty else 0,), 2.0).double(),
        output_shape=(5,) if inputs_empty else (0,),
    )
    assert measure(workload, session()).broken is None


def test_no_input_at_all_is_refused_in_a_line() -> None:
    workload = relu_workload(make_inputs=lambda _seed: ())
    with pytest.raises(SettingError, match=r"cannot place relu/.*make_inputs gave no tensor"):
        measure(workload, session())


@pytest.mark.parametrize("n", [1, 16])
def test_a_case_too_small_to_be_rotated_is_refused_before_the_memory_is_full(
    n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = Arena.rows

    def few(arena: Arena, count: int, size: int) -> torch.Tensor:
        assert count < 5000, "this machine's memory would be filled"
        return usual(arena, count, size)

    monkeypatch.setattr(Arena, "rows", few)
    with pytest.raises(SettingError, match=r"in mode rotated: .* expected at most 4096; choose"):
        measure(relu_workload(n=n), session(), mode="rotated")


class Watched:
    """Regions of the arena and holds of the lock that were entered and not left."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.entered: dict[str, int] = {}
        self.inside: dict[str, int] = {}
        for owner, name in ((Arena, "region"), (DeviceLock, "alone"), (DeviceLock, "shared")):
            monkeypatch.setattr(owner, name, self._counted(name, getattr(owner, name)))

    def _counted(self, name: str, usual: Callable[[Any], Any]) -> Callable[[Any], Any]:
        @contextmanager
        def counted(owner: Any) -> Iterator[None]:
            with usual(owner):
                self.entered[name] = self.entered.get(name, 0) + 1
                self.inside[name] = self.inside.get(name, 0) + 1
                try:
                    yield
                finally:
                    self.inside[name] -= 1

        return counted


@pytest.mark.parametrize("calls", [4, 6, 9, 14])
def test_a_launch_that_raises_in_the_middle_leaves_lock_and_arena_free(
    calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched, here = Watched(monkeypatch), session()
    outcome = measure(relu_workload(workloads.FailsLater(calls)), here)
    assert outcome.broken is not None
    assert outcome.broken.link is Link.LAUNCH
    assert watched.entered["region"] >= 1
    assert watched.entered["alone"] == watched.entered["shared"] == 1
    assert not any(watched.inside.values())
    assert measure(relu_workload(), here).broken is None


def test_timing_and_its_places_come_under_the_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    watched, seen = Watched(monkeypatch), []

    def noted(inputs: Inputs, out: torch.Tensor) -> None:
        seen.append({name for name, count in watched.inside.items() if count})
        workloads.relu_of_torch(inputs, out)

    assert measure(relu_workload(noted), session()).broken is None
    assert [state for state in seen if "shared" in state] == [{"shared"}] * 2
    assert {frozenset(state) for state in seen[2:]} == {frozenset({"alone", "region"})}


def test_a_correctness_run_takes_no_arena_and_shares_the_lock(
    monkeypatch: pytest.MonkeyPatch, check_session: Session
) -> None:
    watched = Watched(monkeypatch)
    assert measure(relu_workload(), check_session).broken is None
    assert watched.entered == {"shared": 1}


@pytest.mark.parametrize(("mode", "sets"), [("cold", 1), ("hot", 1), ("rotated", 5)])
def test_energy_is_that_of_one_place_but_when_rotated(
    mode: str, sets: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several places would not fit into the L2 where the case does, as its warning says."""
    given: list[int] = []

    class Load:
        def __init__(self, _device: object, launches: Sequence[object], _median: float) -> None:
            given.append(len(launches))
            raise energy.EnergyError("no load here")

    class Device:
        kind, cache_bytes = "cuda", 1 << 20

    class Bench:
        device, idle_power = Device(), energy.Power(1.0, 0.1, 1.0, 5)

        class watch:  # noqa: N801
            absent = None

    monkeypatch.setattr(energy, "_Load", Load)
    found = Findings(relu_workload(), mode)
    energy.measure_energy(found, Bench(), [lambda: None] * 5, 1e-5)  # type: ignore[arg-type]
    assert given == [sets]
    assert found.reasons["energy"] == "not measured: no load here"
