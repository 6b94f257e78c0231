"""The expressions of GitHub Actions, as much of them as our workflows use.

Source: GitHub's documentation, "Evaluate expressions in workflows and actions": operators and their
order, loose comparison without case, falsy values, object filters (`labels.*.name`).
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

_TOKEN = re.compile(
    r"\s*(?:(?P<text>'(?:[^']|'')*')|(?P<number>-?\d+(?:\.\d+)?)|(?P<name>[A-Za-z_][\w-]*)"
    r"|(?P<operator>\|\||&&|==|!=|[!().,*]))"
)
_WRAPPED = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)
Functions = Mapping[str, Callable[..., Any]]


def interpolate(text: str, contexts: Mapping[str, Any], functions: Functions) -> Any:
    """Return a value of a workflow file; one that is a single expression keeps its type."""
    whole = _WRAPPED.fullmatch(text.strip())
    if whole and "${{" not in whole[1]:
        return evaluate(whole[1], contexts, functions)
    return _WRAPPED.sub(lambda m: shown(evaluate(m[1], contexts, functions)), text)


def evaluate(text: str, contexts: Mapping[str, Any], functions: Functions) -> Any:
    """Return the value of one expression. Raises ValueError for what is not understood."""
    parser = _Parser(_tokens(text), contexts, functions)
    value = parser.either()
    if parser.at < len(parser.tokens):
        raise ValueError(f"cannot read {parser.tokens[parser.at :]} in {text!r}")
    return value


def shown(value: Any) -> str:
    """Return a value as the text that a script or an input gets."""
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def truthy(value: Any) -> bool:
    return value not in (None, False, 0, "")


def _tokens(text: str) -> list[tuple[str, str]]:
    found, at = [], 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            raise ValueError(f"cannot read {text[at:]!r}")
        found.append((match.lastgroup, match[match.lastgroup]))
        at = match.end()
    return found


@dataclass
class _Parser:
    tokens: list[tuple[str, str]]
    contexts: Mapping[str, Any]
    functions: Functions
    at: int = 0

    def either(self) -> Any:
        value = self.both()
        while self._take("||"):
            other = self.both()
            value = value if truthy(value) else other
        return value

    def both(self) -> Any:
        value = self.equal()
        while self._take("&&"):
            other = self.equal()
            value = other if truthy(value) else value
        return value

    def equal(self) -> Any:
        value = self.unary()
        while True:
            if self._take("=="):
                value = _same(value, self.unary())
            elif self._take("!="):
                value = not _same(value, self.unary())
            else:
                return value

    def unary(self) -> Any:
        if self._take("!"):
            return not truthy(self.unary())
        if self._take("("):
            value = self.either()
            self._need(")")
            return value
        return self.operand()

    def operand(self) -> Any:
        kind, text = self.tokens[self.at]
        self.at += 1
        if kind == "text":
            return text[1:-1].replace("''", "'")
        if kind == "number":
            return float(text)
        if text in {"true", "false", "null"}:
            return {"true": True, "false": False, "null": None}[text]
        if self._take("("):
            return self._call(text)
        if text not in self.contexts:
            raise ValueError(f"there is no context called {text}")
        return self._path(self.contexts[text])

    def _call(self, name: str) -> Any:
        arguments = []
        while not self._take(")"):
            arguments.append(self.either())
            self._take(",")
        return self.functions[name](*arguments)

    def _path(self, value: Any) -> Any:
        while self._take("."):
            if self._take("*"):
                members = value.values() if isinstance(value, Mapping) else value or []
                value = _Filtered(members)
                continue
            _, name = self.tokens[self.at]
            self.at += 1
            value = _member(value, name)
        return value

    def _take(self, text: str) -> bool:
        found = self.at < len(self.tokens) and self.tokens[self.at] == ("operator", text)
        self.at += found
        return found

    def _need(self, text: str) -> None:
        if not self._take(text):
            raise ValueError(f"expected {text} at {self.tokens[self.at :]}")


class _Filtered(list[Any]):
    """Members of an object filter: a name after it asks each of them."""


def _member(value: Any, name: str) -> Any:
    if isinstance(value, _Filtered):
        return _Filtered(_member(item, name) for item in value)
    return value.get(name) if isinstance(value, Mapping) else None


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, str) and isinstance(other, str):
        return one.lower() == other.lower()
    if type(one) is type(other):
        return bool(one == other)
    return _number(one) == _number(other)


def _number(value: Any) -> float:
    """Return what a value of another type is compared as; NaN equals nothing."""
    if value is None or value == "":
        return 0.0
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan
