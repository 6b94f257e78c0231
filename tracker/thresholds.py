"""What counts as a change, for every case or for those that a pattern names, and who said so."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from difflib import get_close_matches

from tracker.errors import ConfigError
from tracker.model import Case
from tracker.policy import Policy

_SECTION = "[tool.bandwatch.thresholds]"
_OVERRIDE = "[[tool.bandwatch.override]]"
_NEVER = "never"
# Range of each threshold in words, and the check.
_RANGES: Mapping[str, tuple[str, Callable[[float], bool]]] = {
    "minimal_effect": ("a fraction from 0 to below 1", lambda v: 0 <= v < 1),
    "confidence": ("a fraction from 0.5 to below 1", lambda v: 0.5 <= v < 1),
    "suspicion": ("a fraction from 0 to 1", lambda v: 0 <= v <= 1),
    "resolution": ("a fraction above 0, at most 1", lambda v: 0 < v <= 1),
    "min_measurements": ("a whole number of 2 or more", lambda v: v >= 2 and float(v).is_integer()),
    "stale_after_days": (f'a number of days above 0, or "{_NEVER}"', lambda v: v > 0),
    "same_code_factor": ("a number of 1 or more", lambda v: v >= 1),
}


@dataclass(frozen=True, slots=True)
class Override:
    """Other thresholds for the cases whose label fits `cases`, with owner, reason and last day.

    In the pattern `*` stands for any text and `?` for one character; all else is itself.
    """

    cases: str
    changes: Mapping[str, float | int | None]
    owner: str
    reason: str
    until: date | None = None

    def fits(self, case: Case) -> bool:
        """Return whether the pattern covers the whole label of `case`."""
        wild = {"*": ".*", "?": "."}
        pattern = "".join(wild.get(char, re.escape(char)) for char in self.cases)
        return re.fullmatch(pattern, case.label, re.DOTALL) is not None

    def holds(self, today: date) -> bool:
        """Return whether the last day is still to come."""
        return self.until is None or today <= self.until

    def told(self) -> str:
        """Return the sentence that a report prints beside the cases that it covers."""
        values = ", ".join(
            f"{key} = {_NEVER if v is None else v}" for key, v in self.changes.items()
        )
        end = f", until {self.until.isoformat()}" if self.until else ""
        return f"own thresholds ({values}) by {self.owner}{end}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The project's policy and its overrides, in the order of the file."""

    policy: Policy = field(default_factory=Policy)
    overrides: tuple[Override, ...] = ()

    def for_case(self, case: Case, today: date) -> tuple[Policy, tuple[Override, ...]]:
        """Return the policy of one case and the overrides that made it; later ones win."""
        chosen = tuple(o for o in self.overrides if o.holds(today) and o.fits(case))
        policy = self.policy
        for override in chosen:
            policy = _changed(policy, override.changes)
        return policy, chosen

    def complaints(
        self, cases: tuple[Case, ...], today: date, *, complete: bool
    ) -> tuple[str, ...]:
        """Return a sentence per override that has ended or, in a complete run, fits nothing."""
        found = []
        for override in self.overrides:
            if not override.holds(today):
                found.append(
                    f"the override for {override.cases!r} ended on {override.until}: remove it"
                )
            elif complete and not any(map(override.fits, cases)):
                found.append(
                    f"the override for {override.cases!r} fits no case: remove or correct it"
                )
        return tuple(found)


def read_thresholds(table: object, overrides: object) -> Thresholds:
    """Return the thresholds of a pyproject.toml's two sections.

    Raises ConfigError for an unknown key, a value out of range, a missing owner or reason.
    """
    policy = _changed(Policy(), _numbers(_mapping(table, _SECTION), _SECTION))
    if not isinstance(overrides, list):
        raise ConfigError(f"cannot use {_OVERRIDE}: expected a list of tables")
    return Thresholds(policy, tuple(map(_override, overrides)))


def _override(entry: object) -> Override:
    table = dict(_mapping(entry, _OVERRIDE))
    texts = {key: _text(table.pop(key, None), key) for key in ("cases", "owner", "reason")}
    until = table.pop("until", None)
    if until is not None and type(until) is not date:
        raise ConfigError(
            f"cannot use {_OVERRIDE}: until is {until!r}, expected a date such as 2027-01-31"
        )
    changes = _numbers(table, _OVERRIDE)
    if not changes:
        raise ConfigError(
            f"cannot use {_OVERRIDE} for {texts['cases']!r}: it changes nothing; "
            f"give one of {', '.join(_RANGES)}"
        )
    return Override(**texts, changes=changes, until=until)


def _numbers(table: Mapping[str, object], section: str) -> dict[str, float | int | None]:
    return {key: _number(key, value, section) for key, value in table.items()}


def _number(key: str, value: object, section: str) -> float | int | None:
    if key not in _RANGES:
        close = get_close_matches(key, _RANGES, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else f"; known: {', '.join(_RANGES)}"
        raise ConfigError(f"cannot use {section}: unknown key {key!r}{hint}")
    if key == "stale_after_days" and value == _NEVER:
        return None
    words, check = _RANGES[key]
    if isinstance(value, bool) or not isinstance(value, int | float) or not check(value):
        raise ConfigError(f"cannot use {section}: {key} is {value!r}, expected {words}")
    return int(value) if key == "min_measurements" else value


def _text(value: object, key: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ConfigError(
            f"cannot use {_OVERRIDE}: {key} is {'missing' if value is None else repr(value)}; "
            "each override names its cases, its owner and its reason"
        )
    return value


def _mapping(value: object, section: str) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise ConfigError(f"cannot use {section}: expected a table, found {value!r}")
    return value


def _changed(policy: Policy, changes: Mapping[str, float | int | None]) -> Policy:
    return replace(policy, **changes)  # type: ignore[arg-type]
