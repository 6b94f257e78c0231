"""Registry, cases, costs and inputs: what the measuring suite builds on."""

from math import prod

import pytest
import torch

from kernels import reference, registry
from kernels.cases import TIERS, Case, cases
from kernels.cost import Cost, cost
from kernels.inputs import empty_at, make_inputs
from kernels.tolerances import bound

EVERY_KERNEL = pytest.mark.parametrize("kernel", registry.kernels())


@EVERY_KERNEL
def test_names_are_unique_and_found(kernel: str) -> None:
    names = [i.name for i in registry.implementations(kernel)]
    assert len(set(names)) == len(names)
    for name in names:
        found = registry.get(kernel, name)
        assert (found.kernel, found.name) == (kernel, name)
        assert found.source_file.startswith(f"kernels/{kernel}/")
        assert found.dtypes


def test_what_does_not_exist_is_refused_with_what_does() -> None:
    with pytest.raises(ValueError, match=r"no kernel 'gelu': the kernels are relu, add"):
        registry.implementations("gelu")
    with pytest.raises(ValueError, match=r"no implementation 'cuda' of relu: there are torch"):
        registry.get("relu", "cuda")
    with pytest.raises(ValueError, match="no tier 'slow': the tiers are correctness"):
        cases("relu", "cuda", "slow")
    with pytest.raises(ValueError, match="no kernel 'gelu'"):
        reference("gelu")


@EVERY_KERNEL
@pytest.mark.parametrize("device_type", ["cpu", "cuda"])
@pytest.mark.parametrize("tier", TIERS)
def test_cases_are_data_with_a_reason(kernel: str, device_type: str, tier: str) -> None:
    found = cases(kernel, device_type, tier)
    assert found
    labels = [case.label for case in found]
    assert len(set(labels)) == len(labels)
    for case in found:
        assert case.kernel == kernel
        assert case.tier == tier
        assert case.reason
        spent = cost(case)
        assert spent.bytes_moved >= 0
        assert spent.flop >= 0
        shape, dtype = registry.definition(kernel).output(case)
        assert isinstance(dtype, torch.dtype)
        assert len(shape) >= 1


MOMENTS = {
    "standard normal": (0.0, 1.0),
    "uniform in [0, 1)": (0.5, 12**-0.5),
    "uniform in [0.5, 1.5)": (1.0, 12**-0.5),
    "every byte alike": (127.5, ((256**2 - 1) / 12) ** 0.5),
}
"""Mean and standard deviation of each distribution that a kernel may name."""


@EVERY_KERNEL
def test_inputs_are_drawn_as_the_kernel_says(kernel: str) -> None:
    meaning = registry.definition(kernel)
    large = [c for c in cases(kernel, "cpu", "correctness") if 4096 <= prod(c.shape) <= 1 << 20]
    by_dtype = {case.dtype: case for case in large}
    assert by_dtype
    for case in by_dtype.values():
        main, _, scale = meaning.distribution(case).partition("; scale ")
        inputs = dict(zip(meaning.inputs, make_inputs(case, "cpu", 1), strict=True))
        for name, values in inputs.items():
            mean, deviation = MOMENTS[scale if name == "scale" else main]
            error = 5 * deviation / values.numel() ** 0.5
            assert abs(float(values.double().mean()) - mean) < error, (name, case.label)
            assert abs(float(values.double().std()) - deviation) < error, (name, case.label)


@EVERY_KERNEL
def test_inputs_follow_the_seed_and_the_offsets(kernel: str) -> None:
    case = next(c for c in cases(kernel, "cpu", "correctness") if any(c.input_offsets))
    first, again = make_inputs(case, "cpu", 1), make_inputs(case, "cpu", 1)
    other = make_inputs(case, "cpu", 2)
    offsets = case.input_offsets
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not torch.equal(first[0], other[0])
    for tensor, offset in zip(first, offsets, strict=False):
        assert tensor.data_ptr() % 16 == offset * tensor.itemsize % 16
    error = bound(case, first)
    if isinstance(error, torch.Tensor):
        assert (error >= 0).all()
        assert error.isfinite().all()


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        (Case("relu", "float32", (10,)), Cost(80, 10)),
        (Case("relu", "float16", (3, 5)), Cost(60, 15)),
        (Case("add", "bfloat16", (7,)), Cost(42, 7)),
        (Case("silu", "float32", (2,)), Cost(16, 8)),
        (Case("scale_relu", "float32", (4,), parameters={"scale": 0.7}), Cost(32, 8)),
        (
            Case("bn_relu_add", "float16", (1, 2, 2, 8), parameters={"layout": "nhwc"}),
            Cost(3 * 32 * 2 + 2 * 8 * 4, 128),
        ),
        (
            Case("bn_relu_add", "float32", (1, 8, 2, 2), parameters={"layout": "nchw"}),
            Cost(3 * 32 * 4 + 2 * 8 * 4, 128),
        ),
        (
            Case("convert", "float32", (6,), parameters={"to": "float16", "rounding": "rn"}),
            Cost(36, 0),
        ),
    ],
)
def test_costs_counted_by_hand(case: Case, expected: Cost) -> None:
    assert cost(case) == expected


def test_an_article_size_counts_its_gigabytes() -> None:
    assert cost(Case("relu", "float32", (1 << 30,))).bytes_moved == 8 * 2**30


@pytest.mark.parametrize(
    ("inputs", "output", "text"),
    [
        ((), 0, "aligned"), ((0, 0), 0, "aligned"), ((1,), 0, "in+1 out+0"),
        ((1, 1), 3, "in+1 out+3"), ((1, 0), 0, "in+1,0 out+0"), ((), 2, "in+0 out+2"),
    ],
)  # fmt: skip
def test_alignment_is_told(inputs: tuple[int, ...], output: int, text: str) -> None:
    assert Case("add", "float32", (4,), inputs, output).alignment == text


@pytest.mark.parametrize("offset", range(8))
def test_a_tensor_lies_where_asked(offset: int) -> None:
    tensor = empty_at((3, 5), torch.float16, "cpu", offset)
    assert tensor.data_ptr() % 16 == 2 * offset
    assert tensor.is_contiguous()


def test_what_cannot_run_says_why() -> None:
    cpu = torch.device("cpu")
    triton = registry.get("relu", "triton")
    assert "measured on a GPU only" in str(triton.unavailable(cpu, torch.float32))
    half = registry.get("add", "cuda_half2")
    assert half.unavailable(cpu, torch.float32) == "add/cuda_half2 does not take float32"
    with pytest.raises(ValueError, match="add/cuda_half2 does not take float32"):
        half(torch.ones(2), torch.ones(2))
    assert registry.get("relu", "torch").unavailable(torch.device("meta"), torch.float32)
    assert registry.get("relu", "cuda_vector").fingerprint(cpu, torch.float32) is None
