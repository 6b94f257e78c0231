"""Every launch shape that the tiling may choose, on lengths and offsets that cut its tiles.

The sizes at which it chooses the larger ones take long on a CPU, so the choice is made for it here.
"""

from collections.abc import Iterator
from itertools import product

import pytest
import torch

from kernels import registry
from kernels.cuda import CudaVector
from kernels.inputs import VECTOR_BYTES
from kernels.tests import problems
from kernels.tests.guarded import check
from kernels.tiling import threads_of


def shapes(kernel: str) -> Iterator[object]:
    """Yield (implementation, dtype, loads, shifted loads) of every shape that there is."""
    vector = registry.get(kernel, "cuda_vector")
    assert isinstance(vector, CudaVector)
    for dtype in vector.dtypes:
        loads = vector.loads_of.get(dtype, vector.loads)
        for index, count in enumerate(loads):
            shifted = vector.shifted_loads[min(index, len(vector.shifted_loads) - 1)]
            label = f"{kernel}-{str(dtype).removeprefix('torch.')}-x{count}"
            yield pytest.param(vector, dtype, count, shifted, id=label)


@pytest.mark.parametrize(
    ("vector", "dtype", "loads", "shifted"),
    [shape for kernel in problems.ELEMENTWISE for shape in shapes(kernel)],
)
def test_every_shape(
    vector: CudaVector,
    dtype: torch.dtype,
    loads: int,
    shifted: int,
    device: torch.device,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problems.skip_unless_available(vector, device, dtype)
    monkeypatch.setattr(vector, "loads", (loads,))
    monkeypatch.setattr(vector, "loads_of", {})
    monkeypatch.setattr(vector, "shifted_loads", (shifted,))
    monkeypatch.setattr(vector, "_calls", {})
    values = problems.values(vector.kernel, dtype, device)
    phases = range(VECTOR_BYTES // dtype.itemsize)
    tile = threads_of(loads) * loads * len(phases)
    offsets = [(a, b) for a, b in product(phases, phases) if a in {0, 1} or b in {0, 3} or a == b]
    for n in (1, 2 * len(phases) + 1, tile - 1, tile, tile + 1, 3 * tile + 5):
        inputs, expected, bound = values.first(n)
        for offset, output_offset in offsets:
            check(
                vector,
                inputs,
                expected,
                bound,
                input_offsets=[offset] * len(inputs),
                output_offset=output_offset,
                parameters=values.parameters,
            )


@pytest.mark.parametrize("phase", [0, 1, 2, 3, 255, 511, 512, 1023, 1500, 2047])
@pytest.mark.parametrize("kernel", ["relu", "add"])
def test_outputs_anywhere_within_a_tile(
    kernel: str, phase: int, device: torch.device, monkeypatch: pytest.MonkeyPatch
) -> None:
    vector = registry.get(kernel, "cuda_vector")
    assert isinstance(vector, CudaVector)
    problems.skip_unless_available(vector, device, torch.float32)
    monkeypatch.setattr(vector, "_calls", {})
    values = problems.values(kernel, torch.float32, device)
    for loads, n in product(vector.loads, (5, 600, 5000)):
        monkeypatch.setattr(vector, "loads", (loads,))
        inputs, expected, _ = values.first(n)
        placed = torch.full((n + phase + 64,), 7.0, device=device)
        out = placed[phase : phase + n]
        vector(*inputs, out=out)
        assert torch.equal(out.nan_to_num(9.0), expected.float().nan_to_num(9.0))
        assert placed[:phase].eq(7.0).all()
        assert placed[phase + n :].eq(7.0).all()


@pytest.mark.parametrize("loads", [1, 2, 4])
@pytest.mark.parametrize(("source", "to"), [("float32", "float16"), ("bfloat16", "float32")])
def test_every_shape_of_a_conversion(
    source: str, to: str, loads: int, device: torch.device, monkeypatch: pytest.MonkeyPatch
) -> None:
    vector = registry.get("convert", "cuda_vector")
    assert isinstance(vector, CudaVector)
    dtype, target = getattr(torch, source), getattr(torch, to)
    problems.skip_unless_available(vector, device, dtype)
    choices = vector.loads_of.get(dtype, vector.loads)
    if loads not in choices:
        pytest.skip("no such shape")
    monkeypatch.setattr(vector, "loads", (loads,))
    monkeypatch.setattr(vector, "loads_of", {})
    monkeypatch.setattr(vector, "_calls", {})
    x = torch.randn(3 * threads_of(loads) * loads * 4 + 5, device=device).to(dtype)
    for n in (1, 9, threads_of(loads) * loads * 4, len(x)):
        for offset, output_offset in product(range(16 // dtype.itemsize), (0, 1, 2, 3)):
            check(
                vector,
                [x[:n]],
                x[:n].to(target).double(),
                0.0,
                out_dtype=target,
                input_offsets=[offset],
                output_offset=output_offset,
                parameters={"to": to, "rounding": "rn"},
            )
