"""kernels."""

from dashboard import layout
from dashboard.pages import KERNELS

if __name__ == "__main__":
    layout.draw(KERNELS, lambda _: {})
