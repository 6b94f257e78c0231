"""Pictures of the pages in Chromium, made by `python -m dashboard.pictures`.

Without a store it shows the recorded runs that ship with the project, read into a temporary one.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from dashboard import serving
from dashboard.pages import PAGES
from tracker.demo import load_demo, recorded_runs
from tracker.errors import TrackerError
from tracker.store import Store

OUT = Path(__file__).parents[1] / "docs" / "images"
WIDE, NARROW = 1280, 390
# What a page is when the script has run and every chart is drawn, as an expression of the browser.
SETTLED = (
    "document.querySelector('[data-testid=stApp]')?.dataset.testScriptState === 'notRunning'"
    " && document.querySelector('[data-testid=stMain] h1') !== null"
    " && document.querySelector('[data-testid=stSkeleton]') === null"
    " && [...document.querySelectorAll('[data-testid=stVegaLiteChart]')]"
    ".every(chart => chart.querySelector('canvas, svg') !== null)"
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the pictures and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m dashboard.pictures", description=__doc__)
    parser.add_argument("--store", help="address of the store to show; the demo runs without it")
    parser.add_argument("--out", type=Path, default=OUT, help="folder to write to")
    parser.add_argument("--path", action="append", help="path and parameters of a page; repeatable")
    parser.add_argument("--width", type=int, default=WIDE, help="width of the window in pixels")
    parser.add_argument("--scheme", choices=("light", "dark"), default="light")
    chosen = parser.parse_args(arguments)
    paths = chosen.path or [page.path for page in PAGES]
    try:
        with _store(chosen.store) as store, serving.server(store) as (address, _):
            for file in shoot(address, paths, chosen.out, width=chosen.width, scheme=chosen.scheme):
                print(file)
    except (TrackerError, RuntimeError) as error:
        print(f"cannot make pictures: {error}", file=sys.stderr)
        return 2
    return 0


@contextmanager
def _store(address: str | None) -> Iterator[str]:
    if address is not None:
        yield address
        return
    with tempfile.TemporaryDirectory() as folder:
        demo = f"sqlite:///{folder}/demo.db"
        with Store.open(demo) as store:
            load_demo(store, recorded_runs())
        yield demo


def shoot(
    address: str, paths: Sequence[str], out: Path, *, width: int, scheme: Literal["light", "dark"]
) -> Iterator[Path]:
    """Yield the file of each page's picture, whole from top to bottom. RuntimeError: no browser."""
    executable = serving.chromium()
    if executable is None:
        raise RuntimeError(
            f"no Chromium was found; install it, or name it in {serving.CHROMIUM_VARIABLE}"
        )
    from playwright.sync_api import sync_playwright

    out.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=executable, args=serving.flags())
        page = browser.new_context(color_scheme=scheme).new_page()
        for path in paths:
            page.set_viewport_size({"width": width, "height": 900})
            page.goto(f"{address}/{path}")
            page.wait_for_function(SETTLED)
            # The page scrolls inside the window: make the window as high as the page.
            high = page.evaluate("document.querySelector('[data-testid=stMain]').scrollHeight")
            page.set_viewport_size({"width": width, "height": int(high) + 8})
            # Charts are drawn again at the new size a moment later; nothing tells when.
            page.wait_for_timeout(1500)
            file = out / f"{_name(path, width, scheme)}.png"
            page.screenshot(path=str(file))
            yield file
        browser.close()


def _name(path: str, width: int, scheme: str) -> str:
    name = path.split("?", maxsplit=1)[0] or "overview"
    narrow = "" if width == WIDE else f"-{width}"
    return f"{name}{narrow}{'' if scheme == 'light' else '-dark'}"


if __name__ == "__main__":
    sys.exit(main())
