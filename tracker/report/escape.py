"""Text from outside, made harmless for each format.

Case names, branches, subjects, warnings and reasons come from record files and from git: whoever
writes those must not be able to move a terminal's cursor, forge a line, break out of a table,
mention people, run a spreadsheet formula or give the CI runner a command.
"""

import re
import string
import unicodedata

_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_SPACES = re.compile(r"[\t\n\r\v\f\u0085\u2028\u2029 ]+")
_FORMULA = ("=", "+", "-", "@")
# In a code span only these could end the span or the table cell. The hidden comment by which an
# action finds its own comment again would be found in a span as well.
_SPAN_BREAKERS = frozenset("`|\\<")
_PROSE_ALLOWED = frozenset(" .,;:()%+/-='?!") | frozenset(string.ascii_letters + string.digits)
_BLOCK_START = re.compile(r"^(\d*)([-+=.)])(?=[-+=\s]|$)")


def plain(text: str) -> str:
    """Return one line without control, format or unassigned characters, which show as escapes.

    Text that the CI runner would take for a command (`::name::` at the start, `##[name]`
    anywhere) is escaped in the same way.
    """
    line = _SPACES.sub(" ", text).strip()
    if not (line.isascii() and line.isprintable()):
        line = "".join(map(_visible, line))
    line = line.replace("##[", r"#\x23[")
    return rf"\x3a{line[1:]}" if line.startswith("::") else line


def code(text: str) -> str:
    """Return `text` as a Markdown code span that no content can leave, in a table or outside."""
    line = plain(text) or " "
    if _SPAN_BREAKERS.isdisjoint(line):
        return f"`{line}`"
    return f"<code>{''.join(map(_entity, line))}</code>"


def prose(text: str) -> str:
    """Return `text` as Markdown that shows exactly its characters: no markup, link or mention."""
    escaped = "".join(c if c in _PROSE_ALLOWED or ord(c) > 127 else _entity(c) for c in plain(text))
    # GitHub looks for mentions and issue numbers after entities are decoded; a zero-width space
    # stops it. Bare addresses would become links before.
    escaped = escaped.replace("&#64;", "&#64;&#8203;").replace("&#35;", "&#35;&#8203;")
    escaped = re.sub(r"(?i)\bgh-(?=\d)", lambda m: f"{m[0][:-1]}&#45;&#8203;", escaped)
    escaped = re.sub(r"(?i)\bwww\.", lambda m: f"{m[0][:-1]}&#46;", escaped)
    # At the start of a line these would open a list or a rule.
    escaped = _BLOCK_START.sub(lambda m: f"{m[1]}&#{ord(m[2])};", escaped)
    return escaped.replace("://", "&#58;//")


def csv_text(text: str) -> str:
    """Return a cell that no spreadsheet takes for a formula."""
    line = plain(text)
    return f"'{line}" if line.startswith(_FORMULA) else line


def command_message(text: str) -> str:
    """Return the message part of a GitHub workflow command."""
    return plain(text).replace("%", "%25")


def command_property(text: str) -> str:
    """Return a property's value in a GitHub workflow command."""
    return command_message(text).replace(":", "%3A").replace(",", "%2C")


def _visible(character: str) -> str:
    if unicodedata.category(character) not in _HIDDEN:
        return character
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")


def _entity(character: str) -> str:
    if character.isalnum() or character == " " or ord(character) > 127:
        return character
    return f"&#{ord(character)};"
