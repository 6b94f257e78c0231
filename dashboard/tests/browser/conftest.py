"""One server and one browser for all browser tests, and a page that watches for errors."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from dashboard import serving
from dashboard.tests.conftest import fill
from dashboard.tests.test_hostile import hostile_run

TIMEOUT_MS = 20_000


@pytest.fixture(scope="session")
def address(full_store: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server on a store with everything planted, hostile runs on a third GPU model included."""
    copy = tmp_path_factory.mktemp("browser") / "store.db"
    shutil.copy(full_store.removeprefix("sqlite:///"), copy)
    with serving.server(fill(copy, map(hostile_run, range(3)))) as (url, _):
        yield url


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium from the system."""
    executable = serving.chromium()
    if executable is None:
        pytest.skip(f"needs Chromium: install it, or name it in {serving.CHROMIUM_VARIABLE}")
    playwright = pytest.importorskip("playwright.sync_api", reason="needs the playwright package")
    with playwright.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=executable, args=serving.flags())
        yield found
        found.close()


@dataclass
class Watched:
    """A browser page, and everything that went wrong on it."""

    page: Any
    address: str
    errors: list[str] = field(default_factory=list)

    def open(self, path: str) -> None:
        """Go to a path and wait until the script has run and every chart is drawn."""
        self.page.goto(f"{self.address}/{path}")
        self.settle()

    def settle(self) -> None:
        """Wait until the script has run and nothing is a skeleton any more."""
        self.page.wait_for_selector(
            "[data-testid=stApp][data-test-script-state=notRunning]", timeout=TIMEOUT_MS
        )
        self.page.wait_for_function(
            "document.querySelector('[data-testid=stMain] h1') !== null"
            " && document.querySelector('[data-testid=stSkeleton]') === null"
            " && [...document.querySelectorAll('[data-testid=stVegaLiteChart]')]"
            ".every(chart => chart.querySelector('canvas, svg') !== null)",
            timeout=TIMEOUT_MS,
        )

    def resize(self, width: int) -> None:
        """Give the window another width."""
        self.page.set_viewport_size({"width": width, "height": 900})

    @property
    def text(self) -> str:
        """The text that a person sees."""
        return str(self.page.locator("[data-testid=stMain]").inner_text())


@pytest.fixture(scope="session")
def contexts(browser: Any) -> Iterator[Callable[[str], Any]]:
    """Return a function that gives one browser context a theme: its cache spares most of the time."""
    made: dict[str, Any] = {}

    def context(scheme: str) -> Any:
        if scheme not in made:
            made[scheme] = browser.new_context(color_scheme=scheme, accept_downloads=True)
            made[scheme].set_default_timeout(TIMEOUT_MS)
        return made[scheme]

    yield context
    for found in made.values():
        found.close()


@pytest.fixture
def visit(address: str, contexts: Callable[[str], Any]) -> Iterator[Callable[..., Watched]]:
    """Return a function that opens a new browser page; errors in any of them fail the test."""
    opened: list[Watched] = []

    def new(*, width: int = 1280, scheme: str = "light") -> Watched:
        watched = Watched(contexts(scheme).new_page(), address)
        page = watched.page
        watched.resize(width)
        page.on("pageerror", lambda error: watched.errors.append(f"exception: {error}"))
        page.on("dialog", lambda dialog: watched.errors.append(f"dialog: {dialog.message}"))
        page.on("requestfailed", lambda request: _failed(watched, request.url, "failed"))
        page.on("response", lambda response: _answered(watched, response))
        page.on("console", lambda message: _console(watched, message))
        opened.append(watched)
        return watched

    yield new
    for watched in opened:
        watched.page.close()
    assert [error for watched in opened for error in watched.errors] == []


def _answered(watched: Watched, response: Any) -> None:
    if response.status >= 400:
        _failed(watched, response.url, str(response.status))


def _failed(watched: Watched, url: str, how: str) -> None:
    if not serving.expected_noise(url):
        watched.errors.append(f"request {how}: {url}")


def _console(watched: Watched, message: Any) -> None:
    # The browser also writes a line for each failed request, which is judged by its address above.
    if message.type == "error" and "Failed to load resource" not in message.text:
        watched.errors.append(f"console: {message.text[:300]}")
