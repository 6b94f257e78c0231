"""What a workload says of itself, and what it refuses before anything runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from perftests.harness.errors import SettingError
from perftests.harness.record import drawn
from perftests.harness.settings import CPU_RULE, GPU_RULE, Settings, parse_modes
from perftests.tests.workloads import relu_workload


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"bytes_moved": 0}, "bytes_moved is 0; give the compulsory bytes"),
        ({"bytes_moved": -4}, "bytes_moved is -4"),
        ({"input_offsets": (-1,)}, r"offsets are \(-1,\) and 0; give elements >= 0"),
        ({"output_offset": -1}, r"offsets are \(\) and -1"),
    ],
)
def test_what_cannot_be_is_refused(given: dict[str, Any], text: str) -> None:
    with pytest.raises(SettingError, match=rf"cannot describe relu/under_test: {text}"):
        relu_workload(**given)


@pytest.mark.parametrize(
    ("given", "alignment"),
    [
        ({}, "aligned"),
        ({"input_offsets": (0,)}, "aligned"),
        ({"input_offsets": (1,)}, "in+1 out+0"),
        ({"output_offset": 3}, "in+0 out+3"),
        ({"input_offsets": (1, 2), "output_offset": 3}, "in+1,2 out+3"),
        ({"output_offset": 3, "alignment": "odd"}, "odd"),
    ],
)
def test_offsets_name_the_alignment(given: dict[str, Any], alignment: str) -> None:
    workload = relu_workload(n=9, **given)
    assert workload.identity_alignment == alignment
    tail = "" if alignment == "aligned" else f" {alignment}"
    assert workload.label == f"relu/under_test float32 [9]{tail}"


def test_the_shape_that_names_a_case_is_the_outputs_unless_given() -> None:
    assert relu_workload(n=9).identity_shape == (9,)
    assert relu_workload(n=9, shape=(3, 3)).label == "relu/under_test float32 [3x3]"
    assert relu_workload(n=9, dtype=torch.float16).identity_dtype == "float16"
    assert replace(relu_workload(), output_dtype=torch.int8).identity_dtype == "int8"


def test_a_bound_may_hang_on_the_inputs() -> None:
    inputs = (torch.tensor([2.0]),)
    assert relu_workload(bound=0.5).error_bound(inputs) == 0.5
    found = relu_workload(bound=lambda values: values[0] * 2).error_bound(inputs)
    assert float(found) == 4.0


def test_flags_change_the_rule_and_nothing_else() -> None:
    assert Settings().rule("cuda") == GPU_RULE
    assert Settings().rule("cpu") == CPU_RULE
    quick = Settings(quick=True).rule("cuda")
    assert quick.max_seconds == pytest.approx(0.4 * GPU_RULE.max_seconds)
    assert (quick.target, quick.resolution_s) == (2 * GPU_RULE.target, 2 * GPU_RULE.resolution_s)
    few = Settings(max_samples=4, max_seconds=9.0, quick=True).rule("cuda")
    assert (few.min_samples, few.max_samples, few.max_seconds) == (4, 4, 9.0)
    assert Settings(max_samples=10_000).rule("cuda").min_samples == GPU_RULE.min_samples


def test_modes_are_named_once_each_and_unknown_ones_refused() -> None:
    assert parse_modes("hot, cold,hot") == ("hot", "cold")
    for text in ("warm", "cold,", ""):
        with pytest.raises(SettingError, match="expected one of cold, hot, rotated"):
            parse_modes(text)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"distribution": 7}, "say in words"),
        ({"zero_sign": True, "output_dtype": torch.complex64}, "complex"),
    ],
)
def test_what_no_record_and_no_comparison_could_hold_is_refused_at_once(
    given: dict[str, Any], text: str
) -> None:
    with pytest.raises(SettingError, match=text):
        relu_workload(**given)


def test_a_long_distribution_is_cut_to_what_a_record_holds() -> None:
    told = drawn(relu_workload(distribution="x" * 5000), Settings())["distribution"]
    assert len(told) <= 2000
