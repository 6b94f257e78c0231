"""Charts as pure functions: what they encode, and the sentence that goes with them."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dashboard.charts.base import MAX_MARKS, commit_axis, decades
from dashboard.charts.distribution import distribution_chart
from dashboard.charts.effects import MAX_ROWS, effect_chart
from dashboard.charts.ladder import ladder_chart, models_chart, sweep_chart
from dashboard.charts.legend import Entry, markup
from dashboard.charts.roofline import roofline_chart
from dashboard.charts.series import SeriesView, series_chart
from dashboard.metrics import BANDWIDTH, COPY, TIME
from dashboard.palette import DARK, LIGHT
from tracker.roofline import Roof


def layers(spec: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield every mark of a chart, however deep it is nested."""
    if "layer" not in spec:
        yield spec
    for part in spec.get("layer", ()):
        yield from layers(part)


def only_data(spec: dict[str, Any]) -> list[dict[str, Any]]:
    (rows,) = spec["datasets"].values()
    return list(rows)


def points(count: int = 10, line: str = "relu/torch") -> pd.DataFrame:
    values = np.linspace(4.0e12, 3.9e12, count)
    return pd.DataFrame(
        {
            "position": range(count),
            "run_id": [f"run{i}" for i in range(count)],
            "sha": [f"abc{i:04d}" for i in range(count)],
            "subject": "s",
            "author": "a",
            "date": pd.date_range("2026-09-01", periods=count, freq="D"),
            "line": line,
            "value": values,
            "low": values * 0.99,
            "high": values * 1.01,
            "baseline": 3.95e12,
            "status": "ok",
            "trusted": "yes",
            "note": "",
        }
    )


def changes() -> pd.DataFrame:
    return pd.DataFrame(
        {"edge": [4.5], "sha": ["abc0005"], "kind": ["regression"], "label": ["▲ −5.0 %"]}  # noqa: RUF001 - a minus sign
    )


def test_series_is_in_gigabytes_per_second_and_not_from_zero() -> None:
    spec = series_chart(SeriesView(points(), BANDWIDTH), LIGHT).chart.to_dict()
    (dots,) = [m for m in layers(spec) if m["mark"].get("type") == "point"]
    assert dots["encoding"]["y"]["title"] == "Bandwidth (GB/s)"
    assert dots["encoding"]["y"]["scale"]["zero"] is False
    data = only_data(spec)
    assert data[0]["value"] == pytest.approx(4000)
    assert data[0]["value_text"] == "4000 GB/s"


def test_series_from_zero_and_logarithmic() -> None:
    zero = series_chart(SeriesView(points(), BANDWIDTH, zero=True), LIGHT).chart.to_dict()
    log = series_chart(SeriesView(points(), BANDWIDTH, zero=True, log=True), LIGHT).chart.to_dict()
    scales = [next(layers(spec))["encoding"]["y"]["scale"] for spec in (zero, log)]
    assert (scales[0]["type"], scales[0]["zero"]) == ("linear", True)
    assert (scales[1]["type"], scales[1]["zero"]) == ("log", False)


def test_change_points_are_rules_with_a_label_in_the_colour_of_their_verdict() -> None:
    spec = series_chart(SeriesView(points(), BANDWIDTH, changes=changes()), LIGHT).chart.to_dict()
    rules = [m for m in layers(spec) if m["mark"].get("type") == "rule"]
    texts = [m for m in layers(spec) if m["mark"].get("type") == "text"]
    assert [m["mark"]["color"] for m in (*rules, *texts)] == [LIGHT.regression] * 2
    assert texts[0]["encoding"]["text"]["field"] == "label"


def test_environment_changes_are_hatched_bands() -> None:
    bands = pd.DataFrame({"edge": [2.5], "text": ["cuda 12.9 to 13.0"]})
    spec = series_chart(SeriesView(points(), BANDWIDTH, environments=bands), LIGHT).chart.to_dict()
    shapes = [m["mark"].get("shape", "") for m in layers(spec)]
    assert sum(str(shape).count("M") > 20 for shape in shapes) == 1


def test_lines_differ_in_colour_and_dash() -> None:
    frame = pd.concat([points(), points(line="relu/triton")])
    described = series_chart(SeriesView(frame, TIME), DARK)
    (line,) = [m for m in layers(described.chart.to_dict()) if "strokeDash" in m["encoding"]]
    assert line["encoding"]["color"]["scale"]["range"][:2] == list(DARK.lines[:2])
    assert [entry.name for entry in described.legend] == ["relu/torch", "relu/triton"]
    assert len({entry.dash for entry in described.legend}) == 2


def test_a_legend_shows_names_as_text() -> None:
    shown = markup((Entry("<b>x</b>", "#000000", dash=(1, 0)),), LIGHT.text)
    assert "&lt;b&gt;x&lt;/b&gt;" in shown


def test_one_line_needs_no_legend() -> None:
    assert series_chart(SeriesView(points(), TIME), DARK).legend == ()


def test_series_sentence_tells_ends_and_changes() -> None:
    told = series_chart(SeriesView(points(), BANDWIDTH, changes=changes()), LIGHT).alt
    assert "over 10 runs" in told
    assert "relu/torch from 4000 GB/s to 3900 GB/s" in told
    assert "▲ −5.0 % at abc0005" in told  # noqa: RUF001 - a minus sign
    assert "no change point" in series_chart(SeriesView(points(), BANDWIDTH), LIGHT).alt


def test_a_gap_stays_a_gap_and_says_so() -> None:
    frame = points()
    frame.loc[3, ["value", "low", "high"]] = np.nan
    spec = series_chart(SeriesView(frame, BANDWIDTH), LIGHT).chart.to_dict()
    row = only_data(spec)[3]
    assert row["value"] is None
    assert row["value_text"] == "not measured"


def test_series_without_any_value_has_a_sentence() -> None:
    frame = points(2).assign(value=np.nan, low=np.nan, high=np.nan)
    assert "nothing measured in 2 runs" in series_chart(SeriesView(frame, TIME), LIGHT).alt


def test_the_commit_axis_labels_the_newest_commit_and_few_others() -> None:
    axis = commit_axis([f"c{i}" for i in range(200)]).to_dict()
    assert axis["values"][-1] == 199
    assert len(axis["values"]) <= 10


def test_decades_are_round_values_inside_the_span() -> None:
    assert decades(0.3, 30) == [0.5, 1, 2, 5, 10, 20]
    assert decades(1e-3, 1e6) == [10.0**e for e in range(-3, 7)]


def effects(count: int = 4) -> pd.DataFrame:
    kinds = ["regression", "improvement", "no change", "undecided"]
    return pd.DataFrame(
        {
            "label": [f"case {i}" for i in range(count)],
            "kind": [kinds[i % 4] for i in range(count)],
            "effect": np.linspace(-0.05, 0.05, count),
        }
    ).assign(low=lambda f: f["effect"] - 0.004, high=lambda f: f["effect"] + 0.004)


def test_undecided_effects_are_hollow() -> None:
    spec = effect_chart(effects(), DARK).chart.to_dict()
    (marks,) = [m for m in layers(spec) if "shape" in m["encoding"]]
    fill = marks["encoding"]["fill"]["scale"]
    assert dict(zip(fill["domain"], fill["range"], strict=True))["undecided"] == DARK.background


def test_effects_keep_the_given_order_and_end_after_forty_rows() -> None:
    spec = effect_chart(effects(60), LIGHT).chart.to_dict()
    (marks,) = [m for m in layers(spec) if "shape" in m["encoding"]]
    assert marks["encoding"]["y"]["sort"] == [f"case {i}" for i in range(MAX_ROWS)]


def test_effects_tell_counts_and_the_lowest() -> None:
    told = effect_chart(effects(), LIGHT).alt
    assert "4 cases: 1 regression, 1 improvement, 1 no change, 1 undecided" in told
    assert "lowest is case 0 with −5.0 %" in told  # noqa: RUF001 - a minus sign
    assert effect_chart(effects().assign(effect=np.nan), LIGHT).alt.startswith("No change")


def test_distributions_show_every_measurement_up_to_a_limit() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "side": ["base a"] * 30 + ["head b"] * 9_000,
            "value": [1e-4] * 30 + list(rng.normal(1e-4, 1e-6, 9_000)),
        }
    )
    described = distribution_chart(frame, LIGHT)
    spec = described.chart.to_dict()
    assert max(len(rows) for rows in spec["datasets"].values()) == 30 + 1_000 < MAX_MARKS
    assert "base a: median 100.0 us of 30 measurements" in described.alt
    assert "of 9,000 measurements" in described.alt


ROOFS = (
    Roof(4.8e12, 67e12, "theoretical", "data sheet"),
    Roof(4.1e12, 67e12, "measured copy", "copy"),
)


def roofline_cases() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "label": ["relu/torch"],
            "implementation": ["torch"],
            "intensity": [0.125],
            "flop_per_s": [4.0e12 * 0.125],
            "bandwidth_text": ["4000 GB/s"],
            "attained_text": ["97.6 %"],
            "bytes_text": ["512 MiB"],
            "flop_text": ["67108864"],
        }
    )


def test_roofs_end_flat_at_the_peak_and_marks_are_on_the_chart() -> None:
    described = roofline_chart(roofline_cases(), ROOFS, LIGHT)
    spec = described.chart.to_dict()
    rows = [row for data in spec["datasets"].values() for row in data if "source" in row]
    assert max(row["gflop_per_s"] for row in rows) == pytest.approx(67e3)
    low = min((r for r in rows if r["roof"] == "theoretical"), key=lambda r: r["intensity"])
    assert low["gflop_per_s"] == pytest.approx(low["intensity"] * 4800)
    assert "ridge point 14.0 FLOP/byte" in described.alt


def test_a_roofline_without_a_flop_peak_has_no_ridge() -> None:
    memory_only = [replace(roof, flop_per_s=None) for roof in ROOFS]
    described = roofline_chart(roofline_cases(), memory_only, LIGHT)
    assert "ridge" not in described.alt
    assert not any(m["mark"].get("type") == "text" for m in layers(described.chart.to_dict()))


def rungs() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "implementation": ["torch", "triton", "cuda_vector"],
            "value": [3.0e12, 3.9e12, 4.0e12],
            "bytes_moved": [1 << 29] * 3,
            "label": ["a", "b", "c"],
            "launch_bound": [False] * 3,
        }
    )


def test_the_ladder_starts_at_zero_with_the_best_on_top() -> None:
    described = ladder_chart(rungs(), BANDWIDTH, LIGHT, reference=("a copy", 4.1e12))
    first = next(layers(described.chart.to_dict()))
    assert first["encoding"]["x"]["scale"]["zero"] is True
    assert first["encoding"]["y"]["sort"] == ["cuda_vector", "triton", "torch"]
    assert "best is cuda_vector with 4000 GB/s" in described.alt


def test_the_ladder_by_time_has_the_shortest_on_top() -> None:
    times = rungs().assign(value=[1.3e-4, 1.1e-4, 1.0e-4])
    first = next(layers(ladder_chart(times, TIME, LIGHT).chart.to_dict()))
    assert first["encoding"]["y"]["sort"] == ["cuda_vector", "triton", "torch"]


def test_sweeps_name_sizes_in_binary_units() -> None:
    spec = sweep_chart(rungs(), COPY, LIGHT).chart.to_dict()
    assert "MiB" in next(layers(spec))["encoding"]["x"]["axis"]["labelExpr"]
    assert next(iter(spec["datasets"].values()))[0]["size_text"] == "512 MiB"


def test_what_is_launch_bound_is_called_so_on_its_bar_and_hollow_on_its_line() -> None:
    rows = rungs().assign(launch_bound=[True, False, False])
    bars = ladder_chart(rows, BANDWIDTH, DARK).chart.to_dict()
    texts = [row["text"] for row in next(iter(bars["datasets"].values()))]
    assert texts == ["4000 GB/s", "3900 GB/s", "3000 GB/s, launch-bound"]
    spec = sweep_chart(rows, BANDWIDTH, DARK).chart.to_dict()
    _, points = layers(spec)
    fill = points["encoding"]["fill"]
    assert fill["condition"] == {"test": "datum['launch_bound']", "value": DARK.background}
    assert fill["field"] == "implementation"
    told = {row["label"]: row["text"] for row in next(iter(spec["datasets"].values()))}
    assert told == {"a": "3000 GB/s, launch-bound", "b": "3900 GB/s", "c": "4000 GB/s"}


def test_models_are_told_apart_by_colour_and_shape() -> None:
    rows = pd.DataFrame(
        {
            "gpu_model": ["A", "B"],
            "implementation": ["torch", "torch"],
            "fraction": [0.9, 0.8],
            "text": ["90.0 %", "80.0 %"],
        }
    )
    described = models_chart(rows, DARK)
    encoding = described.chart.to_dict()["encoding"]
    assert len(set(encoding["shape"]["scale"]["range"])) == 2
    assert len(set(encoding["color"]["scale"]["range"])) == 2
    assert "on A, B" in described.alt
