"""Launches are remembered by what they were called with: a repetition is checked all the same."""

import threading

import pytest
import torch

from kernels import cuda, registry
from kernels.cuda import RememberingImplementation
from kernels.tests.problems import skip_unless_available


def remembering(kernel: str, name: str = "cuda_vector") -> RememberingImplementation:
    found = registry.get(kernel, name)
    assert isinstance(found, RememberingImplementation)
    return found


def test_other_values_at_the_same_addresses_are_computed(device: torch.device) -> None:
    relu = remembering("relu")
    skip_unless_available(relu, device, torch.float32)
    x = torch.full((1027,), -1.0, device=device)
    out = torch.empty_like(x)
    for value in (-1.0, 2.0, 3.0):
        x.fill_(value)
        out.fill_(float("nan"))
        assert relu(x, out=out) is out
        assert out.eq(max(value, 0.0)).all()


def test_another_view_of_the_same_memory_is_another_call(device: torch.device) -> None:
    relu = remembering("relu")
    skip_unless_available(relu, device, torch.float32)
    x, out = torch.randn(2, 16, 16, device=device)
    relu(x, out=out)
    with pytest.raises(ValueError, match=r"strides .*expected a contiguous tensor"):
        relu(x.t(), out=out)
    with pytest.raises(ValueError, match=r"out is .*strides"):
        relu(x, out=out.t())
    with pytest.raises(ValueError, match=r"out is .*float16"):
        relu(x, out=out.view(torch.float16)[:, :16])
    with pytest.raises(ValueError, match=r"out is .*expected \[16, 16\]"):
        relu(x, out=out.view(256))
    with pytest.raises(ValueError, match="got 2 inputs"):
        relu(x, x, out=out)
    halves = x.view(torch.float16).nan_to_num_(1.0), out.view(torch.float16)
    relu(halves[0], out=halves[1])
    assert torch.equal(halves[1], halves[0].clamp_min(0))
    relu(x.view(256)[:7], out=out.view(256)[:7])


def test_each_parameter_is_a_call_of_its_own(device: torch.device) -> None:
    scale_relu = remembering("scale_relu")
    skip_unless_available(scale_relu, device, torch.float32)
    x = torch.full((5,), float("inf"), device=device)
    out = torch.empty_like(x)
    for scale, expected in ((2.0, float("inf")), (-2.0, 0.0), (2.0, float("inf"))):
        for _ in range(2):
            assert scale_relu(x, out=out, scale=scale).tolist() == [expected] * 5
    for scale in (0.0, -0.0, float("nan")):
        assert scale_relu(x, out=out, scale=scale).isnan().all()
    with pytest.raises(ValueError, match=r"scale is \[1.0\]; expected a float"):
        scale_relu(x, out=out, scale=[1.0])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="got the parameters slope; expected scale"):
        scale_relu(x, out=out, slope=1.0)


def test_an_overlap_is_refused_again(device: torch.device) -> None:
    add = remembering("add")
    skip_unless_available(add, device, torch.float32)
    x = torch.randn(65, device=device)
    for _ in range(2):
        with pytest.raises(ValueError, match="out overlaps a by a part"):
            add(x[:-1], x[:-1], out=x[1:])


def test_remembered_launches_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "PLANS", 4)
    relu = remembering("relu")
    skip_unless_available(relu, torch.device("cpu"), torch.float32)
    monkeypatch.setattr(relu, "_calls", {})
    x, out = torch.randn(2, 64)
    for n in range(1, 40):
        assert torch.equal(relu(x[:n], out=out[:n]), x[:n].clamp_min(0))
    assert len(relu._calls) <= 4


def test_a_thread_that_never_launched_repeats_a_call_of_another(device: torch.device) -> None:
    relu = remembering("relu")
    skip_unless_available(relu, device, torch.float32)
    x = torch.randn(1000, device=device)
    out = torch.empty_like(x)
    relu(x, out=out)
    out.fill_(float("nan"))
    if device.type == "cuda":
        torch.cuda.synchronize()
    failures: list[BaseException] = []

    def work() -> None:
        try:
            relu(x, out=out)
        except BaseException as error:  # noqa: BLE001 - told by the main thread
            failures.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert not failures
    assert torch.equal(out, x.clamp_min(0))


def test_an_output_that_is_not_given_is_new_at_every_call(device: torch.device) -> None:
    relu = remembering("relu")
    skip_unless_available(relu, device, torch.float32)
    x = torch.tensor([-1.0, 2.0, float("nan")], device=device)
    kept = [relu(x) for _ in range(4)]
    assert len({y.data_ptr() for y in kept}) == 4
    for y in kept:
        assert torch.equal(y.nan_to_num(7.0), torch.tensor([0.0, 2.0, 7.0], device=device))


def test_an_output_that_is_not_given_fits_its_inputs_and_parameters(device: torch.device) -> None:
    convert = remembering("convert")
    skip_unless_available(convert, device, torch.float32)
    for _ in range(2):
        for shape in ((5,), (2, 3), (0,)):
            x = torch.full(shape, 1.5, device=device)
            for to, dtype in (("float16", torch.float16), ("bfloat16", torch.bfloat16)):
                y = convert(x, to=to)
                assert (y.shape, y.dtype, y.device) == (x.shape, dtype, x.device)
                assert y.eq(1.5).all()


def test_inputs_are_checked_where_the_output_of_such_was_known(device: torch.device) -> None:
    add = remembering("add")
    skip_unless_available(add, device, torch.float32)
    x = torch.ones(12, device=device)
    for _ in range(2):
        assert add(x, x).eq(2.0).all()
    with pytest.raises(ValueError, match="strides"):
        add(x, torch.ones(24, device=device)[::2])
    with pytest.raises(ValueError, match="got 1 inputs"):
        add(x)
    with pytest.raises(ValueError, match=r"expected \[12\]|shape"):
        add(x, x[:5])
