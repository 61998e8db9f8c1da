"""The format marker of a datastore."""

import json

import pytest

from mire.errors import FormatError
from mire.wire.marker import BYTES_MAX, check_format


def marker(**members: object) -> bytes:
    """A marker with these members."""
    return json.dumps(members).encode()


@pytest.mark.parametrize(
    "data",
    [
        None,
        marker(format=2),
        marker(format=1),
        marker(format=2.0),
        marker(format=3, minReaderFormat=2),
        marker(format=9, minReaderFormat=1, writtenBy="x", unknown={}),
        marker(format=2, writtenBy=7),
        marker(format=2, pad="x" * 60_000),
        b' {"format": 2}\n',
    ],
    ids=lambda data: ascii(data)[:40],
)
def test_a_store_we_know_is_opened(data: bytes | None) -> None:
    """No marker means format 2, and what a reader must know decides, not what was written."""
    check_format(data)


@pytest.mark.parametrize(
    "data",
    [
        marker(format=3),
        marker(format=2, minReaderFormat=3),
        marker(format=7, minReaderFormat=7),
        marker(format=2**53 - 1),
    ],
)
def test_a_newer_store_is_refused(data: bytes) -> None:
    """A store that asks for more than we know is refused, with the advice to upgrade."""
    with pytest.raises(FormatError, match="upgrade mire; never delete the marker") as caught:
        check_format(data)
    assert caught.value.kind == "datastore_format_unsupported"
    assert caught.value.names["format"] == max(json.loads(data).values())


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"x",
        b"{",
        b"[]",
        b"2",
        b"null",
        b"\xff{}",
        b"[" * 60_000,
        b'{"format": ' + b"1" * 5000 + b"}",
        marker(),
        marker(format=None),
        marker(format="2"),
        marker(format=True),
        marker(format=1.5),
        marker(format=0),
        marker(format=-2),
        marker(format=2**53),
        marker(format=float("nan")),
        marker(format=float("inf")),
        marker(format=[2]),
        marker(format=2, minReaderFormat="2"),
        marker(format=2, minReaderFormat=True),
        marker(format=2, minReaderFormat=1.5),
        marker(format=2, minReaderFormat=0),
        marker(minReaderFormat=2),
        marker(format=2, pad="x" * BYTES_MAX),
    ],
    ids=lambda data: ascii(data)[:40],
)
def test_a_marker_that_cannot_be_understood_is_an_error(data: bytes) -> None:
    """Garbage, wrong types and oversize are refused; they never count as no marker."""
    with pytest.raises(FormatError, match="never delete it") as caught:
        check_format(data)
    assert caught.value.kind == "datastore_format_marker_invalid"
    assert caught.value.message.isprintable()


def test_the_limit_is_exact() -> None:
    """A marker of exactly the greatest size, which is part of the format, is read."""
    assert BYTES_MAX == 65_536
    data = marker(format=2)
    check_format(data + b" " * (BYTES_MAX - len(data)))
    with pytest.raises(FormatError, match="larger"):
        check_format(data + b" " * (BYTES_MAX - len(data) + 1))


def test_the_writer_is_shown_without_control_characters_and_cut() -> None:
    """`writtenBy` is text of a stranger: it cannot clear a screen, break the line or fill it."""
    with pytest.raises(FormatError) as caught:
        check_format(marker(format=3, writtenBy="\x1b[2J\r\nswamp\x00\x85 9\x9b" + "y" * 500))
    message = caught.value.message
    assert message.isprintable()
    assert "(written by '[2Jswamp 9" + "y" * (64 - len("[2Jswamp 9")) + "')" in message


def test_a_writer_that_is_no_text_is_not_shown() -> None:
    """A writer of another type is left out."""
    with pytest.raises(FormatError) as caught:
        check_format(marker(format=3, writtenBy=["x"]))
    assert "written by" not in caught.value.message
