"""The documents: each can be reached from the README, and no link between them is broken."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_CODE = re.compile(r"^(`{3,})[^`]*\n.*?^\1`*\s*$|^ {4,}[^\n]*$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?[^)]*\)")
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


def pages(root: Path) -> list[Path]:
    """Return every Markdown file that a reader may come to."""
    folders = (root / "docs", root / ".github")
    return [root / "README.md", *(page for folder in folders for page in folder.rglob("*.md"))]


def links(page: Path) -> Iterator[tuple[str, Path, str]]:
    """Yield each relative link of a page: as it stands, the file it names, the part of it."""
    text = page.read_text("utf-8")
    # Links may stand around code, so only its content goes.
    prose = _CODE.sub(lambda found: "`code`" if found[0].startswith("`") else "", text)
    for link in _LINK.findall(prose):
        if "://" not in link and not link.startswith("mailto:"):
            name, _, part = link.partition("#")
            yield link, (page.parent / name).resolve() if name else page, part


def anchors(page: Path) -> set[str]:
    """Return the parts of a page that can be linked to, named as GitHub names them."""
    headings = _HEADING.findall(_CODE.sub("", page.read_text("utf-8")))
    return {re.sub(r"[^\w -]", "", text.lower()).replace(" ", "-") for text in headings}


def broken(root: Path) -> list[str]:
    """Return the links that lead nowhere."""
    return [
        f"{page.relative_to(root)}: {link}"
        for page in pages(root)
        for link, target, part in links(page)
        if not target.exists()
        or not target.is_relative_to(root)
        or (part and target.suffix == ".md" and part not in anchors(target))
    ]


def unreached(root: Path) -> list[str]:
    """Return the pages and pictures below docs that no way of links from the README leads to."""
    reached: set[Path] = set()
    waiting = [root / "README.md"]
    while waiting:
        page = waiting.pop()
        if page not in reached:
            reached.add(page)
            if page.suffix == ".md":
                waiting += [target for _, target, _ in links(page) if target.is_file()]
    files = (file for file in (root / "docs").rglob("*") if file.suffix in {".md", ".png", ".svg"})
    return sorted(str(file.relative_to(root)) for file in files if file not in reached)


def test_every_page_and_picture_can_be_reached_from_the_readme() -> None:
    assert unreached(ROOT) == []


def test_no_link_between_the_documents_is_broken() -> None:
    assert broken(ROOT) == []


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "docs/results").mkdir(parents=True)
    (tmp_path / ".github").mkdir()
    (tmp_path / "README.md").write_text("[a page](docs/a.md#the-second-part)\n")
    (tmp_path / "docs/a.md").write_text(
        "## The second part\n![b](results/b.png) [up](../README.md)"
    )
    (tmp_path / "docs/results/b.png").write_bytes(b"")
    return tmp_path


def test_a_site_without_a_fault_has_no_finding(site: Path) -> None:
    assert broken(site) == []
    assert unreached(site) == []


@pytest.mark.parametrize(
    "text",
    [
        "[gone](docs/gone.md)",
        "[gone](docs/a.md#no-such-part)",
        "[`gone`](docs/gone.md)",
        "[out](../elsewhere.md)",
        '[gone](docs/gone.md "a title")',
    ],
)
def test_a_link_that_leads_nowhere_is_found(site: Path, text: str) -> None:
    (site.parent / "elsewhere.md").write_text("")
    (site / "README.md").write_text(f"[a](docs/a.md)\n{text}\n")
    assert len(broken(site)) == 1


@pytest.mark.parametrize("name", ["docs/c.md", "docs/results/c.md", "docs/results/c.png"])
@pytest.mark.parametrize("text", ["", "[the folder](docs/results)", "```text\n[c]({name})\n```"])
def test_a_page_that_nothing_links_to_is_found(site: Path, name: str, text: str) -> None:
    (site / name).write_text("")
    (site / "README.md").write_text("[a](docs/a.md)\n" + text.format(name=name))
    assert unreached(site) == [name]
