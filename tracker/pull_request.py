"""What CI says of a pull request: the head and base that a test-merge commit joins."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracker.model import Commit

_SHA = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_MAX_EVENT = 8 * 1024 * 1024
_MAX_BRANCH = 250


@dataclass(frozen=True, slots=True)
class PullRequest:
    """The commits of a pull request, and the branch where a detached head does not name one."""

    head: str | None = None
    base: str | None = None
    merge_base: str | None = None
    branch: str | None = None


def pull_request(measured: Commit, environ: Mapping[str, str]) -> PullRequest | None:
    """Return what GitHub's or GitLab's variables say of the commit measured, None outside both."""
    if environ.get("GITHUB_ACTIONS") == "true":
        return _github(measured, environ)
    if environ.get("GITLAB_CI") == "true":
        return _gitlab(measured, environ)
    return None


def _github(measured: Commit, environ: Mapping[str, str]) -> PullRequest:
    branch = _branch(environ.get("GITHUB_HEAD_REF") or environ.get("GITHUB_REF_NAME"))
    if not environ.get("GITHUB_EVENT_NAME", "").startswith("pull_request"):
        return PullRequest(branch=branch)
    event = _event(environ.get("GITHUB_EVENT_PATH"))
    head, base = (_sha(_field(event, "pull_request", side, "sha")) for side in ("head", "base"))
    return _joined(measured, head, base, None, branch)


def _gitlab(measured: Commit, environ: Mapping[str, str]) -> PullRequest:
    branch = environ.get("CI_MERGE_REQUEST_SOURCE_BRANCH_NAME") or environ.get("CI_COMMIT_REF_NAME")
    if "CI_MERGE_REQUEST_IID" not in environ:
        return PullRequest(branch=_branch(branch))
    return _joined(
        measured,
        _sha(environ.get("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA")) or measured.sha,
        _sha(environ.get("CI_MERGE_REQUEST_TARGET_BRANCH_SHA")),
        _sha(environ.get("CI_MERGE_REQUEST_DIFF_BASE_SHA")),
        _branch(branch),
    )


def _joined(
    measured: Commit,
    head: str | None,
    base: str | None,
    merge_base: str | None,
    branch: str | None,
) -> PullRequest:
    # The base that CI names is that of the event and may be behind the one that was merged: the
    # test-merge commit itself knows best what it joins.
    if len(measured.parents) == 2 and measured.parents[1] == head:
        base = measured.parents[0]
    return PullRequest(head, base, merge_base, branch)


def _event(path: str | None) -> Any:
    try:
        file = Path(path or "")
        if not file.is_file() or file.stat().st_size > _MAX_EVENT:
            return None
        return json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None


def _field(value: Any, *names: str) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _sha(value: object) -> str | None:
    return value if isinstance(value, str) and _SHA.fullmatch(value) else None


def _branch(value: str | None) -> str | None:
    cleaned = "".join(c for c in value or "" if c.isprintable())[:_MAX_BRANCH]
    return cleaned or None
