"""The ladder study: what it measures on a CPU, and its verdict on planted rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kernels.registry import implementations
from perftests.studies import frame, ladder
from perftests.studies.ladder_launches import Launched, is_kernel, summary
from perftests.studies.ladder_verdict import steps, verdict
from perftests.studies.tables import Section

if TYPE_CHECKING:
    from pathlib import Path

    from perftests.studies.tables import Row

AS_PUBLISHED = {
    "torch_eager": 1.0,
    "torch_jit": 1.2,
    "torch_compile": 1.25,
    "torch_folded": 1.42,
    "cuda_scalar": 2.5,
    "cuda_direct": 3.1,
}


def planted(speedups: dict[str, float]) -> list[Section]:
    rows: list[Row] = [
        {"implementation": name, "time": 1 / value, "over eager": value, "of copy": value / 12}
        for name, value in speedups.items()
    ]
    return [Section("The ladder, fp32", "Planted", rows)]


def test_rows_as_published_hold_the_claim_and_its_order() -> None:
    text = verdict(planted(AS_PUBLISHED))
    assert "float4 accesses (3.10x)" in text
    assert "more than published" in text  # 3.10 is 3 % above 3
    assert "the folded form (1.42x), a CUDA thread a pixel (2.50x) as published" in text
    assert "less" not in text
    assert "With fp32 their order holds." in text
    assert "The best is" not in text
    assert "With fp32 the best is cuda_direct at 3.1x, 25.8% of a copy's rate." in text


def test_rows_that_differ_say_which_step_and_where_the_order_falls() -> None:
    found = AS_PUBLISHED | {"torch_jit": 1.12, "cuda_scalar": 11.0, "cuda_direct": 8.7}
    text = verdict(planted(found))
    assert "torch.jit.script (1.12x) less than that" in text
    assert "a CUDA thread a pixel (11.00x), float4 accesses (8.70x) more than published" in text
    assert "float4 accesses lose to a CUDA thread a pixel" in text


def test_the_published_steps_stand_beside_what_was_found() -> None:
    rows = {str(row["step"]): row for row in steps(planted(AS_PUBLISHED)).rows}
    assert rows["torch.jit.script"]["fp32"] == "1.20x, as published"
    assert rows["float4 accesses"]["fp32"] == "3.10x, more"
    assert rows["float4 accesses"]["published"] == "3x"


def test_the_many_kernels_of_eager_and_the_reason_of_the_best_are_told() -> None:
    seen = [Launched("void cutlass::Kernel2<cutlass_80_simt_sgemm_32x128>(Params)", 5e-5)] * 257
    seen += [Launched("void at::native::vectorized<4, at::native::CUDAFunctor_add<float> >", 1e-3)]
    pieces: list[Row] = [{"input": "fp32", **row} for row in summary("torch_eager", seen)]
    assert [row["launches"] for row in pieces] == [257, 1]
    assert pieces[0]["kernel"] == "Kernel2: cutlass_80_simt_sgemm_32x128"
    assert pieces[1]["kernel"] == "vectorized: CUDAFunctor_add"
    (section,) = planted(AS_PUBLISHED)
    gib = 2**30
    section.rows[0].update({"kernels": 258, "extra memory": 6 * gib, "bandwidth": 6 * gib})  # 1 s
    section.rows[-1].update({"kernels": 1, "extra memory": 0})
    text = verdict([section], pieces)
    assert "make eager move 3.0 times the bytes of one pass" in text
    assert "257 of its 258 kernels are one matrix product" in text
    assert "Kernel2: cutlass_80_simt_sgemm_32x128), 93% of the call." in text
    assert "1 kernel and 0 MiB of temporaries against eager's 6144" in text


def test_without_eager_nothing_is_said() -> None:
    assert verdict(planted({"cuda_scalar": 2.0})) == "Nothing was timed, so nothing is said."


def test_a_cpu_climbs_small_with_reasons_for_what_cannot_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    wanted = ("torch_eager", "torch_compile", "torch_folded")
    some = [i for i in implementations("fused_transform") if i.name in wanted]
    monkeypatch.setattr(ladder, "implementations", lambda kernel: some)
    scope = frame.new_scope("cpu", small=False)
    findings = ladder.run(scope)
    rows = {str(row["implementation"]): row for row in findings.sections[1].rows}
    assert rows["torch_eager"]["over eager"] == 1
    assert "measured on a GPU only" in str(rows["torch_compile"]["note"])
    assert {env["result"]["case"]["dtype"] for env in scope.kept} == {"float32", "uint8"}
    assert "With uint8 to fp32 the best is" in findings.verdict


@pytest.mark.parametrize(
    ("name", "kernel"),
    [
        ("fused_warp", True),
        ("void at::native::vectorized_elementwise_kernel<4>", True),
        ("Memcpy DtoD (Device -> Device)", False),
        ("Memset (Device)", False),
    ],
)
def test_what_the_driver_copies_is_no_kernel(name: str, kernel: bool) -> None:
    assert is_kernel(name) == kernel
