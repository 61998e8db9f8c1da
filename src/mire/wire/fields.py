"""Taking known members out of a decoded document, so that what is left is exactly what we do not know.

Owns: turning a bad member into a `FormatError` that names it.
Must not know: which documents exist.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from mire.errors import FormatError, InputError, shown
from mire.model.names import VERSION_MAX

T = TypeVar("T")


class Fields:
    """A document being taken apart, member by member."""

    def __init__(self, document: object, what: str) -> None:
        if not isinstance(document, Mapping):
            raise FormatError(f"{what} is {shown(document)}, not a mapping")
        self._left: dict[str, Any] = dict(document)
        self._what = what

    def take(self, key: str, parse: Callable[[object], T]) -> T:
        """The member, parsed; missing or bad is a `FormatError`."""
        if self._left.get(key) is None:
            raise FormatError(f"{self._what} lacks '{key}'")
        return self._parsed(key, parse)

    def maybe(self, key: str, parse: Callable[[object], T]) -> T | None:
        """The member, parsed, or None when it is missing or null."""
        if self._left.get(key) is None:
            self._left.pop(key, None)
            return None
        return self._parsed(key, parse)

    def rest(self) -> dict[str, Any]:
        """What no one took: members of a newer writer."""
        return self._left

    def _parsed(self, key: str, parse: Callable[[object], T]) -> T:
        try:
            return parse(self._left.pop(key))
        except InputError as error:
            raise FormatError(f"{self._what}: '{key}': {error.message}") from None


def text(value: object) -> str:
    """A non-empty text."""
    if not isinstance(value, str) or not value:
        raise InputError(f"{shown(value)} is not a non-empty text")
    return value


def whole(value: object) -> int:
    """A whole number from zero that every program can hold."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= VERSION_MAX:
        raise InputError(f"{shown(value)} is not a whole number from 0 to 2^53")
    return value


def flag(value: object) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise InputError(f"{shown(value)} is neither true nor false")
    return value


def mapping(value: object) -> Mapping[str, Any]:
    """A map."""
    if not isinstance(value, Mapping):
        raise InputError(f"{shown(value)} is not a map")
    return value


def text_map(value: object) -> Mapping[str, str]:
    """A map of text to text."""
    for key, item in mapping(value).items():
        if not isinstance(item, str):
            raise InputError(f"{shown(key)} has the value {shown(item)}, which is not text")
    return mapping(value)


def sequence(value: object) -> tuple[Any, ...]:
    """A list."""
    if not isinstance(value, (list, tuple)):
        raise InputError(f"{shown(value)} is not a list")
    return tuple(value)


def one_of(*choices: str) -> Callable[[object], str]:
    """A parser that takes only these texts."""

    def parse(value: object) -> str:
        if value not in choices:
            raise InputError(f"{shown(value)} is not one of {', '.join(choices)}")
        return str(value)

    return parse


def present(members: Mapping[str, Any]) -> dict[str, Any]:
    """The members that have a value: writers omit absent optional ones."""
    return {key: value for key, value in members.items() if value is not None}
