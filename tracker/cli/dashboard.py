"""`bandwatch dashboard`: serve the pages on the store."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import click

from tracker.config import STORE_VARIABLE, Config, load_config
from tracker.doctor.packages import install_command
from tracker.errors import UnfitError

_PACKAGES = ("streamlit", "altair", "pandas")
_FIX = install_command("dashboard")


@click.command("dashboard", short_help="Serve the dashboard on the store.")
@click.option("--store", metavar="URL", help=f"The store to show; before {STORE_VARIABLE}.")
@click.option(
    "--port", type=click.IntRange(1, 65535), default=8501, show_default=True, help="Port."
)
@click.option("--address", default="localhost", show_default=True, help="Address to listen on.")
@click.option("--allow-triage", is_flag=True, help="Let visitors write triage into the store.")
@click.option("--check", is_flag=True, help="Only say whether the dashboard could start.")
def command(*, store: str | None, port: int, address: str, allow_triage: bool, check: bool) -> int:
    """Serve the dashboard on the store. Stop it with Ctrl-C.

    Without --allow-triage the store is only read.

    Example: bandwatch dashboard --check
    """
    config = load_config(store)
    app = app_file()
    url = f"http://{address}:{port}"
    if check:
        click.echo(f"the dashboard can start: {app} on {config.store.shown}, at {url}")
        return 0
    click.echo(f"dashboard on {config.store.shown}: {url} (Ctrl-C stops it)")
    return serve(config, port=port, address=address, allow_triage=allow_triage)


def app_file() -> Path:
    """Return the dashboard's entry script. Raises UnfitError, with the cure, when it cannot run."""
    missing = [name for name in _PACKAGES if find_spec(name) is None]
    if missing:
        raise UnfitError(
            f"cannot start the dashboard: {', '.join(missing)} not installed; install: {_FIX}"
        )
    spec = find_spec("dashboard")
    folders = list(spec.submodule_search_locations or ()) if spec else []
    app = Path(folders[0]) / "app.py" if folders else None
    if app is None or not app.is_file():
        raise UnfitError(
            f"cannot start the dashboard: {app or 'the package dashboard'} is missing; "
            "reinstall Bandwatch"
        )
    return app


def serve(config: Config, *, port: int, address: str, allow_triage: bool) -> int:
    """Run the pages' server until it is stopped; return its exit status."""
    command_line = [
        # -P: a folder called dashboard in the current directory is not ours.
        *(sys.executable, "-P", "-m", "dashboard"),
        *("--port", str(port), "--address", address),
        *(("--allow-triage",) if allow_triage else ()),
    ]
    environ = os.environ | {STORE_VARIABLE: config.store.url}
    try:
        return subprocess.run(command_line, env=environ, check=False).returncode
    except KeyboardInterrupt:
        return 0
