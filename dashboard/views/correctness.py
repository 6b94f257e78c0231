"""correctness."""

from dashboard import layout
from dashboard.pages import CORRECTNESS

if __name__ == "__main__":
    layout.draw(CORRECTNESS, lambda _: {})
