"""The accuracy study: its error measures, its forms against float64, and its verdict both ways."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import pytest
import torch

from kernels import host
from perftests.studies import accuracy
from perftests.studies.accuracy import FORMS, IMAGES, NEAR, errors, inputs_of
from perftests.studies.accuracy_forms import FAST_MATH, Form
from perftests.studies.accuracy_told import verdict
from perftests.studies.frame import Scope, missing
from perftests.studies.pictures import picture

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from perftests.harness.session import Session
    from perftests.studies.tables import Row

CPU = torch.device("cpu")
needs_compiler = pytest.mark.skipif(host.compiler() is None, reason="g++ is not installed")


def named(form: Form) -> str:
    types = f"{str(form.source)[6:]}-{str(form.target)[6:]}"
    return f"{form.name}-{types}"


def test_errors_are_told_in_all_four_measures() -> None:
    got = torch.tensor([1.0 + 2.0**-22, 8.0])  # two ULP off at 1; exact at 8
    expected = torch.tensor([1.0, 8.0]).double()
    found = errors(got, expected, torch.tensor([2.0, 9.0]), torch.tensor([2.0**-20, 1.0]))
    assert found["max error"] == 2  # 2^-22 / 2 over 2^-24
    assert found["mean error"] == 1
    assert found["of bound"] == 0.25
    assert found["max ULP"] == 2


@needs_compiler
@pytest.mark.parametrize("form", [f for f in FORMS if not f.fast], ids=named)
@pytest.mark.parametrize("kind", [IMAGES, NEAR])
def test_every_form_errs_by_no_more_than_its_roundings_can(form: Form, kind: str) -> None:
    x = inputs_of(form, 2051, CPU, kind)
    out = torch.empty(x.shape, dtype=form.target)
    form(x, out)
    found = errors(out, form.expected(x), form.magnitude(x), form.bound(x))
    assert 0 < float(found["of bound"]) <= 1
    assert float(found["max error"]) > 0.05  # a form that errs nowhere was compared with itself


@needs_compiler
def test_a_transposed_matrix_is_far_beyond_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    form = Form("divided")
    plain = struct.unpack("30f", form.constants())
    matrix = [plain[9 + 3 * row + column] for column in range(3) for row in range(3)]
    swapped = struct.pack("30f", *plain[:9], *matrix, *plain[18:])
    monkeypatch.setattr("perftests.studies.accuracy_forms._constants", lambda _: swapped)
    x = inputs_of(form, 128, CPU, IMAGES)
    out = torch.empty_like(x)
    form(x, out)
    found = errors(out, form.expected(x), form.magnitude(x), form.bound(x))
    assert float(found["of bound"]) > 1000


def test_constants_are_those_of_the_transform() -> None:
    numbers = struct.unpack("30f", Form("folded").constants())
    assert numbers[:3] == pytest.approx((0.485, 0.456, 0.406))
    assert numbers[6] == pytest.approx(1 / 0.229)
    assert numbers[10] == pytest.approx(-0.168736)  # row 0, column 1: not transposed
    assert numbers[19] == pytest.approx(-0.168736 / 0.229)
    assert numbers[27:] == pytest.approx(Form("folded").transform.coefficients[9:])
    single = struct.unpack("30f", Form("folded", folded_in="float32").constants())
    assert numbers[18:] != single[18:]
    assert single[18:] == pytest.approx(numbers[18:], rel=2e-6)


def row(form: str, values: Row | None = None, *, fast: bool = False, half: str = "float32") -> Row:
    known: Row = {"max error": 1.0, "mean error": 0.2, "of bound": 0.2, "median ULP": 1.0}
    start: Row = {"form": form, "x": half, "y": half, "arithmetic": "float32", "fast math": fast}
    return {**start, **known, **(values or {})}


def rows(folded: Row | None = None) -> list[Row]:
    return [row("divided"), row("folded", folded)]


def test_the_verdict_says_that_folding_loses_where_it_does() -> None:
    text = verdict(rows({"max error": 3.0}), rows({"median ULP": 40.0}), [])
    assert text.startswith("Folding loses accuracy in fp32")
    assert "3.0 times that of dividing" in text
    assert "40 ULP in the median against 1" in text
    assert "it stays within the bound (0.20 of it)" in text
    assert "did not run here" in text


def test_the_verdict_says_that_folding_does_not_lose_where_it_does_not() -> None:
    text = verdict(rows({"of bound": 1.5}), rows(), [])
    assert text.startswith("Folding does not lose accuracy")
    assert "it does not stay within the bound (1.50 of it)" in text


def test_the_verdict_weighs_fast_math_and_folding_against_time() -> None:
    fast = row("divided", {"max error": 4.0}, fast=True)
    times = [
        row("divided", {"time": 1e-4}),
        row("folded", {"time": 0.99e-4}),
        row("divided", {"time": 0.5e-4}, fast=True),
    ]
    text = verdict([*rows(), fast], rows(), times)
    assert "the divided form's largest error is 4.00 times what it was, its time 50.0% less" in text
    assert "folding is 1.0% faster than dividing: what folding gains elsewhere" in text
    slow = [row("divided", {"time": 1.4e-4}), row("folded", {"time": 1e-4})]
    assert "folding is 40.0% faster than dividing." in verdict(rows(), rows(), slow)


def test_the_verdict_tells_what_narrow_arithmetic_adds() -> None:
    wide = row("folded", {"max error": 4000.0}, half="float16")
    narrow = row("folded", {"max error": 12000.0, "arithmetic": "float16"}, half="float16")
    text = verdict([*rows(), wide, narrow], rows(), [])
    assert "float16 costs 4000 units" in text
    assert "one rounding of y, which is 8192 at most" in text
    assert "3.0 times that when the arithmetic is narrow too" in text


def test_narrow_types_that_all_take_one_time_are_said_to_tell_no_price() -> None:
    narrow = [
        row("folded", {"time": time, "of copy": share}, half="float16")
        for time, share in ((110e-6, 0.62), (111e-6, 0.75))
    ]
    assert "all take 110.0 to 111.0 us, 62% to 75% of a copy's rate" in verdict([], [], narrow)
    narrow[0]["of copy"] = 0.98
    assert "tell no price" not in verdict([], [], narrow)


def test_without_rows_the_verdict_says_so() -> None:
    assert verdict([], [], []).startswith("Folding was not measured")


@needs_compiler
def test_a_small_run_on_the_cpu_fills_tables_store_and_picture(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    validate: Callable[[Any], Any],
    quick_session: Session,
) -> None:
    monkeypatch.setattr(accuracy, "TIMED", (Form("divided"), Form("folded"), FORMS[1]))
    monkeypatch.setattr(accuracy, "_SMALL_SHAPE", (1, 16, 16, 3))
    monkeypatch.setattr(accuracy, "_SMALL_PIXELS", 4096)
    monkeypatch.setattr(accuracy, "machine_code", lambda: missing("Machine code", "not asked for"))
    scope = Scope(quick_session, CPU, small=True)
    found = accuracy.run(scope)
    errors_of, _near, times, ours, _code = found.sections
    assert len(errors_of.rows) == len([f for f in FORMS if not f.fast])
    named_rows = {(r["form"], r["x"], r["arithmetic"]): r for r in errors_of.rows}
    half = named_rows["folded", "float16", "float32"]
    own, both = float(half["max error"]), float(half["max error, x's own rounding too"])
    assert own < both < 3 * own
    assert f"left out: {FAST_MATH} is an option of the GPU's compiler" in errors_of.how
    assert {r["implementation"] for r in ours.rows} >= {"torch_eager", "cuda_vector"}
    assert len(times.rows) == 2
    assert [kept["result"]["correctness"]["passed"] for kept in scope.kept] == [True, True]
    for envelope in scope.kept:
        validate(envelope)
    assert "Folding loses accuracy" in found.verdict
    assert found.draw is not None
    picture(found.draw, tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 10_000


def test_a_chain_that_breaks_loses_one_time_only(monkeypatch: pytest.MonkeyPatch) -> None:
    class Breaking:
        device, small = CPU, True

        def measure(self, workload: Any) -> Any:
            raise RuntimeError(f"no time for {workload.implementation}")

    monkeypatch.setattr(accuracy, "TIMED", (Form("divided"),))
    section = accuracy.speed(Breaking())  # type: ignore[arg-type]
    assert section.rows == []
    assert "RuntimeError: no time for study_divided" in section.how


def test_fast_math_changes_the_instructions() -> None:
    from kernels import build, toolkit

    try:
        build.nvrtc_version()
        toolkit.binary("nvdisasm")
        toolkit.binary("cuobjdump")
    except (build.BuildError, FileNotFoundError) as error:
        pytest.skip(str(error))
    found = {(r["form"], r["fast math"]): r for r in accuracy.machine_code().rows}
    assert found["divided", True]["instructions"] < found["divided", False]["instructions"]  # type: ignore[operator]
    assert found["folded", False]["that flush subnormals"] == 0
    assert found["folded", True]["that flush subnormals"] > 0  # type: ignore[operator]


@pytest.mark.gpu
def test_every_form_runs_on_a_gpu_within_its_bound(gpu: str) -> None:
    section = accuracy.accuracy(torch.device(gpu, 0), 1 << 14, IMAGES)
    assert len(section.rows) == len(FORMS)
    assert all(float(r["of bound"]) <= 1 for r in section.rows)
