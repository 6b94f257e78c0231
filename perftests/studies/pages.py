"""Fill the pages that quote studies with the figures of their documents.

    python -m perftests.studies.pages [--check]

docs/checklist.md and docs/bias.md are made of checklist.md.in and bias.md.in beside this file, and
of the JSON documents under docs/results/. A figure is written there as

    [[study | table | column=value, column=value | column]]
    [[study | table | column=value | column | us .1f]]

the second with its unit (of tables.py, or %) and format, without which it stands as in the study's
table. `X ÷ Y` is their ratio in the format of Y. Of the roof study there are `cells`, as
`cell=relu float32, mib=256` and `torch share`, and `rows`, as `all` and `missed`.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import textwrap
from functools import cache
from pathlib import Path
from typing import Any

from perftests.studies.tables import factor, in_unit, shown

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PAGES = ("checklist", "bias")
MODEL = "nvidia-h200"
WIDTH = 110
_MARK = re.compile(r"\[\[(.+?)\]\]", re.DOTALL)
_WHERE = re.compile(r"([\w ]+?)=(.+?)(?:, (?=[\w ]+=)|$)")


class NoFigureError(ValueError):
    """A page quotes what no document has."""


def main(arguments: list[str] | None = None) -> int:
    """Write the pages, or with --check say whether they are up to date; return 0, 1 or 2."""
    parser = argparse.ArgumentParser(
        prog="python -m perftests.studies.pages", description="fill the pages that quote studies"
    )
    parser.add_argument("--check", action="store_true", help="write nothing, say what is stale")
    given = parser.parse_args(arguments)
    stale = []
    for name in PAGES:
        path = ROOT / "docs" / f"{name}.md"
        try:
            text = page(name)
        except NoFigureError as error:
            print(f"cannot fill {path.name}: {error}", file=sys.stderr)
            return 2
        if not path.exists() or path.read_text("utf-8") != text:
            stale.append(path)
    for path in stale:
        if given.check:
            print(f"{path.name} is stale: run python -m perftests.studies.pages", file=sys.stderr)
        else:
            path.write_text(page(path.stem), "utf-8")
            print(f"wrote {path}")
    return 1 if stale and given.check else 0


def page(name: str) -> str:
    """Return a page with its figures filled in; raise NoFigureError for one that is nowhere."""
    return wrapped(filled((HERE / f"{name}.md.in").read_text("utf-8")))


def filled(text: str) -> str:
    """Return a text with the figures in the place of their marks."""
    return _MARK.sub(lambda mark: figure(" ".join(mark[1].split())), text)


def figure(mark: str) -> str:
    """Return one figure as it is shown, of several the least and the largest."""
    parts = [_found(part) for part in mark.split(" ÷ ")]
    if len(parts) == 2:
        (above, _, _), (below, _, spec) = parts
        return f"{above[0] / below[0]:{spec}}"
    ((values, shown_as, spec),) = parts
    if spec is None:
        return shown_as
    return " to ".join(dict.fromkeys(f"{value:{spec}}" for value in (min(values), max(values))))


def _found(mark: str) -> tuple[list[Any], str, str | None]:
    """Return the values of a mark in its unit, as their table shows them, and its format."""
    study, table, where, column, *form = (part.strip() for part in mark.split("|"))
    try:
        values, unit = _looked_up(_document(study), table, dict(_WHERE.findall(where)), column)
    except (KeyError, StopIteration) as error:
        raise NoFigureError(
            f"{study}-{MODEL}.json has no {column!r} in {table!r} where {where!r}"
        ) from error
    shown_as = in_unit(values[0], unit) if unit else shown(column, values[0])
    if not form:
        return values, shown_as, None
    *scale, spec = form[0].split()
    return ([value * factor(scale[0]) for value in values] if scale else values), shown_as, spec


@cache
def _document(study: str) -> Any:
    path = ROOT / "docs" / "results" / f"{study}-{MODEL}.json"
    if not path.exists():
        raise NoFigureError(f"docs/results has no {path.name}")
    return json.loads(path.read_text("utf-8"))


def _looked_up(
    document: Any, table: str, where: dict[str, str], column: str
) -> tuple[list[Any], str | None]:
    """Return values in base units and the unit that the table shows them in."""
    if table == "-":
        return [document[column]], None
    if table == "cells":
        return _of_cells(document["cells"], where, column), None
    if table == "rows":
        rows = document["rows"]
        return [{"all": len(rows), "missed": sum(not row["reached"] for row in rows)}[column]], None
    section = next(each for each in document["sections"] if each["title"] == table)
    row = next(
        row
        for row in section["rows"]
        if all(str(row.get(name.strip())) == value for name, value in where.items())
    )
    return [row[column]], section.get("units", {}).get(column)


def _of_cells(cells: list[Any], where: dict[str, str], column: str) -> list[Any]:
    """Return `NAME share` (of the fastest copy) or `NAME seconds` of the roof study's cells.

    A cell that ends in * stands for all that begin so.
    """
    label, mib = where["cell"], float(where["mib"])
    name, what = column.split()
    found = []
    for cell in cells:
        alike = label.endswith("*") and cell["cell"].startswith(label[:-1])
        if float(cell["mib"]) != mib or not (alike or cell["cell"] == label):
            continue
        seconds = cell["times"][name]["seconds"]
        copy_s = min(each["seconds"] for each in cell["copies"].values())
        share = cell["bytes_moved"] / seconds / (cell["bytes_copied"] / copy_s)
        found.append({"share": share, "seconds": seconds}[what])
    if not found:
        raise KeyError(label)
    return found


def wrapped(text: str) -> str:
    """Return a page with its paragraphs and list items wrapped; headings and tables stay."""
    blocks = []
    for block in re.split(r"\n\n+", text.strip()):
        if block.startswith(("#", "|", "!", "<")):
            blocks.append(block)
            continue
        blocks.append("\n".join(map(_wrapped, re.split(r"\n(?=- )", block))))
    return "\n\n".join(blocks) + "\n"


def _wrapped(item: str) -> str:
    """Return one item in lines; a number and its % stay together."""
    joined = " ".join(item.split()).replace(" %", "\N{NO-BREAK SPACE}%")
    return textwrap.fill(
        joined,
        WIDTH,
        subsequent_indent="  " if item.startswith("- ") else "",
        break_long_words=False,
        break_on_hyphens=False,
    ).replace("\N{NO-BREAK SPACE}", " ")


if __name__ == "__main__":
    sys.exit(main())
