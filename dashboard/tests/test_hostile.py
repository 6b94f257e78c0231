"""Text from the store is data: HTML, Markdown or script in it is shown as text on every page."""

from dataclasses import replace

import numpy as np
import pytest

from dashboard.pages import PAGES
from dashboard.tests import pages
from dashboard.tests.conftest import Open, fill
from dashboard.tests.runs import Plan, run
from tracker.model import Case, Run, Warn

HOSTILE = "<script>window.hacked=1</script><img src=x onerror=window.hacked=1> **b** :red[x] $x^2$"
PLAN = Plan(commits=3, measurements=8)


def hostile_run(index: int) -> Run:
    """Return a run in which every free text is hostile."""
    found = run(np.random.default_rng(index), index, plan=PLAN, branch=HOSTILE, subject=HOSTILE)
    assert found.checkout.commit is not None
    commit = replace(found.checkout.commit, author=HOSTILE)
    case = Case(HOSTILE, HOSTILE[:150], "float32", (1 << 22,))
    results = [
        replace(
            result,
            case=case if place == 0 else result.case,
            warnings=(Warn("odd", HOSTILE),),
            test=f"a.py::t[{HOSTILE}]; rm -rf /",
            reasons={"summary": HOSTILE},
        )
        for place, result in enumerate(found.results[:4])
    ]
    return replace(
        found,
        environment=replace(found.environment, gpu_model=HOSTILE, driver=HOSTILE, os=HOSTILE),
        device=replace(found.device, name=HOSTILE, uuid=f"GPU-{HOSTILE}"),
        checkout=replace(found.checkout, commit=commit, notes=(HOSTILE,)),
        results=tuple(results),
        command=HOSTILE,
        ci={"url": "javascript:window.hacked=1", "name": HOSTILE},
        notes=(HOSTILE,),
    )


@pytest.fixture(scope="session")
def hostile_store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store in which every free text is hostile."""
    path = tmp_path_factory.mktemp("hostile") / "hostile.db"
    return fill(path, (hostile_run(index) for index in range(3)))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.title)
def test_no_page_builds_markup_from_the_store(app: Open, hostile_store: str, page: object) -> None:
    name = str(getattr(page, "file", "")).split("/")[1].removesuffix(".py")
    shown = app(name, store=hostile_store)
    assert not shown.exception
    body = pages.html(shown)
    assert "<script" not in body
    assert len(pages.scripts(shown)) == 1
    assert "hacked" not in pages.scripts(shown)[0]
    assert "<img src=x" not in body
    told = [*shown.markdown, *shown.caption, *shown.subheader, *shown.header, *shown.title]
    assert not any("hacked" in element.value for element in told)
    assert not any("hacked" in label for label in pages.links(shown))
    assert not any(button.proto.url.startswith("java") for button in shown.get("link_button"))


def test_the_text_is_there_as_text(app: Open, hostile_store: str) -> None:
    assert "&lt;script&gt;window.hacked=1&lt;/script&gt;" in pages.html(app(store=hostile_store))


def test_the_command_to_copy_is_quoted_for_a_shell(app: Open, hostile_store: str) -> None:
    page = app("series", store=hostile_store)
    (command,) = [text for text in pages.codes(page) if text.startswith("git checkout")]
    assert command.split("pytest --benchmark ")[1].startswith("'a.py::t[")
    assert command.rstrip().endswith("; rm -rf /'")
