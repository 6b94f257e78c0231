"""How the studies' pictures look: matplotlib's Agg, white ground, the colours of the dashboard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from perftests.studies.frame import Draw

INK, MUTED, GRID = "#1F2023", "#6B6B6B", "#E4E3E1"
LINES = ("#2B2B2B", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#8C6D00")
"""Colours of lines and bars: those of the dashboard's light theme, in its order."""
MARKS = ("o", "s", "^", "D", "v", "P")
"""A second signal beside the colour, in the order of LINES."""
SIZE_IN = (8.6, 5.0)
DPI = 130
_FOOT = 0.055
"""The part of the height that is left for what a picture says of itself."""
_STYLE: Any = {
    "font.size": 9.5,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": MUTED,
    "axes.titlesize": 10.5,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "figure.facecolor": "white",
    "axes.facecolor": "white",
    "savefig.facecolor": "white",
}


def picture(draw: Draw, path: Path, told: str = "") -> None:
    """Draw into a new figure and write it as PNG; raise ImportError without matplotlib.

    `told` are one or two lines that stand below, so that a picture by itself says what it is of.
    """
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    with mpl.rc_context(_STYLE):
        rect = (0, _FOOT, 1, 1 - _FOOT) if told else (0, 0, 1, 1)
        figure = Figure(figsize=SIZE_IN, dpi=DPI, layout=ConstrainedLayoutEngine(rect=rect))
        FigureCanvasAgg(figure)
        draw(figure)
        if told:
            figure.text(0.99, 0.01, told, ha="right", va="bottom", fontsize=6.5, color=MUTED)
        figure.savefig(path, format="png", metadata={"Software": None})
