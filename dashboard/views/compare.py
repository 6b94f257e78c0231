"""compare."""

from dashboard import layout
from dashboard.pages import COMPARE

if __name__ == "__main__":
    layout.draw(COMPARE, lambda _: {})
