"""The command `bandwatch`: finds its commands, turns a failure into one line and an exit code."""

import gc
import os
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from types import MappingProxyType

import click

import tracker.cli
from tracker.errors import ExitCode, TrackerError

INTERRUPTED = 130
_BLAS_THREADS = "OPENBLAS_NUM_THREADS"
_TAKEN = frozenset({"import", "list"})
# Each command's line in the help, in the order of a user's first day. A module is loaded only when
# its command is asked for, so that neither `--version` nor `--help` needs a database.
COMMANDS: Mapping[str, str] = MappingProxyType(
    {
        "record": "Put record files into the store.",
        "check": "Judge a run against its baseline; the exit code says how.",
        "compare": "Judge run B against run A.",
        "history": "Show one case over commits.",
        "show": "Show one result, and where it stands under the roofline.",
        "list": "Show the runs or the cases that the store holds.",
        "doctor": "Say what can be measured here and what is missing.",
        "demo": "Look around with recorded runs of a real GPU.",
        "dashboard": "Serve the dashboard on the store.",
        "ab": "Measure two commits in turns until they are told apart.",
        "backfill": "Measure commits that the store lacks.",
        "bisect": "Find the commit that changed one case's speed.",
        "ci": "Measure, record, judge and report, as CI does.",
        "db": "Keep a store: info, upgrade, check, copy, backup, prune.",
        "evaluate": "Measure how often the decisions err.",
        "export": "Write results as a file for other tools.",
        "import": "Put other tools' results into the store.",
        "init": "Make another repository ready: settings, workflow, example.",
        "notify": "Tell the team of change points, each once.",
        "triage": "Decide on change points; waive cases.",
    }
)


class LazyGroup(click.Group):
    """A group whose commands are modules of this package; one that Python has ends in `_`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, the common ones first."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of that name, or None."""
        if cmd_name not in COMMANDS:
            return None
        module = f"{cmd_name}_" if cmd_name in _TAKEN else cmd_name
        with _one_thread(), _collecting_nothing(program=bool(ctx.find_root().obj)):
            found = import_module(f"{tracker.cli.__name__}.{module}").command
        if not isinstance(found, click.Command):
            raise TypeError(f"{module}.command is {found!r}, expected a command")
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without loading them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@contextmanager
def _one_thread() -> Iterator[None]:
    """Let NumPy's and SciPy's linear algebra start no threads while they are loaded.

    To start them takes a tenth of a second of processor time, and our vectors need none. What a
    command starts later does not inherit this.
    """
    if _BLAS_THREADS in os.environ:
        yield
        return
    os.environ[_BLAS_THREADS] = "1"
    try:
        yield
    finally:
        del os.environ[_BLAS_THREADS]


@contextmanager
def _collecting_nothing(*, program: bool) -> Iterator[None]:
    """Keep the collector from looking at what is loaded, for it stays: that took a fifth as long.

    `program` says that the process is ours, so that the collector may forget what there is for
    good. It would look at all of it once more when the process ends.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if program:
            gc.freeze()
        if enabled:
            gc.enable()


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 no regression, 1 regression, 2 wrong use, 3 undecided or nothing "
    "measured, 4 environment unfit, 5 internal error.",
)
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.version_option(package_name="bandwatch", message="%(prog)s %(version)s")
def cli(*, debug: bool) -> None:
    """Record GPU benchmark results, judge them against their baseline, show them.

    Example: bandwatch doctor
    """
    del debug  # read from the arguments by `main`, which also holds when a command is not found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, return its exit code; results go to stdout, errors to stderr."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in given[:1]
    program = arguments is None
    try:
        code = cli.main(given, prog_name="bandwatch", standalone_mode=False, obj=program)
    except TrackerError as error:
        return _fail(str(error), error.exit_code, debug=debug)
    except click.UsageError as error:
        return _fail(_usage(error), ExitCode.USAGE, debug=debug)
    except click.ClickException as error:
        return _fail(error.format_message(), ExitCode.USAGE, debug=debug)
    except (click.Abort, KeyboardInterrupt):
        return _fail("interrupted", INTERRUPTED, debug=debug)
    except Exception as error:  # noqa: BLE001 - the last door: nothing may leave as a traceback
        shown = " ".join(["bandwatch --debug", *(a for a in given if a != "--debug")])
        message = f"internal error: {type(error).__name__}: {error}; to see where: {shown}"
        return _fail(message, ExitCode.INTERNAL, debug=debug)
    finally:
        if program:
            gc.freeze()
    return int(code) if isinstance(code, int) else int(ExitCode.OK)


def _usage(error: click.UsageError) -> str:
    path = error.ctx.command_path if error.ctx else "bandwatch"
    return f"{error.format_message().rstrip('.')}; see {path} --help"


def _fail(message: str, code: int, *, debug: bool) -> int:
    from tracker.config import redact
    from tracker.report.escape import plain

    try:
        if debug:
            # What went wrong may name a store's address, whatever raised it.
            sys.stderr.write(redact(traceback.format_exc()))
        sys.stderr.write(f"bandwatch: {plain(redact(message))}\n")
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    return int(code)


if __name__ == "__main__":
    sys.exit(main())
