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


def picture(draw: Draw, path: Path, size_in: tuple[float, float] = SIZE_IN) -> None:
    """Draw into a new figure and write it as PNG; raise ImportError without matplotlib."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=size_in, dpi=DPI, layout="constrained")
        FigureCanvasAgg(figure)
        draw(figure)
        figure.savefig(path, format="png", metadata={"Software": None})
