"""The filters of every page, one definition each: options from what exists, narrowed in order.

Each filter is a widget bound to a query parameter of the same name, so the address is the state.
Streamlit drops an invalid value from the address without a word; `Address` reads the values before
the widgets do, and keeps a notice for each that had to go.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from dashboard.text import plain
from tracker.queries import ModelInfo

ALL = "all"
WINDOWS: dict[str, tuple[str, int]] = {
    "20 commits": ("commits", 20),
    "50 commits": ("commits", 50),
    "200 commits": ("commits", 200),
    "30 days": ("days", 30),
    "90 days": ("days", 90),
    "everything": ("commits", 0),
}
_WINDOW = "50 commits"
_FOLLOWED = "_followed_"
_TRUNKS = ("main", "master", "trunk")
MAX_SERIES = 6


@dataclass(frozen=True, slots=True)
class Facet:
    """One property that rows are filtered by; `key` is its column and its query parameter."""

    key: str
    label: str
    optional: bool = True
    width: int = 165


GPU = Facet("gpu", "GPU model", optional=False, width=220)
BRANCH = Facet("branch", "Branch")
KERNEL = Facet("kernel", "Kernel")
IMPLEMENTATION = Facet("implementation", "Implementation")
DTYPE = Facet("dtype", "Dtype", width=130)

_WINDOW_FACET = Facet("window", "Window", width=140)

Rows = Sequence[Mapping[str, str]]


def options(values: Iterable[str]) -> dict[str, int]:
    """Return the different values, in alphabetical order, each with its count."""
    return dict(sorted(Counter(values).items()))


def narrowed(rows: Rows, facet: Facet, chosen: str) -> Rows:
    """Return the rows that have the chosen value; all of them for `all`."""
    return rows if chosen == ALL else [row for row in rows if row[facet.key] == chosen]


@dataclass(slots=True)
class Address:
    """The query parameters as the browser sent them, and what could not be honoured."""

    raw: Mapping[str, list[str]]
    notices: list[str] = field(default_factory=list)

    @classmethod
    def read(cls) -> "Address":
        """Return the parameters of this script run; call it before the widgets are made."""
        return cls({key: st.query_params.get_all(key) for key in st.query_params})

    def check(self, key: str, label: str, valid: Sequence[str]) -> None:
        """Keep a notice for each value of a parameter that is no option here."""
        for value in self.raw.get(key, []):
            if value not in valid:
                self.notices.append(f"{label}: nothing here is called {plain(value, 80)!r}.")

    def check_known(self, keys: Sequence[str]) -> None:
        """Keep a notice for parameters that this page does not have."""
        for key in self.raw:
            if key not in keys and not key.startswith("embed"):
                self.notices.append(f"This page has no filter called {plain(key, 40)!r}.")


def choose(rows: Rows, facet: Facet, address: Address, *, preferred: str | None = None) -> str:
    """Draw the select box of a facet and return the chosen value, `all` where none is chosen.

    Options are those of `rows` alone. `preferred` is the default where it exists.
    """
    values = [row[facet.key] for row in rows]
    return choose_among(values, facet, address, "Series", preferred=preferred)


def choose_among(
    values: Iterable[str],
    facet: Facet,
    address: Address,
    what: str,
    *,
    preferred: str | None = None,
) -> str:
    """Draw the select box of the different `values` and return the chosen one.

    How many `what` each stands for is told. Without `preferred`, the default is `all` or the first.
    """
    counts = options(values)
    names = [ALL, *counts] if facet.optional else list(counts)
    return choose_named(facet, names, address, preferred=preferred, told=told_counts(counts, what))


def choose_model(models: Sequence[ModelInfo], address: Address, *, every: bool = False) -> str:
    """Draw the filter of GPU models, the newest first, with their runs; `every` offers `all`."""
    counts = {model.name: model.runs for model in models}
    names = [ALL, *counts] if every else list(counts)
    return choose_named(GPU, names, address, told=told_counts(counts, "Runs"))


def choose_named(
    facet: Facet,
    names: Sequence[str],
    address: Address,
    *,
    preferred: str | None = None,
    told: str | None = None,
) -> str:
    """Draw a select box of these names and return the chosen one, `all` where there is none."""
    if not names:
        return ALL
    address.check(facet.key, facet.label, names)
    default = names.index(preferred) if preferred in names else 0
    chosen = st.selectbox(
        facet.label,
        names,
        index=default,
        key=facet.key,
        bind="query-params",
        help=told,
        width=facet.width,
    )
    return str(chosen or names[default])


def choose_branch(names: Sequence[str], address: Address) -> str | None:
    """Draw the branch filter and return the branch, None for all; main is the default."""
    chosen = choose_named(BRANCH, [ALL, *names], address, preferred=default_branch(names))
    return None if chosen == ALL else chosen


def default_branch(names: Sequence[str]) -> str | None:
    """Return the branch that is shown where none is chosen, None for all."""
    return next((name for name in _TRUNKS if name in names), None)


def choose_run(
    label: str,
    key: str,
    names: Sequence[str],
    address: Address,
    find: Callable[[str], str | None],
    *,
    default: int = 0,
) -> str:
    """Draw the choice of a run among names and return the chosen one.

    A link names a run by its id or commit under `key`, which no widget owns, so it stays in the
    address; `find` gives the name of such a run, None for none. The widget's own parameter is
    `key_run`. It has no default, so that every explicit choice stands in the address.
    """
    own = f"{key}_run"
    _follow(key, own, address, label, find)
    address.check(own, label, names)
    place = min(default, len(names) - 1)
    chosen = st.selectbox(
        label,
        names,
        index=None,
        placeholder=names[place],
        key=own,
        bind="query-params",
        width=260,
    )
    return str(chosen or names[place])


def _follow(
    key: str, own: str, address: Address, label: str, find: Callable[[str], str | None]
) -> None:
    """Choose the run that a link names, once for each time that the link is opened."""
    reference = address.raw.get(key, [""])[0]
    if not reference or own in address.raw or st.session_state.get(_FOLLOWED + key) == reference:
        return
    st.session_state[_FOLLOWED + key] = reference
    name = find(reference)
    if name is None:
        address.notices.append(f"{label}: no run or commit is called {plain(reference, 80)!r}.")
    else:
        st.session_state[own] = name


def forget_links(keys: Sequence[str]) -> None:
    """Let links be followed anew, except those of the page that has these parameters."""
    for key in list(st.session_state):
        if str(key).startswith(_FOLLOWED) and str(key).removeprefix(_FOLLOWED) not in keys:
            del st.session_state[key]


def choose_cases(names: Sequence[str], address: Address) -> list[str]:
    """Draw the case filter and return up to six cases, none where none was chosen."""
    address.check("case", "Case", names)
    chosen = st.multiselect(
        "Cases",
        names,
        key="case",
        bind="query-params",
        max_selections=MAX_SERIES,
        placeholder=f"{len(names):,} match; choose up to {MAX_SERIES}",
    )
    return [str(name) for name in chosen]


def told_counts(counts: Mapping[str, int], what: str, limit: int = 12) -> str:
    """Return how many `what` (series, runs) each option stands for, as the help of its filter."""
    shown = [f"{count:,} {value}" for value, count in list(counts.items())[:limit]]
    more = len(counts) - len(shown)
    rest = [f"and {more} more"] if more > 0 else []
    # Indented, so that Markdown takes the names as they are.
    return f"{what} per option:\n\n" + "\n".join(f"    {plain(line)}" for line in (*shown, *rest))


def pick(
    label: str,
    key: str,
    names: Sequence[str],
    address: Address,
    *,
    shown: Callable[[Any], str] = str,
) -> str:
    """Draw a row of exclusive choices bound to the address; the first one is the default."""
    address.check(key, label, [shown(name) for name in names])
    chosen = st.segmented_control(
        label,
        names,
        default=names[0],
        format_func=shown,
        required=True,
        key=key,
        bind="query-params",
    )
    return str(chosen or names[0])


def window(address: Address) -> tuple[str, int]:
    """Draw the window filter and return its unit (commits or days) and number, 0 for everything."""
    return WINDOWS[choose_named(_WINDOW_FACET, list(WINDOWS), address, preferred=_WINDOW)]


def window_name(unit: str, number: int) -> str:
    """Return the name of a window, as the filter and the address have it."""
    return next(name for name, value in WINDOWS.items() if value == (unit, number))
