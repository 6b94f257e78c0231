"""Messages to a webhook: generic JSON, or the form that Slack takes. The address is a secret.

It comes from the environment, is never shown, stored or followed elsewhere, and an error names what
went wrong without it.
"""

import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from enum import StrEnum
from http.client import HTTPException, InvalidURL
from typing import Any
from urllib.parse import urlsplit

from tracker.errors import ConfigError, ExitCode, TrackerError
from tracker.loop.notify import Group, Item, News, Telling, UncertainError
from tracker.report.escape import plain
from tracker.units import bandwidth, percent

VARIABLE = "BANDWATCH_WEBHOOK"
_TIME_LIMIT_S = 20
_SLACK_BLOCKS = 45  # of 50 that Slack takes in a message
_SLACK_TEXT = 2900  # of 3000 characters in a block
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_WORDS = {
    News.REGRESSION: "slower",
    News.IMPROVEMENT: "faster",
    News.WORSENED: "slower still",
    News.RECOVERED: "recovered",
    News.RETRACTED: "retracted",
}


class NotSentError(TrackerError):
    """A message that certainly did not arrive; the next call tries again."""

    exit_code = ExitCode.UNDECIDED


class Form(StrEnum):
    """How a message is written."""

    JSON = "json"
    SLACK = "slack"


def form_of(address: str) -> Form:
    """Return the form that an address takes by its host: Slack's own for Slack, else JSON."""
    host = urlsplit(address).hostname or ""
    slack = host == "slack.com" or host.endswith(".slack.com")
    return Form.SLACK if slack else Form.JSON


def message(telling: Telling, form: Form, page: str | None = None) -> dict[str, Any]:
    """Return the body of a message."""
    return _slack(telling, page) if form is Form.SLACK else _generic(telling, page)


def _generic(telling: Telling, page: str | None) -> dict[str, Any]:
    return {
        "schema": 1,
        "kind": "changes",
        "text": headline(telling),
        "groups": [
            {
                "id": group.key,
                "gpu_model": group.gpu_model,
                "previous_commit": group.previous_sha,
                "commit": group.sha,
                "changes": [_plain(item) for item in group.items],
                **({"page": page} if page else {}),
            }
            for group in telling.groups
        ],
    }


def _plain(item: Item) -> dict[str, Any]:
    change = item.change
    return {
        "news": item.news.value,
        "case": change.case.label,
        "fingerprint": change.case.fingerprint,
        "bandwidth_change": change.effect,
        "before_bytes_per_s": change.before,
        "after_bytes_per_s": change.after,
        "newest_bytes_per_s": change.newest,
        "p_value": change.p_value,
    }


def _slack(telling: Telling, page: str | None) -> dict[str, Any]:
    blocks = [_section(text) for group in telling.groups for text in _parts(group)]
    if len(blocks) > _SLACK_BLOCKS:
        left = len(blocks) - _SLACK_BLOCKS
        blocks = [*blocks[:_SLACK_BLOCKS], _section(f"and {left} more parts")]
    if page:
        blocks.append(_section(f"<{page}|dashboard>"))
    return {"text": _mrkdwn(headline(telling)), "blocks": blocks}


def _section(text: str) -> dict[str, Any]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text}}


def _parts(group: Group) -> list[str]:
    """Return a group's lines, in blocks that Slack takes."""
    head = f"*{_mrkdwn(group.gpu_model)}*, {group.previous_sha[:12]}..{group.sha[:12]}"
    parts, part = [], head
    for item in group.items:
        line = f"\n• {_mrkdwn(line_of(item))[:500]}"
        if len(part) + len(line) > _SLACK_TEXT:
            parts.append(part)
            part = head
        part += line
    return [*parts, part]


def _mrkdwn(text: str) -> str:
    """Return text that Slack shows as it is: no mention, link or markup."""
    safe = plain(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    # A zero-width space keeps * _ ~ ` from pairing up.
    return "".join(f"{c}\u200b" if c in "*_~`" else c for c in safe)


def headline(telling: Telling) -> str:
    """Return the news in one line."""
    counts = {kind: sum(item.news is kind for item in telling.items) for kind in News}
    told = ", ".join(f"{count} {_WORDS[kind]}" for kind, count in counts.items() if count)
    return f"Bandwatch: {told or 'nothing new'}"


def line_of(item: Item) -> str:
    """Return one change in words."""
    change = item.change
    if item.news is News.RETRACTED:
        size = percent(change.effect, signed=True)
        return f"{change.case.label}: retracted, more runs show no change (told: {size})"
    return (
        f"{change.case.label}: {_WORDS[item.news]}, {percent(change.effect, signed=True)} "
        f"({bandwidth(change.before)} to {bandwidth(change.after)})"
    )


def address_from(environ: Mapping[str, str]) -> str:
    """Return the webhook's address. Raises ConfigError, without it, for none or an unsafe one."""
    address = environ.get(VARIABLE, "").strip()
    if not address:
        raise ConfigError(f"cannot tell anybody: {VARIABLE} is not set; see with --dry-run")
    try:
        parts = urlsplit(address)
        host = parts.hostname
    except ValueError:
        parts, host = None, None
    if parts is None or not host or parts.scheme not in {"http", "https"}:
        raise ConfigError(f"cannot use {VARIABLE}: it is no address that begins with https://")
    if parts.scheme == "http" and host not in _LOOPBACK:
        raise ConfigError(f"cannot use {VARIABLE}: a message travels by https only")
    return address


def post(address: str, body: Mapping[str, Any]) -> None:
    """Post a message.

    Raises, without the address, NotSentError when it was not taken, and UncertainError when the
    connection broke after all of it was sent, so that it may have been.
    """
    request = urllib.request.Request(  # noqa: S310 - the scheme was checked
        address,
        json.dumps(body, ensure_ascii=True, allow_nan=False).encode(),
        {"Content-Type": "application/json", "User-Agent": "bandwatch"},
        method="POST",
    )
    opener = urllib.request.build_opener(
        _NoRedirect(), urllib.request.HTTPSHandler(context=ssl.create_default_context())
    )
    try:
        with opener.open(request, timeout=_TIME_LIMIT_S) as answer:
            status = answer.status
    except urllib.error.HTTPError as error:
        status = error.code
    except (urllib.error.URLError, InvalidURL, ValueError) as error:
        raise NotSentError(
            f"cannot reach the webhook: {type(error).__name__}; the next call tries again"
        ) from None
    except (OSError, HTTPException) as error:  # urllib wraps what happens before the answer
        raise UncertainError(
            f"the webhook gave no answer: {type(error).__name__}; nobody knows whether it has the "
            "message, which is not sent again"
        ) from None
    if not 200 <= status < 300:
        raise NotSentError(f"the webhook answered {status}; the next call tries again")


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A secret address that sends us elsewhere is not followed."""

    def redirect_request(self, *arguments: Any, **named: Any) -> None:
        """Follow nothing."""
        del arguments, named
