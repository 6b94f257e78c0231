"""What only a GPU can show: streams, graphs, threads, a second device, what a call costs the host."""

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

from kernels import registry
from kernels.cases import cases
from kernels.implementation import Implementation
from kernels.inputs import make_inputs

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no NVIDIA GPU here"),
]
FLOAT = torch.float32
EVERY = pytest.mark.parametrize(
    "implementation",
    [
        pytest.param(i, id=repr(i))
        for kernel in registry.kernels()
        for i in registry.implementations(kernel)
    ],
)
RELU = registry.get("relu", "cuda_vector")


def problem(implementation: Implementation) -> tuple[Callable[[], Any], torch.Tensor, torch.Tensor]:
    """Return a call of the implementation, its output and what the output should be."""
    device = torch.device("cuda")
    for case in cases(implementation.kernel, "cuda", "correctness"):
        if implementation.unavailable(device, case.torch_dtype) or 0 in case.shape:
            continue
        if case.shape[0] == 1 or case.parameters.get("rounding", "rn") != "rn":
            continue
        inputs = make_inputs(case, device, 1)
        shape, dtype = implementation.definition.output(case)
        out = torch.empty(shape, dtype=dtype, device=device)
        try:
            expected = implementation(*inputs, **case.parameters)
        except ValueError:
            continue
        call = partial(implementation, *inputs, out=out, **case.parameters)
        return call, out, expected
    pytest.skip("no case of this implementation runs here")


def same(out: torch.Tensor, expected: torch.Tensor) -> bool:
    return torch.equal(out.float().nan_to_num(7.0), expected.float().nan_to_num(7.0))


@EVERY
def test_a_call_is_captured_into_a_graph(implementation: Implementation) -> None:
    call, out, expected = problem(implementation)
    call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    out.zero_()
    graph.replay()
    torch.cuda.synchronize()
    assert same(out, expected)


@EVERY
def test_a_call_allocates_nothing_and_does_not_wait(implementation: Implementation) -> None:
    call, out, expected = problem(implementation)
    call()
    torch.cuda.synchronize()
    if implementation.name in {"torch_jit", "torch_eager", "torch_folded"}:
        pytest.skip("torch's two steps need a tensor between them")
    if implementation.name == "torch" and implementation.kernel == "bn_relu_add":
        pytest.skip(
            "torch converts the tables' product to the output's dtype in a tensor of its own"
        )
    before = torch.cuda.memory_stats()["allocation.all.allocated"]
    if implementation.name.startswith("cuda"):
        torch.cuda._sleep(40_000_000)  # about 20 ms in which the device is busy
        start = time.perf_counter()
        call()
        assert time.perf_counter() - start < 0.01
    else:
        call()
    assert torch.cuda.memory_stats()["allocation.all.allocated"] == before
    torch.cuda.synchronize()
    assert same(out, expected)


def test_a_call_follows_work_on_the_current_stream() -> None:
    x = torch.full((1 << 22,), -1.0, device="cuda")
    out = torch.empty_like(x)
    RELU(x, out=out)
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(20_000_000)
        x.fill_(3.0)
        RELU(x, out=out)
    stream.synchronize()
    assert out.eq(3.0).all()


def test_cupy_arrays_are_computed_on_cupys_stream() -> None:
    cupy = pytest.importorskip("cupy")
    x = cupy.asarray(np.full(1 << 20, 3.0, np.float32))
    for stream in (cupy.cuda.Stream.null, cupy.cuda.Stream(non_blocking=True)):
        with stream:
            RELU(x)  # compiled, loaded, and its memory at hand: an allocation may wait
        out = cupy.asarray(np.full(1 << 20, np.nan, np.float32))
        torch.cuda.synchronize()
        busy = torch.cuda.Stream() if stream.ptr == 0 else torch.cuda.default_stream()
        with stream, torch.cuda.stream(busy):
            torch.cuda._sleep(400_000_000)  # torch's stream has about 0.2 s to go
            RELU(x, out=out)
            fresh = RELU(x)
            assert (cupy.asnumpy(out) == 3.0).all()
            assert (cupy.asnumpy(fresh) == 3.0).all()
            assert not busy.query()
    torch.cuda.synchronize()


def test_threads_that_launch_at_once_do_not_mix_arguments() -> None:
    xs = [torch.full((1000 + i,), float(i), device="cuda") for i in range(8)]
    outs = [torch.zeros_like(x) for x in xs]
    torch.cuda.synchronize()
    failures: list[BaseException] = []

    def work(i: int) -> None:
        try:
            for _ in range(300):
                RELU(xs[i], out=outs[i])
        except BaseException as error:  # noqa: BLE001 - told by the main thread
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    torch.cuda.synchronize()
    assert not failures
    assert all(torch.equal(o, x) for o, x in zip(outs, xs, strict=True))


@EVERY
@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="fewer than two GPUs here")
def test_a_tensor_on_the_second_gpu_works_while_the_first_is_current(
    implementation: Implementation,
) -> None:
    _, _, expected = problem(implementation)
    case = next(
        c
        for c in cases(implementation.kernel, "cuda", "correctness")
        if not implementation.unavailable(torch.device("cuda:1"), c.torch_dtype)
        and 0 not in c.shape
        and c.shape[0] != 1
        and c.parameters.get("rounding", "rn") == "rn"
    )
    inputs = [x.to("cuda:1") for x in make_inputs(case, "cuda:0", 1)]
    found = implementation(*inputs, **case.parameters)
    assert found.device == torch.device("cuda:1")
    assert torch.cuda.current_device() == 0
    assert same(found.to("cuda:0"), expected)


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="fewer than two GPUs here")
def test_tensors_of_two_gpus_are_refused() -> None:
    x = torch.ones(8, device="cuda:0")
    with pytest.raises(ValueError, match="on cuda:1; expected"):
        RELU(x, out=torch.empty(8, device="cuda:1"))


def test_the_host_pays_no_more_than_for_torchs_own_operation() -> None:
    x, out = torch.randn(2, 1024, device="cuda")

    def cost(call: Callable[[], Any]) -> float:
        best = float("inf")
        for _ in range(9):
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(300):
                call()
            best = min(best, time.perf_counter() - start)
        torch.cuda.synchronize()
        return best / 300

    ours = cost(lambda: RELU(x, out=out))
    torchs = cost(lambda: torch.clamp_min(x, 0, out=out))
    assert ours <= max(torchs, 7.1e-6), f"{ours * 1e6:.2f} us against {torchs * 1e6:.2f} us"


@EVERY
def test_the_fingerprint_is_that_of_what_runs(implementation: Implementation) -> None:
    device = torch.device("cuda")
    found = implementation.fingerprint(device, implementation.dtypes[0])
    if implementation.name.startswith("cuda") and not implementation.unavailable(
        device, implementation.dtypes[0]
    ):
        assert found is not None
        assert len(found) == 16
    else:
        assert found is None or len(found) == 16
