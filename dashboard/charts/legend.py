"""A legend beside a chart: it wraps at any width, which a legend inside the chart does not."""

from base64 import b64encode
from dataclasses import dataclass
from html import escape

_POINTS = {
    "square": "5,2 13,2 13,10 5,10",
    "triangle-up": "9,1 14,11 4,11",
    "triangle-down": "4,1 14,1 9,11",
    "diamond": "9,0 14,6 9,12 4,6",
    "cross": "7,1 11,1 11,4 14,4 14,8 11,8 11,11 7,11 7,8 4,8 4,4 7,4",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry: a name, its colour, and the line's dash pattern or the mark's shape."""

    name: str
    colour: str
    dash: tuple[int, ...] | None = None
    shape: str | None = None
    filled: bool = True


def markup(entries: tuple[Entry, ...], text_colour: str) -> str:
    """Return the legend as HTML; names are shown as plain text."""
    items = "".join(
        f'<span style="display:inline-flex;align-items:center;gap:.4rem">{_symbol(entry)}'
        f"{escape(entry.name)}</span>"
        for entry in entries
    )
    return (
        f'<div style="display:flex;flex-wrap:wrap;gap:.1rem 1.2rem;color:{text_colour};'
        f'font-size:.9rem">{items}</div>'
    )


def _symbol(entry: Entry) -> str:
    if entry.dash is not None:
        dashes = " ".join(map(str, entry.dash))
        body = f'<line x1="0" y1="6" x2="28" y2="6" stroke-width="2" stroke-dasharray="{dashes}"/>'
        width = 28
    elif entry.shape in _POINTS:
        body, width = f'<polygon points="{_POINTS[entry.shape]}" stroke-width="1.5"/>', 18
    else:
        body, width = '<circle cx="9" cy="6" r="4.5" stroke-width="1.5"/>', 18
    fill = entry.colour if entry.filled and entry.dash is None else "none"
    drawing = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="12" '
        f'stroke="{entry.colour}" fill="{fill}">{body}</svg>'
    )
    # As an image, since drawings inside the page are taken out of it as unsafe.
    data = b64encode(drawing.encode()).decode()
    return f'<img alt="" width="{width}" height="12" src="data:image/svg+xml;base64,{data}">'
