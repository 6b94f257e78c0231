"""What a call of the fused transform accepts, and what it refuses, in words."""

from typing import Any

import numpy as np
import pytest
import torch

from kernels.fused_transform import PRESETS
from kernels.fused_transform.tests.flavours import CUDA, IMPLEMENTATIONS, VECTOR
from kernels.implementation import Implementation
from kernels.tests.problems import skip_unless_available

EVERY = pytest.mark.parametrize("implementation", IMPLEMENTATIONS, ids=lambda i: i.name)
OURS = pytest.mark.parametrize("implementation", CUDA, ids=lambda i: i.name)


@pytest.fixture
def x(implementation: Implementation, device: torch.device) -> torch.Tensor:
    skip_unless_available(implementation, device, torch.float32)
    return torch.rand(2, 3, 5, 3, device=device)


@EVERY
def test_inputs_that_do_not_fit_are_refused(
    implementation: Implementation, x: torch.Tensor
) -> None:
    for odd, expected in (
        (x.double(), "dtype of float32, float16, uint8"),
        (x.bfloat16(), "dtype of float32, float16, uint8"),
        (x[..., :2], r"\[..., 3\] for a transform of 3 to 3"),
        (torch.tensor(1.0, device=x.device), r"\[..., 3\]"),
        (x.permute(0, 3, 1, 2).contiguous().permute(0, 2, 3, 1), "rows of whole pixels"),
        (x.expand(2, 3, 5, 3)[..., :1].expand(2, 3, 5, 3), "rows of whole pixels"),
    ):
        with pytest.raises(ValueError, match=rf"fused_transform: x is .*{expected}"):
            implementation(odd, out=torch.empty_like(x))
    with pytest.raises(ValueError, match="expected a CUDA or CPU tensor"):
        implementation(x.to("meta"))


@EVERY
def test_outputs_that_do_not_fit_are_refused(
    implementation: Implementation, x: torch.Tensor
) -> None:
    for out in (
        torch.empty_like(x)[:1],
        torch.empty_like(x).half(),
        torch.empty(2, 3, 5, 1, device=x.device),
        torch.empty(2, 3, 5, 3, device="meta"),
    ):
        with pytest.raises(ValueError, match=r"out is .*expected \[2, 3, 5, 3\] float32 on "):
            implementation(x, out=out)
    images = x.to(torch.uint8)  # of bytes come numbers: none is rounded or saturated to a byte
    with pytest.raises(ValueError, match=r"out is .*uint8 on .*expected .*float32"):
        implementation(images, out=torch.empty_like(images))
    with pytest.raises(ValueError, match=r"out is .*expected no element twice"):
        implementation(x, out=x[:1, :1].clone().expand(2, 3, 5, 3))


@EVERY
def test_an_output_that_overlaps_by_a_part_is_refused(
    implementation: Implementation, x: torch.Tensor
) -> None:
    flat = torch.rand(4096, 3, device=x.device)
    for given, out in ((flat[:-1], flat[1:]), (flat[1:], flat[:-1])):
        with pytest.raises(ValueError, match="expected memory apart from x"):
            implementation(given, out=out)
    grey = torch.rand(64, 3, device=x.device)
    with pytest.raises(ValueError, match="expected memory apart from x"):
        implementation(grey, out=grey.view(-1)[:64].view(64, 1), transform="grey_bt601")


@OURS
def test_a_known_call_is_still_checked(implementation: Implementation, x: torch.Tensor) -> None:
    flat = torch.rand(3 * 128 * 8, device=x.device)
    given, apart = flat[: 3 * 128].view(128, 3), torch.empty(128, 3, device=x.device)
    for _ in range(2):
        implementation(given, out=apart)
    # 128 bytes on: alike in every remainder that the call is remembered by.
    across = flat[32 : 32 + 3 * 128].view(128, 3)
    implementation(given, out=flat[3 * 128 : 6 * 128].view(128, 3))
    with pytest.raises(ValueError, match="expected memory apart from x"):
        implementation(given, out=across)
    with pytest.raises(ValueError, match="transform is 3; expected a str"):
        implementation(given, out=apart, transform=3)
    with pytest.raises(ValueError, match=r"transform is \[3\]; expected a str"):
        implementation(given, out=apart, transform=[3])  # type: ignore[arg-type]


@OURS
def test_a_known_call_takes_new_values_and_addresses(
    implementation: Implementation, x: torch.Tensor
) -> None:
    out = torch.empty_like(x)
    for _ in range(3):
        x.uniform_()
        assert torch.equal(implementation(x, out=out), implementation(x))
    twin = torch.empty_like(x)
    assert torch.equal(implementation(x, out=twin), out)
    grey = torch.empty(2, 3, 5, 1, device=x.device)
    assert torch.equal(
        implementation(x, out=grey, transform="grey_bt601")[..., 0] > 0, x.sum(-1) > 0
    )


@EVERY
def test_parameters_that_do_not_fit_are_refused(
    implementation: Implementation, x: torch.Tensor
) -> None:
    parameters: dict[str, Any]
    for parameters, message in (
        ({"transform": "sepia"}, "no transform 'sepia'; expected one of imagenet_ycbcr"),
        ({"transform": "0 0 0; 1 0 1; 1; 2; 3"}, "expected no 0, which divides by zero"),
        ({"dtype": "float16"}, "only uint8 is converted"),
        ({"dtype": "int8"}, "dtype is 'int8'; expected float32 or float16"),
        ({"gamma": 2.2}, "got the parameters gamma; expected transform, dtype"),
    ):
        with pytest.raises(ValueError, match=message):
            implementation(x, **parameters)


@EVERY
def test_a_transform_may_be_an_object_its_text_or_a_name(
    implementation: Implementation, x: torch.Tensor
) -> None:
    transform = PRESETS["imagenet_ycbcr"]
    forms: list[Any] = [transform, str(transform), "imagenet_ycbcr", transform]
    results = [implementation(x, transform=form) for form in forms]
    assert all(torch.equal(result, results[0]) for result in results)


def test_numpy_images_are_used_where_they_lie() -> None:
    skip_unless_available(VECTOR, torch.device("cpu"), torch.uint8)
    image = np.arange(4 * 5 * 3, dtype=np.uint8).reshape(4, 5, 3)
    out = np.zeros((4, 5, 1), np.float32)
    assert VECTOR(image, out=out, transform="grey_bt601") is out
    assert out[0, 0, 0] == pytest.approx(0.587 * 1 + 0.114 * 2)
    # A view of blue, green, red has a negative stride, which torch has no view of.
    with pytest.raises(ValueError, match="without a copy"):
        VECTOR(image[..., ::-1], transform="grey_bt601")


@OURS
def test_torch_compile_takes_it_as_one_operator(
    implementation: Implementation, x: torch.Tensor
) -> None:
    expected = implementation(x)
    torch._dynamo.reset()

    @torch.compile(backend="aot_eager", fullgraph=True)
    def model(images: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = implementation(images * 1)
        return result + 0

    assert torch.equal(model(x), expected)


def test_reasons_why_one_cannot_run() -> None:
    cpu = torch.device("cpu")
    reasons = {i.name: i.unavailable(cpu, torch.float32) for i in IMPLEMENTATIONS}
    for name in ("torch_compile", "torch_folded_compile", "triton"):
        assert reasons.pop(name) == f"fused_transform/{name} is measured on a GPU only"
    assert set(reasons.values()) == {None}
    assert (
        VECTOR.unavailable(cpu, torch.float64)
        == "fused_transform/cuda_vector does not take float64"
    )
