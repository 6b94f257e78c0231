"""Durations and counts as people write them: 90s, 30m, 2h, 1d; 1 case, 2 cases."""

import re
from typing import Any

import click

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_FORM = re.compile(r"(\d+(?:\.\d+)?)\s*([smhd]?)")


class Duration(click.ParamType[float]):
    """An option's value in seconds; a number alone means seconds."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return seconds above 0; fail for anything else."""
        if isinstance(value, int | float):
            return float(value)
        found = _FORM.fullmatch(str(value).strip())
        seconds = float(found[1]) * _UNITS[found[2] or "s"] if found else 0.0
        if not seconds > 0:
            self.fail(f"{value!r} is no duration; expected one such as 90s, 30m or 2h", param, ctx)
        return seconds


def told(seconds: float) -> str:
    """Return a duration for people, such as `2 h 05 min`, `12 min` or `40 s`."""
    minutes = round(seconds / 60)
    if seconds < 90:
        return f"{round(seconds)} s"
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes >= 60 else f"{minutes} min"
