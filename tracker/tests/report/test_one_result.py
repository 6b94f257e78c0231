"""The report of one result, against figures worked out by hand."""

import csv
import io
import json
from dataclasses import replace
from types import MappingProxyType

import fastjsonschema
import pytest

from tracker.model import Correctness, DeviceState, Peaks, Result, Status, Warn
from tracker.report import report_schema
from tracker.report.document import Document
from tracker.report.formats import Format, write
from tracker.report.html import to_html
from tracker.report.json_ import to_json
from tracker.report.markdown import to_markdown
from tracker.report.one_result import result_document
from tracker.report.text import to_text
from tracker.report.verdicts import Heading
from tracker.tests.factory import summarise
from tracker.tests.report.samples import HOSTILE, make_case, make_result
from tracker.tests.report.test_escape import _OWN_TAGS, _UNSAFE, rendered

# Peak and copy in bytes per second, where the copy's is from, a sum's, FLOP per second, a floor.
PEAKS = Peaks(4.8e12, 500e9, "driver", 400e9, 67e12, 2.88e-6)


def result(arrays: int = 2, flop: int | None = 1 << 17, peaks: Peaks = PEAKS) -> Result:
    """Return one of 2^17 float32, as ReLU of 1 MiB is, in 4.58 us."""
    case = make_case(size=1 << 17)
    found = make_result(case, 4.58e-6, arrays=arrays, peaks=peaks)
    check = Correctness(checked=True, passed=True, worst_ratio=0.25)
    return replace(found, flop=flop, correctness=check)


def document(found: Result) -> Document:
    return result_document(Heading("A case", ("run r-1",), {"run": "r-1"}), found)


def lines(found: Result, width: int = 80) -> dict[str, str]:
    """Return the lines of the report, without double blanks, by their first two words."""
    shown = to_text(document(found), width=width)
    assert max(map(len, shown.splitlines())) <= width
    joined = [" ".join(line.split()) for line in shown.splitlines()]
    return {" ".join(line.split()[:2]): line for line in joined}


def roofline(found: Result) -> list[dict[str, float | str | None]]:
    data = json.loads(to_json(document(found)))
    fastjsonschema.compile(report_schema())(data)
    rows: list[dict[str, float | str | None]] = data["tables"].get("roofline", [])
    return rows


def test_what_stands_beside_the_time_is_shown_with_it() -> None:
    shown = lines(result(), width=120)
    assert shown["time 4.580"] == (
        "time 4.580 us median of 8; the middle half is 4.580 us to 4.580 us"
    )
    # 2.88 of 4.58 us.
    assert shown["empty kernel"] == "empty kernel 2.88 us by the same timer, 62.9 % of the time"
    assert shown["bandwidth 228.9"] == "bandwidth 228.9 GB/s 1 MiB moved"
    assert shown["of peak"] == "of peak 4.8 % 4800 GB/s, the memory's theoretical rate"
    assert shown["of copy"].startswith("of copy 45.8 % 500.0 GB/s, a copy of as many bytes (driver")
    assert shown["of sum"].startswith("of sum 57.2 % 400.0 GB/s, a sum of two arrays of as many")
    assert shown["arithmetic 28.62"] == "arithmetic 28.62 GFLOP/s 131,072 FLOP"
    assert shown["intensity 0.125"].startswith("intensity 0.125 FLOP/byte")
    assert shown["error 0.250"].startswith("error 0.250 of the error bound")


def test_the_roofline_has_ridge_attainable_and_attained_under_each_roof() -> None:
    peak, copy = roofline(result())
    assert (peak["roof"], copy["roof"]) == ("theoretical peak", "copy of as many bytes")
    assert peak["ridge_flop_per_byte"] == pytest.approx(67 / 4.8)
    assert copy["ridge_flop_per_byte"] == pytest.approx(134)
    # An eighth of a FLOP for each of 500 GB a second.
    assert copy["attainable_flop_per_s"] == pytest.approx(62.5e9)
    assert copy["attained_fraction"] == pytest.approx(2**20 / 4.58e-6 / 500e9)
    assert (peak["bound_by"], copy["bound_by"]) == ("memory", "memory")
    shown = lines(result())
    assert shown["copy of"] == "copy of as many bytes 500.0 134 62.50 45.8 % memory"
    # 2.88 of 4.58 us are an empty kernel's.
    assert document(result()).summary == (
        "bound by memory, 45.8 % of what its roof allows (copy of as many bytes); "
        "an empty kernel takes 62.9 % of the time"
    )


def test_beside_a_large_time_nothing_is_said_of_an_empty_kernel_in_the_last_line() -> None:
    # 4.58 us are just more than ten times 0.45 us.
    shown = document(result(peaks=replace(PEAKS, floor_s=0.45e-6)))
    assert (
        shown.summary == "bound by memory, 45.8 % of what its roof allows (copy of as many bytes)"
    )


NEAR = Warn("near_floor", "an empty kernel shows 2.88 us by the same timer")


def test_what_is_mostly_launch_is_bound_by_launch_whatever_its_place_under_the_roofs() -> None:
    # 3.84 us: an empty kernel's 2.88 are three quarters. Beyond the ridge it would be arithmetic.
    for flop in (1 << 17, 200 << 20):
        found = replace(result(flop=flop), summary=summarise([3.84e-6]), warnings=(NEAR,))
        shown = document(found)
        assert shown.summary == (
            "bound by launch, so its bandwidth says nothing of the memory; "
            "an empty kernel takes 75.0 % of the time"
        )
        assert [row["bound_by"] for row in roofline(found)] == ["launch", "launch"]
        assert shown.facts["launch_bound"] is True
        told = to_text(shown, width=120)
        assert "launch-bound: most of the time is the launch, so the bandwidth says" in told
        assert "the memory is the limit" not in told
    assert document(result()).facts["launch_bound"] is False


def test_the_record_says_what_is_mostly_launch_not_a_rule_of_ours() -> None:
    # 2.9 us are next to nothing above an empty kernel's, but the harness did not warn.
    found = replace(result(), summary=summarise([2.9e-6]))
    assert document(found).summary.startswith("bound by memory")
    # It did here, of a time without a place under any roof and without an empty kernel's time.
    lone = replace(result(flop=None, peaks=Peaks()), warnings=(NEAR,))
    assert document(lone).summary == "bound by launch, so its bandwidth says nothing of the memory"


def test_what_moves_three_arrays_has_the_roof_of_a_sum_too() -> None:
    *_, last = roofline(result(arrays=3))
    assert last["roof"] == "sum of two arrays"
    assert last["attained_fraction"] == pytest.approx(1.5 * 2**20 / 4.58e-6 / 400e9)


def test_beyond_the_ridge_arithmetic_bounds_and_is_the_measure() -> None:
    # 200 FLOP a byte; the copy's ridge is at 134.
    found = result(flop=200 << 20)
    copy = roofline(found)[-1]
    assert copy["bound_by"] == "arithmetic"
    assert copy["attainable_flop_per_s"] == 67e12
    assert copy["attained_fraction"] == pytest.approx((200 << 20) / 4.58e-6 / 67e12)
    assert lines(found)["bound by"].startswith("bound by arithmetic, 68.3 %")


def test_without_a_flop_peak_nothing_is_said_to_bound() -> None:
    found = result(peaks=replace(PEAKS, theoretical_flop_per_s=None))
    rows = roofline(found)
    assert [(row["ridge_flop_per_byte"], row["bound_by"]) for row in rows] == [(None, None)] * 2
    shown = document(found)
    assert shown.summary == (
        "45.8 % of what its roof allows (copy of as many bytes); no FLOP peak is known; "
        "an empty kernel takes 62.9 % of the time"
    )
    told = to_text(shown, width=120)
    assert "bound by" not in told
    assert "ridge in FLOP/byte" not in told
    assert "below a ridge" not in told
    assert "no FLOP peak is known, so there is no ridge" in told
    assert "ridge in FLOP/byte" in to_text(document(result()), width=120)


def test_without_arithmetic_the_rate_of_bytes_is_the_measure() -> None:
    copy = roofline(result(flop=0))[-1]
    assert copy["attainable_flop_per_s"] is None
    assert copy["attained_fraction"] == pytest.approx(2**20 / 4.58e-6 / 500e9)


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (result(flop=None), "does not say how many bytes were moved, or how many operations"),
        (result(peaks=Peaks()), "neither a theoretical rate nor that of a copy is known"),
        (make_result(make_case(), status=Status.INCORRECT), "there is no time"),
    ],
)
def test_without_a_roofline_it_says_why(found: Result, why: str) -> None:
    assert roofline(found) == []
    shown = document(found)
    assert shown.exit_code == 0
    assert any(why in note for note in shown.notes)
    assert "no place under a roof" in shown.summary


def test_a_yardstick_that_is_missing_says_why() -> None:
    why = {"peaks.copy_bytes_per_s": "other work on this machine held it up"}
    found = replace(result(peaks=replace(PEAKS, copy_bytes_per_s=None)), reasons=why)
    assert lines(found)["of copy"].endswith("other work on this machine held it up")


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_does_no_harm_in_any_format(text: str) -> None:
    peaks = replace(PEAKS, copy_source=text, two_read_bytes_per_s=None)
    found = replace(
        result(peaks=peaks),
        case=make_case(text, text),
        warnings=(Warn(text, text),),
        reasons=MappingProxyType({"peaks.two_read_bytes_per_s": text, "energy": text}),
        during=DeviceState(throttle_reasons=(text,)),
        counters={text: 1.0, "kernel_name": text},
    )
    shown = result_document(Heading(text, (text,), {}, (text,)), found)
    assert f"{text}: {text}" in shown.notes
    for width in (60, 100):
        told = to_text(shown, width=width)
        assert not _UNSAFE.search(told)
        assert not any(line.lstrip().startswith("::") for line in told.splitlines())
    assert rendered(to_markdown(shown)).tags <= _OWN_TAGS | {"h4"}
    page = to_html(shown)
    assert "<script>" not in page
    assert "<img" not in page
    out = io.StringIO()
    write(shown, Format.CSV, out)
    cells = [cell for row in csv.reader(io.StringIO(out.getvalue())) for cell in row]
    assert not any(cell.startswith(("=", "+", "-", "@")) for cell in cells)
