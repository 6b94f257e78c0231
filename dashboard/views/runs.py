"""runs."""

from dashboard import layout
from dashboard.pages import RUNS

if __name__ == "__main__":
    layout.draw(RUNS, lambda _: {})
