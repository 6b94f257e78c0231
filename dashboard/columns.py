"""Columns of files to download: base units, under the names that the tracker's own exports use."""

from datetime import UTC, datetime

import pandas as pd

# Names in files, as `bandwatch export` has them, by the columns of our frames.
SERIES_NAMES = {
    "run_id": "run",
    "started_at": "started_at",
    "full_sha": "commit",
    "case_key": "case",
    "line": "label",
    "status": "status",
    "count": "count",
    "median_s": "median_s",
    "q1_s": "q1_s",
    "q3_s": "q3_s",
    "floor_s": "floor_s",
    "launch_bound": "launch_bound",
    "bandwidth_bytes_per_s": "bandwidth_bytes_per_s",
    "copy_fraction": "copy_fraction",
    "note": "note",
}

CORRECTNESS_NAMES = {
    "case_key": "case",
    "label": "label",
    "status": "status",
    "checked": "checked",
    "passed": "passed",
    "worst_error": "worst_error",
    "bound": "bound",
    "worst_ratio": "worst_ratio",
    "detail": "detail",
}

ROOFLINE_NAMES = {
    "case_key": "case",
    "label": "label",
    "implementation": "implementation",
    "bytes_moved": "bytes_moved_bytes",
    "flop": "flop",
    "median_s": "median_s",
    "floor_s": "floor_s",
    "launch_bound": "launch_bound",
    "bandwidth": "bandwidth_bytes_per_s",
    "intensity": "intensity_flop_per_byte",
    "flop_per_s": "flop_per_s",
    "attained": "fraction_of_roof",
    "bound_by": "bound_by",
}

LADDER_NAMES = {
    "case_key": "case",
    "label": "label",
    "implementation": "implementation",
    "status": "status",
    "median_s": "median_s",
    "floor_s": "floor_s",
    "launch_bound": "launch_bound",
    "bandwidth": "bandwidth_bytes_per_s",
    "copy_fraction": "copy_fraction",
    "two_read_fraction": "two_read_fraction",
    "peak": "fraction_of_theoretical_peak",
    "speedup": "speedup",
    "compile_s": "compile_s",
}

CHANGE_NAMES = {
    "case_key": "case",
    "label": "label",
    "kernel": "kernel",
    "kind": "kind",
    "effect": "bandwidth_change",
    "p_value": "p_value",
    "before": "before_bytes_per_s",
    "after": "after_bytes_per_s",
    "previous_sha": "previous_commit",
    "sha": "commit",
    "author": "author",
    "subject": "subject",
    "measured": "started_utc",
    "state": "state",
    "note": "note",
}


def series_export(points: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a series for a file, in base units."""
    started = [datetime.fromtimestamp(when, UTC).isoformat() for when in points["started"]]
    return points.assign(started_at=started)[list(SERIES_NAMES)].rename(columns=SERIES_NAMES)


def verdict_export(rows: pd.DataFrame) -> pd.DataFrame:
    """Return verdicts for a file, in base units, under the names that the reports use."""
    names = {
        "label": "case",
        "case_key": "fingerprint",
        "kernel": "kernel",
        "implementation": "implementation",
        "dtype": "dtype",
        "head_s": "time_s",
        "floor_s": "floor_s",
        "launch_bound": "launch_bound",
        "base_s": "baseline_time_s",
        "head_bandwidth": "bandwidth_bytes_per_s",
        "effect": "bandwidth_change",
        "low": "bandwidth_change_low",
        "high": "bandwidth_change_high",
        "metric": "metric",
        "p_value": "p_value",
        "detectable": "detectable_loss",
        "outcome": "outcome",
        "reason": "reasons",
    }
    return rows[list(names)].rename(columns=names)
