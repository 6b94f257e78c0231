"""`bandwatch export`: a store's content as a file for other tools, or whole."""

import sys
from collections.abc import Iterable
from pathlib import Path

import click

from tracker.cli.options import blaming_damage, note, printing
from tracker.config import STORE_VARIABLE, load_config
from tracker.exporters import FORMATS, Scope, export
from tracker.exporters.formats import BINARY, write_whole
from tracker.report.escape import plain
from tracker.store import Store
from tracker.units import size


@click.command("export", short_help="Write results as a file for other tools.")
@click.argument("run", required=False)
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default=FORMATS[0],
    show_default=True,
    help="jsonl, csv and parquet hold all that the store does; `bandwatch import` reads them back.",
)
@click.option(
    "--output", type=click.Path(path_type=Path), help="A file instead of standard output."
)
@click.option("--gpu", metavar="MODEL", help="Only runs on this GPU model.")
@click.option("--store", metavar="URL", help=f"The store to use; before {STORE_VARIABLE}.")
def command(
    *, run: str | None, form: str, output: Path | None, gpu: str | None, store: str | None
) -> int:
    """Write RUN (a run id, a commit, `latest`) or the whole store in another tool's format.

    csv, parquet and jsonl hold the whole store unless RUN or --gpu is given; bmf and
    github-action-benchmark one run, by default the newest of the suite; openmetrics that of each
    GPU model. A newer run for something else, such as a study's, is left out unless it is named,
    and standard error says so. Times are in seconds, as the column names say; bmf and
    github-action-benchmark want nanoseconds. In csv and parquet the results are the rows with
    `result` in the column `row`.

    Example: bandwatch export --format csv
    """
    config = load_config(store)
    with (
        blaming_damage(config.store.url),
        Store.open(config.store.url, read_only=True) as opened,
    ):
        pieces = export(opened, form, Scope(run, gpu), output, _tell)
        if output is None:
            _print(pieces)
            return 0
        written = output.stat().st_size if form == BINARY else write_whole(pieces, output)
    note(f"wrote {output}, {size(written)}")
    return 0


def _tell(line: str) -> None:
    note(plain(line))


def _print(pieces: Iterable[bytes]) -> None:
    out = sys.stdout.buffer
    with printing():
        for piece in pieces:
            out.write(piece)
        out.flush()
