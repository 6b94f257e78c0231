"""The ladder study: what it measures on a CPU, and its verdict on planted rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kernels.registry import implementations
from perftests.studies import frame, ladder
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
    text = ladder.verdict(planted(AS_PUBLISHED))
    assert "against the claim: as published: torch.jit.script 1.20x (published 1.15-1.3x)" in text
    assert "more:" not in text
    assert "less:" not in text
    assert "The order of the published steps holds." in text
    assert "The best is cuda_direct at 3.10x, 25.8% of a copy's rate." in text


def test_rows_that_differ_say_which_step_and_where_the_order_falls() -> None:
    found = AS_PUBLISHED | {"torch_jit": 1.0, "cuda_scalar": 11.0, "cuda_direct": 8.7}
    text = ladder.verdict(planted(found))
    assert "less: torch.jit.script 1.00x (published 1.15-1.3x)" in text
    assert "more: a CUDA thread a pixel 11.00x (published 2.5x), float4 accesses 8.70x" in text
    assert "float4 accesses does not beat a CUDA thread a pixel" in text


def test_without_eager_nothing_is_said() -> None:
    assert ladder.verdict(planted({"cuda_scalar": 2.0})) == "Nothing was timed, so nothing is said."


def test_a_cpu_climbs_small_with_reasons_for_what_cannot_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    wanted = ("torch_eager", "torch_compile", "torch_folded")
    some = [i for i in implementations("fused_transform") if i.name in wanted]
    monkeypatch.setattr(ladder, "implementations", lambda kernel: some)
    scope = frame.new_scope("cpu", small=False)
    findings = ladder.run(scope)
    rows = {str(row["implementation"]): row for row in findings.sections[0].rows}
    assert rows["torch_eager"]["over eager"] == 1
    assert "measured on a GPU only" in str(rows["torch_compile"]["note"])
    assert {env["result"]["case"]["dtype"] for env in scope.kept} == {"float32", "uint8"}
    assert "With uint8 to fp32, against the claim" in findings.verdict


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
    assert ladder.is_kernel(name) == kernel
