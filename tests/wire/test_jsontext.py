"""JSON as the reference writes it, and strictly read."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mire.errors import FormatError
from mire.testing.strategies import documents
from mire.wire.jsontext import decode_json, encode_compact, encode_indented, scan_object, scan_value, squeezed

finite = documents().filter(lambda document: "Infinity" not in json.dumps(document))


@given(finite)
def test_round_trip(document: dict[str, object]) -> None:
    """Both spellings say the same, and white space is all that tells them apart."""
    assert decode_json(encode_compact(document), "x") == decode_json(encode_indented(document), "x") == document
    assert squeezed(encode_indented(document).decode()).encode() == encode_compact(document)


def test_text_is_spelled_as_in_ecmascript() -> None:
    """Non-ASCII stays raw, controls have their short or four-digit escapes, lone surrogates are escaped."""
    assert encode_compact("ä\U0001f40a\u2028/\x7f").decode() == '"ä\U0001f40a\u2028/\x7f"'
    assert encode_compact('"\\\b\f\n\r\t\x00\x1f') == rb'"\"\\\b\f\n\r\t\u0000\u001f"'
    assert encode_compact("a\ud800b") == rb'"a\ud800b"'
    assert decode_json(rb'"a\ud800b"', "x") == "a\ud800b"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [-float("inf")]])
def test_numbers_json_has_not_are_refused(value: object) -> None:
    """They are never written as words no other parser reads."""
    with pytest.raises(FormatError):
        encode_compact(value)


@pytest.mark.parametrize(
    "text", [b"", b"NaN", b"[Infinity]", b"-1e400", b"1" * 5000, b"{", b"1 2", b'"\n"', b"\xff", b"[" * 100_000]
)
def test_what_is_no_json_is_an_error(text: bytes) -> None:
    """The message names the document."""
    with pytest.raises(FormatError, match="the thing"):
        decode_json(text, "the thing")


@given(finite, st.sampled_from((None, 1)))
def test_walking_an_object_shows_its_members(document: dict[str, object], indent: int | None) -> None:
    """The walk shows the members a parser finds, in their order."""
    text = json.dumps(document, indent=indent)
    found = {}

    def member(name: str, at: int) -> int:
        found[name], end = scan_value(text, at)
        return end

    assert scan_object(text, "x", member) == len(text)
    assert list(found.items()) == list(document.items())


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"a"', '{"a":', '{"a":1', '{"a":1,', '{"a":1,}', "{1:2}", "{} {}", "{}x"]
)
def test_walking_something_else_is_an_error(text: str) -> None:
    """An object that is cut off, or goes on, is refused."""
    with pytest.raises(FormatError, match="the thing"):
        scan_object(text, "the thing", lambda _, at: scan_value(text, at)[1])
