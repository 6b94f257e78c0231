"""The saboteurs on a GPU, where they can also hide on another stream or behind a failed launch."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

import pytest
import torch

from perftests.harness import timing
from perftests.harness.arena import Arena
from perftests.harness.chain import measure
from perftests.harness.errors import Link
from perftests.harness.sampling import Sample, collect
from perftests.harness.session import Session
from perftests.harness.settings import Settings
from perftests.tests import workloads
from perftests.tests.test_saboteurs import NAMES, REFUSALS, refused
from perftests.tests.workloads import relu_workload

if TYPE_CHECKING:
    from collections.abc import Callable

    from perftests.harness.workload import Inputs, Workload

pytestmark = pytest.mark.gpu
MODES = ["cold", "hot", "rotated"]


@pytest.mark.parametrize(("name", "make", "link", "status", "text"), REFUSALS, ids=NAMES)
def test_a_saboteur_is_refused_on_a_gpu(
    name: str,
    make: Callable[[], Any],
    link: Link,
    status: str,
    text: str,
    quick_session: Session,
    validate: Callable[[Any], Any],
    gpu: str,
) -> None:
    outcome = measure(relu_workload(make(), device=gpu), quick_session)
    refused(outcome, link, status, text)
    validate(outcome.envelope)


@pytest.mark.parametrize("mode", MODES)
def test_an_honest_kernel_passes_in_each_mode_on_a_gpu(
    mode: str, quick_session: Session, validate: Callable[[Any], Any], gpu: str
) -> None:
    outcome = measure(relu_workload(n=1 << 20, device=gpu), quick_session, mode=mode)
    assert outcome.broken is None
    assert len(outcome.seconds) >= 1
    assert outcome.result["median_cycles"] > 0
    assert outcome.result["peaks"]["theoretical_bytes_per_s"] > 0
    assert outcome.result["peaks"]["floor_s"] > 0
    validate(outcome.envelope)


@pytest.mark.parametrize("mode", MODES)
def test_allocations_through_torch_are_refused_on_a_gpu(
    mode: str, quick_session: Session, gpu: str
) -> None:
    workload = relu_workload(workloads.allocates, n=1 << 20, device=gpu)
    outcome = measure(workload, quick_session, mode=mode)
    refused(outcome, Link.ALLOCATION, "error", "through torch")


def test_declared_allocations_are_timed_with_a_warning_on_a_gpu(
    quick_session: Session, gpu: str
) -> None:
    workload = relu_workload(workloads.allocates, device=gpu, allocates="the peer's temporary")
    outcome = measure(workload, quick_session)
    assert outcome.broken is None
    told = {warning["code"]: warning["message"] for warning in outcome.result["warnings"]}
    assert "through torch allocations" in told["allocates"]


def test_allocations_through_cupy_are_refused_on_a_gpu(quick_session: Session, gpu: str) -> None:
    cupy = pytest.importorskip("cupy")

    def allocates_in_cupy(inputs: Inputs, out: torch.Tensor) -> None:
        cupy.empty(out.numel(), dtype=cupy.float32)
        workloads.relu_of_torch(inputs, out)

    outcome = measure(relu_workload(allocates_in_cupy, device=gpu), quick_session)
    refused(outcome, Link.ALLOCATION, "error", "through CuPy")


@pytest.mark.parametrize("n", [4099, 1 << 24])
def test_work_on_an_independent_stream_is_refused(n: int, quick_session: Session, gpu: str) -> None:
    side = torch.cuda.Stream()

    def on_another_stream(inputs: Inputs, out: torch.Tensor) -> None:
        with torch.cuda.stream(side):
            workloads.relu_of_torch(inputs, out)

    outcome = measure(relu_workload(on_another_stream, n=n, device=gpu), quick_session)
    refused(outcome, Link.STREAM, "incorrect", "order of the launch stream")


def test_work_on_the_default_stream_is_refused(quick_session: Session, gpu: str) -> None:
    """The commonest slip: a launch that ignores the current stream."""

    def on_the_default_stream(inputs: Inputs, out: torch.Tensor) -> None:
        with torch.cuda.stream(torch.cuda.default_stream()):
            workloads.relu_of_torch(inputs, out)

    outcome = measure(relu_workload(on_the_default_stream, n=1 << 20, device=gpu), quick_session)
    refused(outcome, Link.STREAM, "incorrect", "order of the launch stream")


def test_a_sample_takes_its_launches_from_several_streams_and_places(gpu: str) -> None:
    session = Session(Settings(max_seconds=0.1, max_samples=165, lock_seconds=30))
    seen: list[tuple[int, int]] = []

    def noted(inputs: Inputs, out: torch.Tensor) -> None:
        seen.append((torch.cuda.current_stream().cuda_stream, out.data_ptr()))
        workloads.relu_of_torch(inputs, out)

    assert measure(relu_workload(noted, device=gpu), session).broken is None
    turns = [len(list(group)) for _, group in groupby(stream for stream, _ in seen)]
    assert turns.count(11) >= 12, "launches on one stream before the next has its turn"
    assert len({place for _, place in seen}) == 32


def narrowed(session: Session, places: int, gpu: str) -> Session:
    """Return a session whose arena has room for so many places of 5003 floats in and out."""
    device = session.bench(torch.device(gpu)).device
    device.arena = Arena(2 * places * 2 * 4 * 5003, device.device)
    return session


@pytest.mark.parametrize(("places", "streams"), [(32, 63), (16, 31), (8, 15)])
def test_fresh_inputs_meet_every_place_and_every_stream(
    places: int, streams: int, quick_session: Session, gpu: str
) -> None:
    seen: list[tuple[int, int]] = []

    def noted(inputs: Inputs, out: torch.Tensor) -> None:
        seen.append((out.data_ptr(), torch.cuda.current_stream().cuda_stream))
        workloads.relu_of_torch(inputs, out)

    narrow = narrowed(quick_session, places, gpu)
    assert measure(relu_workload(noted, device=gpu), narrow).broken is None
    last = seen[-2 * places :]
    assert len({place for place, _ in last}) == places
    assert len({stream for _, stream in last}) == streams


@pytest.mark.parametrize(("places", "which"), [(32, 0), (32, 62), (16, 0), (16, 14), (16, 30)])
def test_a_kernel_that_does_nothing_on_one_stream_is_refused(
    which: int, places: int, quick_session: Session, gpu: str
) -> None:
    """A launch on another stream had left the right output there; its time is an empty launch's."""
    streams: list[int] = []

    def idle_on_one(inputs: Inputs, out: torch.Tensor) -> None:
        stream = torch.cuda.current_stream().cuda_stream
        if stream not in streams:
            streams.append(stream)
        if streams.index(stream) != which + 2:  # two belong to the first links
            workloads.relu_of_torch(inputs, out)

    narrow = narrowed(quick_session, places, gpu)
    outcome = measure(relu_workload(idle_on_one, device=gpu), narrow)
    assert outcome.broken is not None
    assert outcome.broken.link in {Link.SAMPLES, Link.TIMED, Link.STREAM, Link.FRESH}
    assert outcome.seconds == []


def test_work_on_a_side_stream_of_the_callers_is_refused_whatever_torch_gave_before(
    quick_session: Session, gpu: str
) -> None:
    """Torch has thirty-two streams: one of them might have been the harness's own as well."""
    mine = [torch.cuda.Stream() for _ in range(32)]
    device = quick_session.bench(torch.device(gpu, 0)).device
    ours = {stream.cuda_stream for stream in (device._own, device._other, *device._turns)}  # type: ignore[union-attr]
    assert not ours & {stream.cuda_stream for stream in mine}
    for stream in mine[::8]:

        def aside(inputs: Inputs, out: torch.Tensor, side: torch.cuda.Stream = stream) -> None:
            with torch.cuda.stream(side):
                workloads.relu_of_torch(inputs, out)

        outcome = measure(relu_workload(aside, n=1 << 20, device=gpu), quick_session)
        refused(outcome, Link.STREAM, "incorrect", "order of the launch stream")


def test_a_loop_shorter_than_the_places_is_compared_where_it_came_to(
    gpu: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The launches that the last places still want do not hide what the loop left at the first."""
    session = Session(Settings(max_seconds=0.02, max_samples=3, lock_seconds=30))
    assert measure(relu_workload(device=gpu), session).broken is None
    counts = False

    def wrong_while_timed(inputs: Inputs, out: torch.Tensor) -> None:
        workloads.relu_of_torch(inputs, out)
        if counts:
            out[:1].fill_(3.0)

    def counted(*given: Any, **named: Any) -> Sample:
        nonlocal counts
        counts = True
        sample = collect(*given, **named)
        counts = False
        return sample

    monkeypatch.setattr(timing, "collect", counted)
    outcome = measure(relu_workload(wrong_while_timed, device=gpu), session)
    refused(outcome, Link.TIMED, "incorrect", "1 of 5003 elements wrong")


def test_a_device_without_room_for_more_places_measures_at_one(
    gpu: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Session(Settings(max_seconds=0.02, max_samples=8, lock_seconds=30))
    device = session.bench(torch.device(gpu)).device
    total = torch.cuda.get_device_properties(0).total_memory
    monkeypatch.setattr(device, "arena", Arena(2 * total, device.device))
    assert device.arena.missing == 2 * total
    places = set()

    def noted(inputs: Inputs, out: torch.Tensor) -> None:
        places.add(out.data_ptr())
        workloads.relu_of_torch(inputs, out)

    outcome = measure(relu_workload(noted, device=gpu), session)
    assert outcome.broken is None
    assert len(places) == 1
    told = {warning["code"]: warning["message"] for warning in outcome.result["warnings"]}
    assert "one place in memory" in told["one_place"]


def test_buffers_that_do_not_fit_break_a_link_and_the_next_test_is_well(
    quick_session: Session, gpu: str
) -> None:
    total = torch.cuda.get_device_properties(0).total_memory
    workload = relu_workload(device=gpu, output_shape=(total,))
    outcome = measure(workload, quick_session)
    refused(outcome, Link.DEVICE, "error", "the buffers do not fit: OutOfMemoryError")
    assert outcome.broken is not None
    assert not outcome.broken.sticky
    assert measure(relu_workload(device=gpu), quick_session).broken is None


def test_what_keeps_memory_for_each_address_is_met_before_the_loop(
    quick_session: Session, gpu: str
) -> None:
    """Large launches fill a warm-up before it has come to every place."""
    kept: dict[int, torch.Tensor] = {}

    def scratch_by_address(inputs: Inputs, out: torch.Tensor) -> None:
        if out.data_ptr() not in kept:
            kept[out.data_ptr()] = torch.empty_like(out)
        torch.clamp_min(inputs[0], 0, out=kept[out.data_ptr()])
        out.copy_(kept[out.data_ptr()])

    outcome = measure(relu_workload(scratch_by_address, n=1 << 26, device=gpu), quick_session)
    assert outcome.broken is None
    device = quick_session.bench(torch.device(gpu)).device
    assert len(kept) == device.sets_needed("cold", 2 * 4 << 26) > 1


def test_sizes_of_a_byte_and_of_nothing_pass_on_a_gpu(quick_session: Session, gpu: str) -> None:
    def ones(size: int) -> Inputs:
        return (torch.ones(size, dtype=torch.uint8, device=gpu),)

    def workload(size: int, outputs: int) -> Workload:
        return relu_workload(
            lambda _inputs, out: out.fill_(1),
            device=gpu,
            dtype=torch.uint8,
            make_inputs=lambda _seed: ones(size),
            reference=lambda _inputs: torch.ones(outputs, dtype=torch.float64, device=gpu),
            output_shape=(outputs,),
            input_offsets=(3,),
            output_offset=1,
            bytes_moved=1,
        )

    for size, outputs in ((4099, 4097), (0, 5)):
        assert measure(workload(size, outputs), quick_session).broken is None
    empty = measure(workload(3, 0), quick_session)
    assert empty.broken is None or empty.broken.link is Link.SAMPLES, "torch launches nothing"


def test_what_allocates_keeps_to_one_stream_when_timed(quick_session: Session, gpu: str) -> None:
    """The allocator would keep memory for each of the others."""
    seen = []

    def noted(inputs: Inputs, out: torch.Tensor) -> None:
        seen.append(torch.cuda.current_stream())
        workloads.allocates(inputs, out)

    outcome = measure(relu_workload(noted, device=gpu, allocates="a temporary"), quick_session)
    assert outcome.broken is None
    assert len(set(seen)) == 2, "the first call's, and the one that the order is checked on"


def test_on_a_callers_own_stream_all_launches_stay_on_it(quick_session: Session, gpu: str) -> None:
    own, seen = torch.cuda.Stream(), set()

    def noted(inputs: Inputs, out: torch.Tensor) -> None:
        seen.add(torch.cuda.current_stream())
        workloads.relu_of_torch(inputs, out)

    with torch.cuda.stream(own):
        assert measure(relu_workload(noted, device=gpu), quick_session).broken is None
    assert seen == {own}


def test_buffer_sets_of_a_cold_sample_fit_the_device(quick_session: Session, gpu: str) -> None:
    device = quick_session.bench(torch.device(gpu)).device
    total = torch.cuda.get_device_properties(0).total_memory
    assert device.sets_needed("cold", 1 << 20) == 32
    assert device.sets_needed("cold", total // 2) == 1
    for share in (100, 400, 600):
        most = total // 16
        assert most // 2 < device.sets_needed("cold", total // share) * (total // share) <= most
    assert device.sets_needed("hot", 1 << 20) == 1


@pytest.mark.parametrize("link", [Link.TIMED, Link.GUARD])
def test_a_fault_at_one_place_in_memory_alone_is_refused(
    link: Link, quick_session: Session, gpu: str
) -> None:
    places: list[int] = []

    def wrong_at_one(inputs: Inputs, out: torch.Tensor) -> None:
        if out.data_ptr() not in places:
            places.append(out.data_ptr())
        workloads.relu_of_torch(inputs, out)
        if places.index(out.data_ptr()) == 5:
            if link is Link.TIMED:
                out[-1:].fill_(3.0)
            else:
                out.as_strided((1,), (1,), out.storage_offset() + out.numel()).fill_(3.0)

    outcome = measure(relu_workload(wrong_at_one, device=gpu), quick_session)
    assert outcome.broken is not None
    assert outcome.broken.link is link
    assert outcome.seconds == []


@pytest.mark.parametrize("n", [5003, 1 << 26])
def test_work_forked_and_not_joined_is_refused_by_order_or_by_time(
    n: int, quick_session: Session, gpu: str
) -> None:
    """Work and the copy that looks for it race, at any size: the two overlap on the device.

    Where the work stays ahead, the events see no work: less time than an empty kernel's.
    """
    side = torch.cuda.Stream()

    def forks(inputs: Inputs, out: torch.Tensor) -> None:
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            workloads.relu_of_torch(inputs, out)

    outcome = measure(relu_workload(forks, n=n, device=gpu), quick_session)
    assert outcome.broken is not None
    assert outcome.broken.link in {Link.STREAM, Link.SAMPLES}
    assert "launch on the current stream" in str(outcome.broken)
    assert outcome.seconds == []


def test_work_forked_and_joined_again_passes(quick_session: Session, gpu: str) -> None:
    side = torch.cuda.Stream()

    def forks_and_joins(inputs: Inputs, out: torch.Tensor) -> None:
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            workloads.relu_of_torch(inputs, out)
        torch.cuda.current_stream().wait_stream(side)

    assert measure(relu_workload(forks_and_joins, device=gpu), quick_session).broken is None


def test_a_real_launch_error_is_refused_and_the_next_test_is_well(
    quick_session: Session, gpu: str
) -> None:
    cupy = pytest.importorskip("cupy")
    kernel = cupy.RawKernel('extern "C" __global__ void nothing() {}', "nothing")

    def too_many_threads(inputs: Inputs, out: torch.Tensor) -> None:
        kernel((1,), (4096,), ())

    outcome = measure(relu_workload(too_many_threads, device=gpu), quick_session)
    refused(outcome, Link.LAUNCH, "error", "invalid")
    assert measure(relu_workload(device=gpu), quick_session).broken is None


def test_bytes_counted_twice_break_the_peak(quick_session: Session, gpu: str) -> None:
    n = 1 << 26
    outcome = measure(relu_workload(n=n, device=gpu, bytes_moved=40 * n), quick_session)
    refused(outcome, Link.PEAK, "over_peak", "GB/s of the memory")
