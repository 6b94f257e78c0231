"""roofline."""

from dashboard import layout
from dashboard.pages import ROOFLINE

if __name__ == "__main__":
    layout.draw(ROOFLINE, lambda _: {})
