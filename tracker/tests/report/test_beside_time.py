"""What stands beside a time in the report of one result, against figures worked out by hand."""

import json
from dataclasses import replace

import fastjsonschema
import pytest

from tracker.model import DeviceState, FirstCall, Result
from tracker.report import report_schema
from tracker.report.json_ import to_json
from tracker.tests.report.test_one_result import document, lines, result

ENERGY = {
    "j_per_gb": 0.1234,
    "j_per_gb_error": 0.0056,
    "gflops_per_w": 1.013,
    "gflops_per_w_error": 0.046,
    "power_w": 612.4,
    "idle_power_w": 118.2,
    "launches_per_s": 7600.0,
    "window_s": 2.0,
    "steps": 20.0,
}


def tables(found: Result) -> dict[str, list[dict[str, object]]]:
    data = json.loads(to_json(document(found)))
    fastjsonschema.compile(report_schema())(data)
    shown: dict[str, list[dict[str, object]]] = data["tables"]
    return shown


def figures(found: Result) -> dict[str, object]:
    return {str(row["figure"]): row["value"] for row in tables(found)["figures"]}


def test_cycles_stand_beside_the_time_as_the_record_has_them() -> None:
    """No clock is made of both: it is read beside the sample, not in it."""
    shown = lines(replace(result(), median_cycles=9068.4), width=120)
    assert shown["cycles 9,068"].endswith("of the time, by the clock as it was read in the sample")
    assert figures(replace(result(), median_cycles=9068.4))["median_cycles"] == 9068.4


def test_why_the_sample_ended_stands_beside_its_size() -> None:
    shown = lines(replace(result(), stop_reason="session budget"), width=120)
    assert "median of 8 (session budget); the middle half" in shown["time 4.580"]


def test_a_first_call_that_is_not_split_is_one_figure() -> None:
    reasons = {
        f"first_call.{name}_s": "the workload does not split it" for name in ("compile", "load")
    }
    found = replace(result(), first_call=FirstCall(launch_s=8.42e-3), reasons=reasons)
    shown = lines(found, width=120)
    assert shown["first call"].startswith("first call 8.42 ms compiling and loading in it")
    assert "load –" not in shown  # noqa: RUF001


def test_a_cold_start_is_shown_in_its_parts_and_a_missing_one_with_its_reason() -> None:
    cold = FirstCall(compile_s=0.471, launch_s=1.2e-3)
    found = replace(result(), first_call=cold, reasons={"first_call.load_s": "it does not tell"})
    shown = lines(found, width=120)
    assert shown["compile 471"] == "compile 471 ms of the first call: the time in the compiler"
    assert shown["load –"] == "load – it does not tell"  # noqa: RUF001
    assert shown["first launch"] == "first launch 1.20 ms of the first call: what is left of it"
    assert figures(found)["first_call_load_s"] is None
    assert figures(found)["first_call_launch_s"] == 1.2e-3


def test_of_a_case_without_a_cold_start_nothing_is_said() -> None:
    at_hand = {f"first_call.{name}_s": "at hand" for name in ("compile", "load", "launch")}
    assert not {key for key in figures(replace(result(), reasons=at_hand)) if "first" in key}


def test_energy_stands_with_its_error_and_what_was_taken_off() -> None:
    shown = lines(replace(result(), energy=ENERGY), width=120)
    assert shown["energy 0.123"] == (
        "energy 0.123 J/GB standard error 0.0056; 612 W under load, 118 W of them idle"
    )
    assert shown["efficiency 1.01"].startswith("efficiency 1.01 GFLOP/s per W standard error 0.046")
    without = replace(result(), energy=ENERGY | {"gflops_per_w": None, "gflops_per_w_error": None})
    assert "gflops_per_w" not in figures(without)


def test_energy_without_powers_says_so() -> None:
    shown = lines(replace(result(), energy={"j_per_gb": 0.1234}), width=120)
    assert shown["energy 0.123"] == "energy 0.123 J/GB not told"


def test_numbers_that_nobody_could_read_stand_in_powers_of_ten() -> None:
    odd = DeviceState(power_w=1e300)
    counted: dict[str, float | str | None] = {"large": 1e300, "small": 5e-324, "count": 1e14}
    energy = {"j_per_gb": -1e30, "power_w": 1.0, "idle_power_w": None}
    found = replace(result(), median_cycles=1e300, energy=energy, counters=counted, before=odd)
    shown = lines(found, width=120)
    assert shown["cycles 1.000e+300"].startswith("cycles 1.000e+300 of the time")
    assert shown["energy -1.00e+30"] == "energy -1.00e+30 J/GB 1.00 W under load, ? W of them idle"
    assert shown["before 1.000e+300"]
    assert shown["large 1.000e+300"]
    assert shown["small 4.941e-324"]
    assert shown["count 100,000,000,000,000"]
    assert max(map(len, shown.values())) <= 120


@pytest.mark.parametrize("what", ["energy", "counters"])
def test_what_was_asked_for_in_vain_says_why(what: str) -> None:
    found = replace(result(), reasons={what: "not measured: no NVML here"})
    assert lines(found)[f"{what} –"].endswith("not measured: no NVML here")  # noqa: RUF001
    assert what not in figures(result())


def test_the_device_is_shown_before_during_and_after() -> None:
    busy = DeviceState(1.98e9, 3.201e9, 41.0, 312.6, ("sw_power_cap",), 1)
    found = replace(result(), before=DeviceState(sm_clock_hz=1.755e9), during=busy)
    shown = lines(found, width=120)
    assert shown["before 1755"] == "before 1755 – – – –"  # noqa: RUF001
    assert shown["during 1980"] == "during 1980 3201 41 313 1 sw_power_cap"
    assert "after" not in {row["moment"] for row in tables(found)["states"]}
    assert tables(found)["states"][1]["throttle_reasons"] == ["sw_power_cap"]
    assert "states" not in tables(result())


def test_a_narrow_terminal_takes_columns_away_and_cuts_no_number() -> None:
    busy = DeviceState(1.98e9, 3.201e9, 41.0, 312.6, ("sw_power_cap", "hw_thermal_slowdown"), 1)
    shown = lines(replace(result(), during=busy), width=40)
    assert shown["device SM"] == "device SM MHz W slowed by"
    assert shown["during 1980"].startswith("during 1980 313 ")
    assert shown["roof GB/s"] == "roof GB/s attained bound by"
    wide = lines(replace(result(), during=busy), width=100)
    assert shown != wide
    assert wide["device SM"] == "device SM MHz memory MHz °C W others slowed by"


def test_counters_are_shown_as_the_record_names_them() -> None:
    counted: dict[str, float | str | None] = {
        "dram_read_bytes": 1048576.0,
        "l2_hit_percent": 3.1416,
        "kernel_name": "relu<float>",
    }
    found = replace(result(), counters={**counted, "occupancy_percent": None})
    shown = lines(found)
    assert shown["dram_read_bytes 1,048,576"] == "dram_read_bytes 1,048,576"
    assert shown["l2_hit_percent 3.142"] == "l2_hit_percent 3.142"
    assert shown["kernel_name relu<float>"] == "kernel_name relu<float>"
    assert tables(found)["counters"][0]["value"] == 1048576
    assert len(tables(found)["counters"]) == 3
    # An imported file has counters of its own tool's, some of them of the time.
    assert "Counters beside the time, as the record names them" in shown.values()
    assert "counters" not in tables(result())
