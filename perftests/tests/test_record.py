"""The envelope: valid, strict, and honest about what does not exist."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import torch

from kernels.cases import Case
from kernels.registry import get
from perftests.harness.calibrate import Peaks
from perftests.harness.chain import measure
from perftests.harness.compare import Comparison
from perftests.harness.record import Findings, clip, drawn, envelope
from perftests.harness.sampling import Sample
from perftests.harness.settings import Settings
from perftests.harness.state import State
from perftests.suite import workload
from perftests.tests.workloads import relu_workload

if TYPE_CHECKING:
    from collections.abc import Callable

    from perftests.harness.session import Session
    from perftests.harness.workload import Inputs

ENVIRONMENT = {"backend": "cuda", "gpu_model": "NVIDIA H200"}
DEVICE = {"uuid": "GPU-1", "name": "NVIDIA H200"}


def full_findings() -> Findings:
    """Findings with everything a GPU gives."""
    sample = Sample([2e-6, 7e-6, 3e-6], "precise", 0.1, 1.5e9, 0, True, "cuda_event_cold")
    return Findings(
        relu_workload(parameters={"alpha": 0.5, "fast": True}),
        "cold",
        "perftests/test_relu.py::test_relu[x]",
        status="ok",
        sample=sample,
        comparisons=[
            Comparison(0, 5, 0.25, 0.5, 0.5, "5 elements agree"),
            Comparison(0, 5, 0.125, 0.125, 1.0, "5 elements agree"),
        ],
        correct=True,
        first_call={"compile_s": 0.5, "load_s": None, "launch_s": 1e-5},
        states={"before": State(1.98e9, 3.2e9, 40.0, 100.0, ("gpu_idle",), 0)},
        peaks=Peaks(4.9e12, 4.1e12, "driver", 4.2e12, 6.7e13, 2e-6),
        inputs={"seed": 7, "fresh_seed": 8, "distribution": "standard normal", "specials": True},
        flush_bytes=150 << 20,
        warnings={"near_floor": "mostly launch"},
    )


def test_a_full_result_is_valid_and_strict(validate: Callable[[Any], Any]) -> None:
    document = envelope(full_findings(), ENVIRONMENT, DEVICE)
    validate(document)
    json.dumps(document, allow_nan=False)
    result = document["result"]
    assert result["median_cycles"] == 3e-6 * 1.5e9
    assert result["inputs"]["distribution"] == "standard normal"
    assert "inputs.distribution" not in result["reasons"]
    assert result["correctness"]["worst_error"] == 0.25
    assert result["correctness"]["worst_ratio"] == 1.0
    assert result["before"]["throttle_reasons"] == ["gpu_idle"]
    assert result["warnings"] == [{"code": "near_floor", "message": "mostly launch"}]
    assert result["case"]["parameters"] == {"alpha": 0.5, "fast": True}


def test_the_seeds_of_a_record_draw_its_inputs_again(
    quick_session: Session, validate: Callable[[Any], Any]
) -> None:
    asked: list[int] = []
    usual = relu_workload()

    def make_inputs(seed: int) -> Inputs:
        asked.append(seed)
        return usual.make_inputs(seed)

    seen = relu_workload(make_inputs=make_inputs, specials=False)
    for mode in ("cold", "hot"):
        asked.clear()
        outcome = measure(seen, quick_session, mode=mode)
        validate(outcome.envelope)
        inputs = outcome.result["inputs"]
        assert [inputs["seed"], inputs["fresh_seed"]] == asked
        assert inputs["seed"] == quick_session.settings.seed
        assert inputs["specials"] is False
        assert inputs["distribution"] is None
        assert "does not name it" in outcome.result["reasons"]["inputs.distribution"]
        l2_bytes = outcome.envelope["environment"]["l2_bytes"]
        assert outcome.result["flush_bytes"] == (2 * l2_bytes if mode == "cold" else None)


@pytest.mark.parametrize(
    ("dtype", "told"), [("uint8", "every byte alike"), ("float32", "uniform in [0, 1)")]
)
def test_a_case_of_the_suite_names_what_its_kernel_draws(dtype: str, told: str) -> None:
    case = Case("fused_transform", dtype, (1, 4, 4, 3), parameters={"transform": "imagenet_ycbcr"})
    made = workload(get("fused_transform", "torch_eager"), case, torch.device("cpu"))
    assert drawn(made, Settings())["distribution"] == told


def test_infinity_and_nan_become_null_with_a_reason(validate: Callable[[Any], Any]) -> None:
    found = full_findings()
    found.comparisons[0] = Comparison(1, 5, float("inf"), 0.5, float("nan"), "wrong")
    document = envelope(found, ENVIRONMENT, DEVICE)
    validate(document)
    assert document["result"]["correctness"]["worst_error"] is None
    assert "inf" in document["result"]["reasons"]["correctness.worst_error"]


def test_a_result_without_a_sample_has_no_numbers(validate: Callable[[Any], Any]) -> None:
    document = envelope(Findings(relu_workload(), "hot"), ENVIRONMENT, DEVICE)
    validate(document)
    result = document["result"]
    assert result["measurements_s"] == []
    assert result["summary"] is None
    assert result["correctness"] == {
        "checked": False,
        "passed": None,
        "worst_error": None,
        "bound": None,
        "worst_ratio": None,
        "detail": None,
    }


def test_a_host_timer_has_no_cycles_and_says_why() -> None:
    found = full_findings()
    found.sample = Sample([1.0], "time cap", 1.0, None, 0, True, "host_clock_cold")
    result = envelope(found, ENVIRONMENT, DEVICE)["result"]
    assert result["median_cycles"] is None
    assert "host timer" in result["reasons"]["median_cycles"]


def test_long_texts_are_cut_to_what_a_record_holds() -> None:
    assert len(clip("x" * 5000)) == 2000
    assert clip("short") == "short"
