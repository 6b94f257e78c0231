"""Pictures of the pages in Chromium, made by `python -m dashboard.pictures`.

Without a store it shows the recorded runs that ship with the project, read into a temporary one.
Without options it makes the pictures of docs/images; with `--every` all pages in both colour
schemes, wide and narrow, to look at.
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
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
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
    parser.add_argument("--scheme", choices=SCHEMES, default="light")
    parser.add_argument("--every", action="store_true", help="both schemes, wide and narrow")
    chosen = parser.parse_args(arguments)
    looks = [(chosen.width, chosen.scheme)]
    if chosen.every:
        looks = [(width, scheme) for scheme in SCHEMES for width in (WIDE, NARROW)]
    try:
        paths = [known(path) for path in chosen.path or [page.path for page in PAGES]]
        with _store(chosen.store) as store, serving.server(store) as (address, _):
            for width, scheme in looks:
                for file in shoot(address, paths, chosen.out, width=width, scheme=scheme):
                    print(file)
    except (TrackerError, RuntimeError, ValueError) as error:
        print(f"cannot make pictures: {error}", file=sys.stderr)
        return 2
    return 0


def known(path: str) -> str:
    """Return a path as pages have it, without a slash. ValueError for one that is no page's."""
    inside = path.lstrip("/")
    name = inside.partition("?")[0].rstrip("/")
    pages = [page.path for page in PAGES]
    if name not in pages:
        told = ", ".join(repr(page) for page in pages)
        raise ValueError(f"no page is at {path!r}; the pages are at {told}")
    return inside


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
    from playwright.sync_api import Error, sync_playwright

    out.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=executable, args=serving.flags())
        page = browser.new_context(color_scheme=scheme).new_page()
        for path in paths:
            page.set_viewport_size({"width": width, "height": 900})
            try:
                page.goto(f"{address}/{path}")
                page.wait_for_function(SETTLED)
            except Error as error:
                reason = str(error).splitlines()[0]
                raise RuntimeError(f"the page at {path!r} was not drawn: {reason}") from error
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
