"""changes."""

from dashboard import layout
from dashboard.pages import CHANGES

if __name__ == "__main__":
    layout.draw(CHANGES, lambda _: {})
