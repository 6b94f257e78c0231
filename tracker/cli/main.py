"""The command `bandwatch`: finds its commands, turns a failure into one line and an exit code."""

import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from types import MappingProxyType

import click

from tracker.config import redact
from tracker.errors import ExitCode, TrackerError
from tracker.report.escape import plain

INTERRUPTED = 130
# Loaded only when asked for, so that `bandwatch --help` needs no database and no pandas.
_COMMANDS: Mapping[str, str] = MappingProxyType(
    {
        "record": "record",
        "check": "check",
        "compare": "compare",
        "history": "history",
        "list": "list_",
        "doctor": "doctor",
        "demo": "demo",
        "dashboard": "dashboard",
        "import": "import_",
        "export": "export",
        "db": "db",
        "evaluate": "evaluate",
    }
)


class LazyGroup(click.Group):
    """A group whose commands are modules of this package, those that are there."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of a user's first day."""
        del ctx
        return [name for name, module in _COMMANDS.items() if _exists(module)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of that name, or None."""
        del ctx
        module = _COMMANDS.get(cmd_name)
        if module is None or not _exists(module):
            return None
        found = import_module(f"{__package__}.{module}").command
        return found if isinstance(found, click.Command) else None


def _exists(module: str) -> bool:
    return find_spec(f"{__package__}.{module}") is not None


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
    try:
        code = cli.main(given, prog_name="bandwatch", standalone_mode=False)
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
    return int(code) if isinstance(code, int) else int(ExitCode.OK)


def _usage(error: click.UsageError) -> str:
    path = error.ctx.command_path if error.ctx else "bandwatch"
    return f"{error.format_message().rstrip('.')}; see {path} --help"


def _fail(message: str, code: int, *, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    try:
        sys.stderr.write(f"bandwatch: {plain(redact(message))}\n")
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    return int(code)


if __name__ == "__main__":
    sys.exit(main())
