"""The study of vector widths: what it reads in machine code, a CPU's run, its verdict both ways."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perftests.studies import frame, width
from perftests.studies.tables import Section
from perftests.studies.width_verdict import verdict

if TYPE_CHECKING:
    import pytest

    from perftests.studies.tables import Row

Gains = dict[str, float]
CLAIMED = {"cuda_float1": 1.0, "cuda_float2": 1.4, "cuda_float3": 0.9, "cuda_float4": 1.6}
NOTHING = frame.missing("Counters", "no ncu")


def planted(gains: Gains, dtype: str = "float32") -> Section:
    return Section(
        "Packs", "Planted",
        [
            {"implementation": name, "dtype": dtype, "MiB": 256, "time": 1 / gain,
             "over one": gain, "of copy": gain / 1.6}
            for name, gain in gains.items()
        ],
    )  # fmt: skip


def offsets(times: Gains) -> Section:
    return Section(
        "Off", "Planted",
        [
            {"implementation": name, "dtype": "float32", "MiB": 256, "time": 1.0,
             "offsets": label, "over aligned": 1.0 if label == "aligned" else longer}
            for name, longer in times.items()
            for label in ("aligned", "both one off")
        ],
    )  # fmt: skip


def test_the_machine_code_has_three_scalar_loads_where_three_floats_are_added() -> None:
    rows = {str(row["implementation"]): row for row in width.code("sm_90").rows}
    assert rows["cuda_float3"]["loads"] == "6 x 32"
    assert rows["cuda_float3"]["stores"] == "3 x 32"
    assert rows["cuda_float4"]["loads"] == "2 x 128"
    assert rows["cuda_half2"]["loads"] == "2 x 32"
    assert rows["cuda_half"]["loads"] == "2 x 16"
    assert (rows["cuda_float3"]["sectors"], rows["cuda_float3"]["sectors filled"]) == (12, 4)
    assert (rows["cuda_float2"]["sectors"], rows["cuda_float2"]["sectors filled"]) == (8, 8)


def test_times_as_claimed_hold_the_claim() -> None:
    text = verdict(width.code("sm_90"), planted(CLAIMED), offsets({"cuda_float4": 1.02}), NOTHING)
    assert "At 256 MiB float32 the claim holds: over one element a thread, float2 1.40x" in text
    assert "Three floats lose to two and to four" in text
    assert "only scalar accesses for three floats: 6 x 32 bits" in text
    assert "fall back to one element a thread, 0 of 1 take more" in text


def test_three_floats_that_gain_and_two_that_do_not_refute_it() -> None:
    gains = CLAIMED | {"cuda_float2": 1.0, "cuda_float3": 2.0}
    falling = offsets({"cuda_float4": 2.5, "cuda_vector": 1.01})
    text = verdict(NOTHING, planted(gains), falling, NOTHING)
    assert "float32 the claim holds in part" in text
    assert "Three floats beat two and four" in text
    assert "The machine code could not be read." in text
    assert "1 of 1 take more than 5% longer, at most 2.50 times (float4, both one off)" in text
    assert "the vector kernel's worst is 1.01 times" in text


def test_halves_that_do_not_gain_refute_it_for_halves() -> None:
    gains = {"cuda_half": 1.0, "cuda_half2": 0.98, "cuda_half8": 1.5}
    text = verdict(NOTHING, planted(gains, "float16"), offsets({"cuda_half2": 1.0}), NOTHING)
    assert "At 256 MiB float16 the claim does not hold" in text


def test_counters_are_told_where_there_are_any() -> None:
    row: Row = {"implementation": "cuda_float3", "dtype": "float32", "sectors a load": 12.0}
    seen = Section("Counters", "Planted", [row])
    text = verdict(NOTHING, planted(CLAIMED), offsets({"cuda_float4": 1.0}), seen)
    assert "Nsight Compute counts sectors a load: float3 12." in text
    row["DRAM throughput %"] = 90.2
    text = verdict(NOTHING, planted(CLAIMED), offsets({"cuda_float4": 1.0}), seen)
    assert "float3 12; and of the memory's peak float3 90%" in text


def test_a_cpu_measures_small_with_every_offset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(width, "PACKS", {"float32": {"cuda_float1": 1, "cuda_float3": 3}})
    monkeypatch.setattr(width, "PEERS", ("torch", "triton"))
    scope = frame.new_scope("cpu", small=False)
    findings = width.run(scope)
    _, times, off, seen = findings.sections
    assert [("time" in row) for row in times.rows] == [True, True, True, False]
    labels = {(row["implementation"], row["offsets"]) for row in off.rows}
    assert len(labels) == 9
    alignments = {env["result"]["case"]["alignment"] for env in scope.kept}
    assert alignments == {"aligned", "in+1 out+1", "in+1 out+0"}
    assert "Nsight Compute counts on a GPU" in str(seen.rows[0]["why"])
