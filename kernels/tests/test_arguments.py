"""What a call accepts and what it refuses, in words that say what came and what was expected."""

import sys
from contextlib import nullcontext
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch

from kernels import registry
from kernels.cases import cases
from kernels.implementation import Implementation
from kernels.inputs import make_inputs, stream_of
from kernels.tests.problems import skip_unless_available

EVERY = pytest.mark.parametrize(
    "implementation",
    [pytest.param(i, id=repr(i)) for k in ("relu", "add") for i in registry.implementations(k)],
)


def arguments(
    implementation: Implementation, device: torch.device, n: int = 33
) -> list[torch.Tensor]:
    dtype = implementation.dtypes[0]
    skip_unless_available(implementation, device, dtype)
    count = len(implementation.definition.inputs)
    return [torch.randn(n, device=device).to(dtype) for _ in range(count)]


@EVERY
@pytest.mark.parametrize("dtype", [torch.float64, torch.int32, torch.complex64])
def test_another_dtype_is_refused(
    implementation: Implementation, dtype: torch.dtype, device: torch.device
) -> None:
    inputs = [x.to(dtype) for x in arguments(implementation, device)]
    with pytest.raises(ValueError, match=str(dtype).removeprefix("torch.")):
        implementation(*inputs)


@EVERY
def test_an_output_of_another_dtype_shape_or_device_is_refused(
    implementation: Implementation, device: torch.device
) -> None:
    inputs = arguments(implementation, device)
    like = inputs[0]
    for out in (
        torch.empty(33, dtype=torch.float64, device=device),
        torch.empty_like(like)[:32],
        torch.empty(3, 11, dtype=like.dtype, device=device),
        torch.empty(33, dtype=like.dtype, device="meta"),
    ):
        with pytest.raises(ValueError, match=r"out is \[.*expected \[33\]"):
            implementation(*inputs, out=out)


@EVERY
def test_layouts_with_strides_are_refused(
    implementation: Implementation, device: torch.device
) -> None:
    first, *rest = arguments(implementation, device, 64)
    for odd in (
        first.view(2, 32).t(),
        first.view(8, 8)[:, :4],
        first[::2],
        first[:1].expand(64),
    ):
        others = [torch.ones(odd.shape, dtype=first.dtype, device=device) for _ in rest]
        with pytest.raises(ValueError, match=r"strides .*expected a contiguous tensor"):
            implementation(odd, *others)
        inputs = [torch.ones(odd.shape, dtype=first.dtype, device=device) for _ in (first, *rest)]
        with pytest.raises(ValueError, match=r"out is .*strides .*expected a contiguous tensor"):
            implementation(*inputs, out=odd)


@EVERY
def test_an_output_that_overlaps_by_a_part_is_refused(
    implementation: Implementation, device: torch.device
) -> None:
    first, *rest = arguments(implementation, device, 64)
    others = [x[:63] for x in rest]
    for given, out in ((first[:-1], first[1:]), (first[1:], first[:-1])):
        with pytest.raises(ValueError, match=r"out overlaps .* by a part"):
            implementation(given, *others, out=out)
        if others:
            with pytest.raises(ValueError, match="out overlaps b by a part"):
                implementation(others[0], given, out=out)


@EVERY
def test_the_wrong_number_of_inputs_or_parameters_is_refused(
    implementation: Implementation, device: torch.device
) -> None:
    inputs = arguments(implementation, device)
    with pytest.raises(ValueError, match=f"got {len(inputs) + 1} inputs; expected {len(inputs)}"):
        implementation(*inputs, inputs[0], out=torch.empty_like(inputs[0]))
    with pytest.raises(ValueError, match="got 0 inputs"):
        implementation()
    with pytest.raises(ValueError, match="got the parameters slope; expected none"):
        implementation(*inputs, out=torch.empty_like(inputs[0]), slope=1.0)


def test_a_parameter_of_another_type_is_refused() -> None:
    x = torch.ones(4)
    with pytest.raises(ValueError, match="scale is 'a'; expected a float"):
        registry.get("scale_relu", "cuda_vector")(x, scale="a", out=torch.empty_like(x))
    assert registry.get("scale_relu", "cuda_vector")(x, scale=2).tolist() == [2.0] * 4


def test_inputs_that_differ_are_refused(device: torch.device) -> None:
    implementation = registry.get("add", "cuda_vector")
    a = torch.ones(8, device=device)
    for b in (
        torch.ones(7, device=device),
        torch.ones(8, device=device, dtype=torch.float16),
        torch.ones(8, device="meta"),
        torch.ones(1, device=device).expand(8),
    ):
        with pytest.raises(ValueError, match="add: b is "):
            implementation(a, b)
        with pytest.raises(ValueError, match="add: b is "):
            implementation(a, b, out=torch.empty_like(a))


def test_a_tensor_without_memory_is_refused() -> None:
    meta = torch.ones(8, device="meta")
    for implementation in registry.implementations("relu"):
        with pytest.raises(ValueError, match=r"on meta; expected a CUDA or CPU tensor"):
            implementation(meta, out=torch.empty(8, device="meta"))


def test_a_list_is_refused() -> None:
    with pytest.raises(ValueError, match="is a list; expected a torch tensor or a CuPy or NumPy"):
        registry.get("relu", "cuda_vector")([1.0, 2.0])


def test_parameters_of_a_model_are_tensors_too() -> None:
    weight = torch.nn.Parameter(torch.tensor([-1.0, 2.0]))
    assert registry.get("relu", "cuda_vector")(weight).tolist() == [0.0, 2.0]


def test_numpy_arrays_are_used_where_they_lie() -> None:
    implementation = registry.get("add", "cuda_vector")
    a, b, out = np.arange(5.0, dtype=np.float32), np.ones(5, np.float32), np.zeros(5, np.float32)
    assert implementation(a, b, out=out) is out
    assert out.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]
    fresh = implementation(a, b)
    assert isinstance(fresh, np.ndarray)
    assert fresh.tolist() == out.tolist()


@pytest.mark.parametrize(
    ("handle", "told"), [(0, "default of 1"), (1, "default of 1"), (4096, "4096 of 1")]
)
def test_torch_takes_cupys_stream_for_cupys_arrays(
    handle: int, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def current(index: int) -> SimpleNamespace:
        assert index == 1
        return SimpleNamespace(ptr=handle)

    cupy = ModuleType("cupy")
    cupy.cuda = SimpleNamespace(get_current_stream=current)  # type: ignore[attr-defined]
    array = type("ndarray", (), {"__module__": "cupy", "device": SimpleNamespace(id=1)})()
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setattr(torch.cuda, "stream", nullcontext)
    monkeypatch.setattr(torch.cuda, "default_stream", lambda index: f"default of {index}")
    monkeypatch.setattr(
        torch.cuda, "ExternalStream", lambda handle, device: f"{handle} of {device}"
    )
    with stream_of((np.ones(2), array, None)) as stream:
        assert stream == told
    with stream_of((np.ones(2), torch.ones(2), None)) as stream:
        assert stream is None


def test_an_array_with_a_negative_stride_is_refused() -> None:
    with pytest.raises(ValueError, match="ndarray cannot be used without a copy"):
        registry.get("relu", "cuda_vector")(np.arange(5.0, dtype=np.float32)[::-1])


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no NVIDIA GPU here")
def test_cupy_arrays_are_used_where_they_lie() -> None:
    cupy = pytest.importorskip("cupy")
    # Values come from and go to NumPy: each of CuPy's own operations would be seconds of compiling.
    values = np.linspace(-1, 1, 1027, dtype=np.float32)
    x = cupy.asarray(values)
    for implementation in registry.implementations("relu"):
        out = cupy.asarray(np.full_like(values, np.nan))
        assert implementation(x, out=out) is out
        assert np.array_equal(cupy.asnumpy(out), np.maximum(values, 0))
        fresh = implementation(x[1:])
        assert isinstance(fresh, cupy.ndarray)
        assert np.array_equal(cupy.asnumpy(fresh), np.maximum(values[1:], 0))
        with pytest.raises(ValueError, match=r"expected a contiguous|without a copy"):
            implementation(x[::-1])


# One of each kind of implementation: how an operator stands in a graph is the business of their base.
@pytest.mark.parametrize(
    "implementation",
    [
        pytest.param(i, id=repr(i))
        for i in (*registry.implementations("relu"), registry.get("add", "cuda_half2"))
    ],
)
def test_torch_compile_takes_it_as_one_operator(
    implementation: Implementation, device: torch.device
) -> None:
    inputs = arguments(implementation, device)
    expected = implementation(*inputs)
    torch._dynamo.reset()

    @torch.compile(backend="aot_eager", fullgraph=True)
    def model(*tensors: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = implementation(*(t * 1 for t in tensors))
        return result + 0

    assert torch.equal(model(*inputs), expected)

    @torch.compile(backend="aot_eager", fullgraph=True)
    def into(out: torch.Tensor, *tensors: torch.Tensor) -> torch.Tensor:
        implementation(*tensors, out=out)
        return out * 1

    out = torch.full_like(inputs[0], float("nan"))
    assert torch.equal(into(out, *inputs), expected)
    assert torch.equal(out, expected)


@pytest.mark.parametrize(
    "implementation",
    [pytest.param(i, id=repr(i)) for k in registry.kernels() for i in registry.implementations(k)],
)
def test_the_operators_are_well_formed(
    implementation: Implementation, device: torch.device
) -> None:
    case = next(
        c
        for c in cases(implementation.kernel, "cpu", "correctness")
        if c.torch_dtype in implementation.dtypes
        and 0 not in c.shape
        and c.parameters.get("rounding", "rn") == "rn"
    )
    skip_unless_available(implementation, device, case.torch_dtype)
    defaults = implementation.definition.parameters
    arguments = (*make_inputs(case, device, 1), *({**defaults, **case.parameters}.values()))
    shape, dtype = implementation.definition.output(case)
    out = torch.empty(shape, dtype=dtype, device=device)
    operator = f"{implementation.kernel}_{implementation.name}"
    checks = ("test_schema", "test_faketensor", "test_aot_dispatch_dynamic")
    functional, writing = (getattr(torch.ops.bandwatch, operator + s).default for s in ("", "_out"))
    torch.library.opcheck(functional, arguments, test_utils=checks)
    torch.library.opcheck(writing, arguments, {"out": out}, test_utils=checks)
