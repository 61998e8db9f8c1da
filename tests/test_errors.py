"""The error tree: the drawing, the classes, their bases and exit codes agree."""

import inspect
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mire
from mire import errors
from mire.errors import MireError, RemoteError, shown

LINE = re.compile(r"^ {4}(?P<stem>[│├└─ ]*)(?P<name>\w+)(?: \((?P<mixin>\w+)\))? +(?P<exit>\d+|exit)  \S", re.MULTILINE)
CLASSES = {
    name: kind
    for name, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, MireError) and kind.__module__ == errors.__name__
}


def drawn() -> dict[str, tuple[str | None, str | None, int | None]]:
    """What the drawing says: of each class its parent, its other base and its exit code."""
    tree: dict[str, tuple[str | None, str | None, int | None]] = {}
    path: list[str] = []
    for line in LINE.finditer(errors.__doc__ or ""):
        depth = len(line["stem"]) // 4
        path[depth:] = [line["name"]]
        code = None if line["exit"] == "exit" else int(line["exit"])
        tree[line["name"]] = (path[depth - 1] if depth else None, line["mixin"], code)
    return tree


def test_the_drawing_shows_every_class() -> None:
    """Every error is drawn, and everything drawn is an error."""
    assert set(drawn()) == set(CLASSES)
    assert len(CLASSES) == 14


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_is_what_the_drawing_says(name: str) -> None:
    """Parent, other base and exit code are as drawn."""
    parent, mixin, code = drawn()[name]
    kind = CLASSES[name]
    assert [base.__name__ for base in kind.__bases__] == [parent or "Exception", *([mixin] if mixin else [])]
    assert code is None or kind.exit_code == code


def test_kinds_tell_errors_apart() -> None:
    """Each class has a kind of its own, in lower case, and a one-line description."""
    kinds = [kind.kind for kind in CLASSES.values()]
    assert len(set(kinds)) == len(kinds)
    assert all(re.fullmatch("[a-z_]+", kind) for kind in kinds)
    assert all((kind.__doc__ or "").strip() for kind in CLASSES.values())


def test_every_error_is_public() -> None:
    """A caller can catch each of them by a name of the package."""
    for name, kind in CLASSES.items():
        assert name in mire.__all__
        assert getattr(mire, name) is kind


def test_a_message_is_one_line() -> None:
    """Line breaks and runs of white space in a message become single spaces."""
    error = MireError("one\n  two\t three\u2028four")
    assert error.message == str(error) == "one two three four"


def test_an_error_is_a_document() -> None:
    """`--json` shows kind, message, exit code and the things the error names, but not those that are unknown."""
    error = errors.NotFoundError("gone", kind="content_missing", path="/x", name=None, version=0)
    assert error.document() == {"kind": "content_missing", "message": "gone", "exit": 3, "path": "/x", "version": 0}
    assert errors.NotFoundError("gone").kind == "not_found"
    assert error.names == {"path": "/x", "name": None, "version": 0}


def test_a_remote_error_says_whether_to_try_again() -> None:
    """Failures of the world are permanent unless said otherwise."""
    assert RemoteError("x").transient is False
    assert RemoteError("x", transient=True, path="/x").transient is True
    assert "transient" not in RemoteError("x", transient=True).names
    assert errors.ThrottledError("x").transient is True


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "'plain'"),
        ("", "''"),
        ("it's", "'it's'"),
        ('say "x"', "'say \"x\"'"),
        ("a\nb\x1b\x7f\u2028", r"'a\nb\x1b\x7f\u2028'"),
        ("\ud800", r"'\ud800'"),
        ("é漢", "'é漢'"),
        (b"\xff", r"b'\xff'"),
        (7, "7"),
        (None, "None"),
        (["é"], "['é']"),
    ],
)
def test_values_are_shown_on_one_line(value: object, text: str) -> None:
    """A value in a message is quoted, and what cannot be printed is escaped."""
    assert shown(value) == text


@given(st.text() | st.binary() | st.lists(st.text()))
def test_whatever_is_shown_is_printable_and_short(value: Any) -> None:
    """No value breaks a line, draws on a terminal or fills a screen."""
    assert shown(value).isprintable()
    assert len(shown(value)) <= 120
