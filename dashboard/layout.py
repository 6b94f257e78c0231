"""What all pages share: title, help, permanent link, and the store or its trouble."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, ParamSpec, cast
from urllib.parse import urlencode

import streamlit as st

from dashboard import copying, data, glossary, notices
from dashboard.charts.base import Chart, Described
from dashboard.charts.legend import markup
from dashboard.data import Snapshot
from dashboard.filters import Address, forget_links
from dashboard.pages import PageInfo
from dashboard.palette import Palette, palette
from dashboard.session import is_missing, open_store, store_address
from tracker.errors import TrackerError

P = ParamSpec("P")
Parameters = Mapping[str, str | Sequence[str]]


@dataclass(frozen=True, slots=True)
class View:
    """What a page works with in one script run: the store at one revision, colours, address."""

    snapshot: Snapshot
    colours: Palette
    address: Address
    now: float


Drawing = Callable[Concatenate[View, P], None]


class _Unchecked:
    """A chart that is not held against its schema again: the tests do that, and it costs much."""

    def __init__(self, chart: Chart) -> None:
        self._chart = chart

    def to_dict(self) -> dict[str, Any]:
        """Return the specification, as Streamlit asks for it."""
        found: dict[str, Any] = self._chart.to_dict(validate=False)
        return found


def draw(page: PageInfo, body: Callable[[View], Parameters]) -> None:
    """Draw a page: title, then `body`, which returns the parameters of its permanent link."""
    colours = palette(st.context.theme.type)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.title(page.title, anchor=False, width="stretch")
        slot = st.container(horizontal=True, width="content", horizontal_alignment="right")
    with slot, st.popover("How to read this", type="tertiary"):
        st.markdown(f"{page.help}\n\n{glossary.told(page.words)}")
    told = st.container()
    address = Address.read()
    address.check_known(page.keys)
    forget_links(page.keys)
    parameters = _body(body, colours, address)
    if parameters is not None:
        with told:
            notices.show_all(address.notices, colours)
        with slot:
            _permanent_link(page, parameters)
    copying.listen()


def _body(
    body: Callable[[View], Parameters], colours: Palette, address: Address
) -> Parameters | None:
    """Draw what is below a page's title; None where the store has nothing for it, which is told."""
    try:
        view = _open(colours, address)
        return None if view is None else body(view)
    except TrackerError as error:
        notices.show(notices.store_trouble(str(error)), colours)
        return None


def _open(colours: Palette, address: Address) -> View | None:
    """Return the view of the store, or None after telling that there is none."""
    name = store_address()
    try:
        store = open_store(name, read_only=True)
    except TrackerError as error:
        missing = is_missing(name)
        notices.show(
            notices.no_store(name) if missing else notices.store_trouble(str(error)), colours
        )
        return None
    snapshot = Snapshot(store, store.revision())
    if not data.models(snapshot):
        notices.show(notices.empty_store(store.name), colours)
        return None
    return View(snapshot, colours, address, time.time())


def _permanent_link(page: PageInfo, parameters: Parameters) -> None:
    base = str(st.context.url or "").rstrip("/")
    query = urlencode(parameters, doseq=True)
    address = f"{base}?{query}" if base else f"/{page.path}?{query}"
    with st.popover("Permanent link", type="tertiary"):
        st.markdown("Shows this view later too: commits are written out.")
        copying.code(address)


def replayed(
    function: Callable[Concatenate[View, P], None],
) -> Callable[Concatenate[View, P], None]:
    """Return a function that draws, whose drawing is kept and shown again at the next use.

    It may draw no widgets, and its arguments must say everything that the drawing depends on
    besides the store and the colours.
    """

    def draw(at: tuple[str, int, Palette], _view: View, *args: P.args, **kwargs: P.kwargs) -> None:
        del at  # a part of the key only
        function(_view, *args, **kwargs)

    draw.__qualname__, draw.__module__ = function.__qualname__, function.__module__
    kept = st.cache_data(max_entries=64, show_spinner=False)(draw)

    @wraps(function)
    def shown(view: View, *args: P.args, **kwargs: P.kwargs) -> None:
        at = (view.snapshot.store.name, view.snapshot.revision, view.colours)
        kept(at, view, *args, **kwargs)

    return cast("Drawing[P]", shown)


def chart(described: Described, *, key: str, on_select: bool = False) -> Mapping[str, object]:
    """Draw a chart with its sentence; return its selection, empty without `on_select`."""
    if described.legend:
        st.html(markup(described.legend, palette(st.context.theme.type).text))
    unchecked: Any = _Unchecked(described.chart)
    if not on_select:
        st.altair_chart(unchecked, alt=described.alt, key=key)
        return {}
    event = st.altair_chart(unchecked, alt=described.alt, key=key, on_select="rerun")
    selection: Mapping[str, object] = event["selection"]
    return selection
