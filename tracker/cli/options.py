"""What commands share: the output format, the store, how a report leaves the process."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import click
from click.core import ParameterSource

from tracker.config import STORE_VARIABLE, load_config
from tracker.errors import StoreError, TrackerError, WriteError
from tracker.report.document import Document
from tracker.report.formats import Format, write

# More rows or runs than any store holds, and a number that every database takes.
MOST = 1_000_000_000
# How long to look for damage that explains an error.
_SEARCH_S = 10.0


def report_command(function: Callable[..., Document]) -> Callable[..., int]:
    """Give a function that returns a report the options --format and --store, and print the report.

    The function gets `form` and `config`. What it returns to click is the exit code.
    """

    @click.option(
        "--format",
        "form",
        type=click.Choice([str(form) for form in Format]),
        default=str(Format.TEXT),
        show_default=True,
        help="How to print the result.",
    )
    @click.option(
        "--store",
        metavar="URL",
        help=f"The store to use; before {STORE_VARIABLE} and [tool.bandwatch] store.",
    )
    @wraps(function)
    def wrapped(*args: Any, form: str, store: str | None, **kwargs: Any) -> int:
        config = load_config(store)
        chosen = Format(form)
        with blaming_damage(config.store.url):
            document = function(*args, form=chosen, config=config, **kwargs)
        return emit(document, chosen)

    return wrapped


@contextmanager
def blaming_damage(address: str) -> Iterator[None]:
    """Raise StoreError instead of an error that nobody foresaw where the store is damaged."""
    try:
        yield
    except (TrackerError, click.ClickException, click.Abort, OSError):
        raise
    except Exception as error:
        from tracker.store.checking import first_damage
        from tracker.store.trouble import RESTORE

        found = first_damage(address, _SEARCH_S)
        if found is None:
            raise
        raise StoreError(f"cannot use the store: {found}; {RESTORE}") from error


def emit(document: Document, form: Format) -> int:
    """Print the report and return its exit code, which a reader that stops early cannot change."""
    with printing():
        write(document, form)
        sys.stdout.flush()
    return int(document.exit_code)


@contextmanager
def printing() -> Iterator[None]:
    """Let a reader of standard output stop early; raise WriteError where it cannot be written."""
    try:
        yield
    except BrokenPipeError:
        _write_no_more()
    except OSError as error:
        _write_no_more()
        raise WriteError(f"cannot write to standard output: {error.strerror or error}") from error


def _write_no_more() -> None:
    # Python flushes standard output once more at exit; let that go nowhere.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def row_limit(form: Format, *, everything: bool) -> int | None:
    """Return above how many rows a report for people hides the unchanged ones."""
    # Late: what shows verdicts loads the statistics behind them.
    from tracker.report.verdicts import COMMENT_LIMIT, TEXT_LIMIT

    if everything:
        return None
    return TEXT_LIMIT if form is Format.TEXT else COMMENT_LIMIT


def refuse_idle(reason: str, *names: str) -> None:
    """Raise click.UsageError where one of these parameters was given: it would have no effect."""
    context = click.get_current_context()
    for parameter in context.command.params:
        given = context.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE
        if parameter.name in names and given:
            raise click.UsageError(f"{parameter.opts[0]} has no effect: {reason}")


def note(message: str) -> None:
    """Tell something that is no result."""
    click.echo(message, err=True)
