"""Facts from git about what is measured: commit, state of the tree, ancestry.

Works outside a checkout, in shallow clones and with a dirty tree, and says which. Text from a
repository is data: control characters go, lengths are bounded, nothing is passed to a shell.
"""

import hashlib
import os
import re
import subprocess
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from tracker.errors import GitError
from tracker.last_words import telling_line
from tracker.model import Checkout, Commit
from tracker.pull_request import PullRequest, pull_request

_TIMEOUT_S = 60
_MAX_TEXT = 1000
_SHA = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
# Variables that would point git at another repository (inside a hook, say) or make it run or
# change something. Settings passed by GIT_CONFIG_* stay: CI marks folders as safe with them.
_KEPT = (
    "GIT_CONFIG",
    "GIT_CEILING_DIRECTORIES",
    "GIT_DISCOVERY_ACROSS_FILESYSTEM",
    "GIT_EXEC_PATH",
)
_OPTIONS = (
    "--no-pager",
    "--no-replace-objects",
    "--no-optional-locks",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "log.showSignature=false",
    "-c",
    "i18n.logOutputEncoding=UTF-8",
)
_FIELDS = "%H%x00%P%x00%an <%ae>%x00%aI%x00%cI%x00%s"


def checkout(path: str | Path = ".", environ: Mapping[str, str] | None = None) -> Checkout:
    """Return what is checked out at `path`; what git could not tell stands in its notes.

    Never raises for a folder that is no checkout, for missing git or for a repository that git
    refuses. A tree whose state is unknown counts as dirty, since it must not become history.
    """
    environ = os.environ if environ is None else environ
    try:
        found = commit("HEAD", path)
    except GitError as error:
        return Checkout(notes=(_why_no_commit(path, str(error)),))
    notes: list[str] = []
    pull = pull_request(found, environ)
    branch = _branch(path) or (pull.branch if pull else None)
    if branch is None:
        notes.append("detached head: no branch is known")
    shallow = _answers("true", path, "rev-parse", "--is-shallow-repository")
    if shallow:
        notes.append("shallow clone: ancestors beyond its depth are unknown; fetch with full depth")
    dirty = _is_dirty(path, notes)
    return Checkout(
        commit=found,
        branch=branch,
        dirty=dirty,
        tree=_tree(path, dirty=dirty),
        shallow=shallow,
        head=pull.head if pull else None,
        base=pull.base if pull else None,
        merge_base=_merge_base_of(pull, path, notes) if pull else None,
        notes=tuple(notes),
    )


def resolve(ref: str, path: str | Path = ".") -> str:
    """Return the commit id that a ref, tag or abbreviation means. Raises GitError for none."""
    if not ref or "\x00" in ref:
        raise GitError(f"cannot resolve {ref!a}: no name of a commit")
    out = _git(
        path,
        "rev-parse",
        "--verify",
        "--quiet",
        "--end-of-options",
        f"{ref}^{{commit}}",
        doing=f"resolve {_clean(ref)!a}",
    )
    sha = out.strip()
    if not _SHA.fullmatch(sha):
        raise GitError(f"cannot resolve {ref!a}: git gave {_clean(sha)!a}, no commit id")
    return sha


def commit(ref: str = "HEAD", path: str | Path = ".") -> Commit:
    """Return a commit's facts, its true parents too where a shallow clone ends."""
    sha = resolve(ref, path)
    (found,) = _log(path, "--no-walk", sha)
    header = _git(path, "cat-file", "commit", sha).partition("\n\n")[0]
    parents = tuple(line[7:].strip() for line in header.splitlines() if line.startswith("parent "))
    return Commit(sha, parents, found.author, found.author_time, found.commit_time, found.subject)


def history(path: str | Path = ".", ref: str = "HEAD", limit: int = 1000) -> tuple[Commit, ...]:
    """Return a commit and its ancestors, children before parents, else the newest first."""
    return _log(path, "--date-order", f"--max-count={limit}", resolve(ref, path))


def ancestors(path: str | Path = ".", ref: str = "HEAD", limit: int = 1000) -> tuple[str, ...]:
    """Return the ids of a commit's ancestors, the newest first, itself not."""
    sha = resolve(ref, path)
    out = _git(path, "rev-list", "--date-order", f"--max-count={limit + 1}", sha)
    return tuple(line for line in out.split() if line != sha)[:limit]


def merge_base(one: str, other: str, path: str | Path = ".") -> str | None:
    """Return the best common ancestor of two commits, None where none is known."""
    shas = (resolve(one, path), resolve(other, path))
    try:
        return _git(path, "merge-base", *shas).strip() or None
    except GitError:
        return None


def reachable(path: str | Path = ".") -> frozenset[str]:
    """Return every commit that some branch, tag, remote branch or the head reaches."""
    # A stash, or what a rewrite of history put aside, is no place where work goes on.
    aside = ("--exclude=refs/stash", "--exclude=refs/original/*")
    return frozenset(_git(path, "rev-list", *aside, "--all", "HEAD").split())


def is_shallow(path: str | Path = ".") -> bool:
    """Return whether the history ends early here."""
    return _answers("true", path, "rev-parse", "--is-shallow-repository")


def identity(path: str | Path = ".") -> str | None:
    """Return the name that git signs commits with here, None where none is set."""
    try:
        return _clean(_git(path, "config", "--get", "user.name")) or None
    except GitError:
        return None


def _log(path: str | Path, *arguments: str) -> tuple[Commit, ...]:
    out = _git(path, "log", "-z", f"--format={_FIELDS}", *arguments, "--")
    width = _FIELDS.count("%x00") + 1
    fields = out.split("\x00")
    return tuple(
        Commit(
            sha=sha,
            parents=tuple(parents.split()),
            author=_clean(author) or None,
            author_time=_time(author_time),
            commit_time=_time(commit_time),
            subject=_clean(subject),
        )
        for sha, parents, author, author_time, commit_time, subject in (
            fields[start : start + width] for start in range(0, len(fields) - width + 1, width)
        )
    )


def _branch(path: str | Path) -> str | None:
    try:
        return _clean(_git(path, "symbolic-ref", "--short", "--quiet", "HEAD")) or None
    except GitError:
        return None


def _is_dirty(path: str | Path, notes: list[str]) -> bool:
    try:
        out = _git(
            path, "status", "--porcelain=v1", "-z", "--untracked-files=normal", "--no-renames"
        )
    except GitError as error:
        notes.append(f"taken as dirty, since {error}")
        return True
    entries = [entry for entry in out.split("\x00") if entry]
    untracked = sum(entry.startswith("?? ") for entry in entries)
    if untracked:
        notes.append(f"{untracked} untracked files or folders, not part of the commit")
    return len(entries) > untracked


def _tree(path: str | Path, *, dirty: bool) -> str | None:
    """Return the id of the tree measured; for a dirty one, with a digest of the changes."""
    try:
        tree = _git(path, "rev-parse", "HEAD^{tree}").strip()
        if not dirty:
            return tree
        changes = _git(
            path, "diff", "HEAD", "--binary", "--no-ext-diff", "--no-textconv", "--no-color"
        )
    except GitError:
        return None
    return f"{tree}+{hashlib.sha256(changes.encode(errors='surrogateescape')).hexdigest()[:12]}"


def _merge_base_of(pull: PullRequest, path: str | Path, notes: list[str]) -> str | None:
    if pull.merge_base is not None or pull.head is None:
        return pull.merge_base
    try:
        known = pull.base is not None and pull.head is not None
        found = merge_base(pull.base or "", pull.head or "", path) if known else None
    except GitError:
        found = None
    if found is None:
        notes.append("the merge base of head and base is unknown here; fetch with full depth")
    return found


def _why_no_commit(path: str | Path, error: str) -> str:
    if _answers("true", path, "rev-parse", "--is-inside-work-tree"):
        return "a repository without a commit yet"
    try:
        _git(path, "rev-parse", "--git-dir", doing="read the checkout")
    except GitError as reason:
        return f"no git facts: {reason}"
    return f"no git facts: {error}"


def _answers(expected: str, path: str | Path, *arguments: str) -> bool:
    try:
        return _git(path, *arguments).strip() == expected
    except GitError:
        return False


def _git(path: str | Path, *arguments: str, doing: str | None = None) -> str:
    """Return git's output as text; bytes that are not UTF-8 survive as surrogates."""
    doing = doing or f"run git {arguments[0]}"
    environment = {
        k: v for k, v in os.environ.items() if not k.startswith("GIT_") or k.startswith(_KEPT)
    }
    environment |= {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"}
    try:
        done = subprocess.run(
            ["git", "-C", str(path), *_OPTIONS, *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except FileNotFoundError as error:
        raise GitError(f"cannot {doing}: git is not installed") from error
    except subprocess.TimeoutExpired as error:
        raise GitError(f"cannot {doing}: git gave no answer within {_TIMEOUT_S} s") from error
    except (OSError, ValueError) as error:
        raise GitError(f"cannot {doing}: {_clean(str(error))}") from error
    if done.returncode != 0:
        raise GitError(f"cannot {doing}: {_told(done.stderr, str(path))}")
    return done.stdout.decode("utf-8", "surrogateescape")


def _told(stderr: bytes, path: str) -> str:
    said = stderr.decode("utf-8", "replace")
    text = _clean(said)
    if "dubious ownership" in text:
        return (
            f"the checkout {_clean(path)} belongs to another user; "
            "allow it with: git config --global --add safe.directory "
            f"{_clean(str(Path(path).resolve()))}"
        )
    if "not a git repository" in text:
        return f"{_clean(path)} is no git checkout"
    return telling_line(said) if text else "git knows nothing by that name"


def _clean(text: str) -> str:
    """Return text from a repository as one printable line of bounded length."""
    text = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return " ".join("".join(c if c.isprintable() else " " for c in text[: 4 * _MAX_TEXT]).split())[
        :_MAX_TEXT
    ]


def _time(text: str) -> str | None:
    """Return a commit's time, None for one that no calendar has: git accepts any number."""
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        return None
    return text if parsed.tzinfo is not None else None
