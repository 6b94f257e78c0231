"""Where a GPU host can install Bandwatch from: one commit of its repository, never a bare name.

It is published on no index, where anybody could claim the name and so run code on that host.
"""

import json
import re
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tracker.errors import ConfigError
from tracker.loop.repository import Repository

_SHAPE = re.compile(
    r"(?:git\+)?(?P<url>https://[\w.-]+(?::\d+)?(?:/[\w.~-]+)+)@(?P<commit>[0-9a-f]{40})"
)
_SSH = re.compile(r"(?:ssh://)?git@(?P<host>[\w.-]+)[:/](?P<path>[\w./~-]+)")
EXPECTED = "https://HOST/OWNER/bandwatch@COMMIT, the commit with all its 40 digits"


@dataclass(frozen=True, slots=True)
class Source:
    """A repository's address, without who logs in there, and a full commit id."""

    url: str
    commit: str

    def requirement(self, *extras: str) -> str:
        """Return what pip installs it by."""
        wanted = f"[{','.join(extras)}]" if extras else ""
        return f"bandwatch{wanted} @ git+{self.url}@{self.commit}"


def parse_source(text: str) -> Source:
    """Return the source that a person names. Raises ConfigError for another form."""
    found = _SHAPE.fullmatch(text)
    if found is None:
        raise ConfigError(f"cannot install Bandwatch from {text!a}; expected {EXPECTED}")
    return Source(found["url"], found["commit"])


def known_source() -> Source | str:
    """Return where this installation came from, or why another machine cannot get it there."""
    try:
        text = distribution("bandwatch").read_text("direct_url.json")
    except PackageNotFoundError:
        text = None
    return source_of(json.loads(text)) if text else "its own installation does not say"


def source_of(installed: dict[str, object]) -> Source | str:
    """Return the same for what pip noted of an installation (PEP 610, `direct_url.json`)."""
    url = str(installed.get("url", ""))
    if isinstance(version := installed.get("vcs_info"), dict):
        return _usable(url, str(version.get("commit_id", "")))
    if "dir_info" in installed:
        return _checkout(Path(unquote(urlsplit(url).path)))
    return f"it was installed from {Path(urlsplit(url).path).name}, which names no commit"


def _checkout(folder: Path) -> Source | str:
    """Return what a checkout's remote has of its commit."""
    repository = Repository(folder)
    commit = repository.run("rev-parse", "HEAD", check=False) if folder.is_dir() else ""
    remote = repository.run("remote", "get-url", "origin", check=False) if commit else ""
    if not remote:
        return f"it was installed from {folder}, which has no remote called origin"
    if not repository.run("branch", "--remotes", "--contains", commit, check=False):
        return f"commit {commit[:12]} of {folder} is on no branch of its remote: push it"
    return _usable(remote, commit)


def _usable(url: str, commit: str) -> Source | str:
    """Return a source by https, without a password in it."""
    ssh = _SSH.fullmatch(url)
    plain = f"https://{ssh['host']}/{ssh['path']}" if ssh else re.sub(r"//[^/@]*@", "//", url)
    found = _SHAPE.fullmatch(f"{plain.removesuffix('.git')}@{commit}")
    if found is None:
        return "it came from an address that is no https address of a repository"
    return Source(found["url"], found["commit"])
