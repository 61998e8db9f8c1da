"""Regular expressions as the Rust engine reads them: which it refuses, and which are plain text.

Owns: the subset of patterns that say no more than "is", "begins with", "ends with" or "contains".
Must not know: predicates, SQL.
Keeps: a pattern is called plain only where the engine's answer is exactly that of the text operation.
"""

import re
from dataclasses import dataclass
from typing import Final

# Outside of these the engine (crate `regex`, no flags) matches a character by itself; a backslash before one of
# them takes its meaning away. Every other escape is a class or an error.
_SPECIAL: Final = r"\\.+*?()|\[\]{}^$"
_PLAIN: Final = re.compile(rf"(\^?)((?:[^{_SPECIAL}]|\\[{_SPECIAL}])*)(\$?)")
_ESCAPE: Final = re.compile(r"\\(.)")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainPattern:
    """A pattern without operators: a text, and at which ends it is anchored."""

    text: str
    at_start: bool
    at_end: bool


def parse_plain(pattern: str) -> PlainPattern | None:
    """The pattern as plain text, or None where it is more than that."""
    # Without the flag `m`, `^` and `$` are the ends of the whole text; `$` does not match before a last newline.
    match = _PLAIN.fullmatch(pattern)
    if match is None:
        return None
    return PlainPattern(text=_ESCAPE.sub(r"\1", match[2]), at_start=bool(match[1]), at_end=bool(match[3]))


def fault_of(pattern: str) -> str | None:
    """Why the engine refuses a pattern, in one line; None when it takes it."""
    if parse_plain(pattern) is not None:
        return None
    import cel  # noqa: PLC0415 - a quarter of a second that only queries with a real pattern pay

    try:
        cel.evaluate("''.matches(pattern)", {"pattern": pattern})
    except RuntimeError as error:
        reason = str(error).removesuffix(". Check function arguments and their types.").splitlines()[-1]
        return reason.removeprefix("error: ").strip()
    return None
