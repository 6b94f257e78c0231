"""What the studies ask a GPU for: residency, launches, memory, and counters of several launches."""

from __future__ import annotations

import pytest
import torch

from kernels import build, launch
from kernels.cases import Case
from kernels.registry import get
from kernels.sass import facts
from perftests.harness.counters import CountersError
from perftests.studies import frame, ladder, roofline, sweep, width
from perftests.studies.counted import counters
from perftests.studies.occupancy import asked, estimated

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("shape", [sweep.Shape(64, 1), sweep.Shape(256, 8), sweep.Shape(1024, 4)])
def test_the_driver_agrees_with_the_rules_of_an_sm(gpu: str, shape: sweep.Shape) -> None:
    if torch.cuda.get_device_capability()[0] not in {8, 9, 10}:
        pytest.skip("the rules are those of compute capabilities 8.0, 9.0 and 10.0")
    code = build.compile_cubin(sweep.SOURCE, launch.arch_of(0), shape.options).code
    name = shape.name("float32")
    assert asked(code, name, shape.threads) == estimated(facts(code)[name].registers, shape.threads)


def test_kernels_and_memory_of_a_call_are_counted(gpu: str) -> None:
    case = Case(
        "fused_transform", "float32", (4, 64, 64, 3), parameters={"transform": "imagenet_ycbcr"}
    )
    device = torch.device("cuda", 0)
    eager, seen = ladder._cost_of_a_call(get("fused_transform", "torch_eager"), case, device)
    ours, _ = ladder._cost_of_a_call(get("fused_transform", "cuda_vector"), case, device)
    assert ours == {"kernels": 1, "extra memory": 0}
    assert int(eager["kernels"]) == len(seen) >= 3
    assert all(one.seconds > 0 for one in seen)
    assert int(eager["extra memory"]) >= 4 * 64 * 64 * 3 * 4


def _no_counters(study: str, specs: object) -> None:
    raise CountersError("left out")


@pytest.mark.parametrize("study", [ladder.STUDY, width.STUDY, sweep.STUDY, roofline.STUDY])
def test_a_study_runs_small_on_a_gpu(
    gpu: str, study: frame.Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        ladder,
        "implementations",
        lambda kernel: [get(kernel, "torch_eager"), get(kernel, "cuda_vector")],
    )
    for module in (width, sweep):  # a process under ncu each; the last test has one
        monkeypatch.setattr(module, "counters", _no_counters)
    done = frame.run(study, frame.new_scope("cuda", small=True))
    assert done.findings.verdict
    assert done.findings.draw is not None


def test_each_launch_has_its_counters(gpu: str) -> None:
    try:
        one, three = counters(
            "width", [("float32", 16, "cuda_float1"), ("float32", 16, "cuda_float3")]
        )
    except CountersError as error:
        pytest.skip(f"no counters here: {error}")
    assert one["sectors_per_load_request"] == pytest.approx(4, abs=0.1)
    assert three["sectors_per_load_request"] == pytest.approx(12, abs=0.3)
