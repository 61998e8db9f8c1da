"""The two small text files of a name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mire.model.artifact import Highest, NameState
from mire.model.names import VERSION_MAX
from mire.testing.strategies import name_states, versions
from mire.wire.latest import decode_highest, decode_latest, encode_highest, encode_latest


@pytest.mark.parametrize(
    ("data", "number"),
    [
        (b"3", 3),
        (b"3\n", 3),
        (b" 3 ", 3),
        (b"\t\r\n12\r\n", 12),
        (b"3/", 3),
        (b"3abc", 3),
        (b"+3", 3),
        (b"007", 7),
        (b"0" * 40 + b"7", 7),
        (str(VERSION_MAX).encode(), VERSION_MAX),
        (b"", None),
        (b" ", None),
        (b"0", None),
        (b"-3", None),
        (b"latest", None),
        (b"v3", None),
        (b"\xff\xfe", None),
        ("٣".encode(), None),
        (str(VERSION_MAX + 1).encode(), None),
        (b"9999999999999999", None),
        (b"12345678901234567", None),
        (b"9" * 5000, None),
    ],
    ids=lambda value: ascii(value)[:30],
)
def test_a_marker_names_a_version_or_none(data: bytes, number: int | None) -> None:
    """White space and the slash of a legacy link are ignored; what names no possible version names none."""
    assert decode_latest(data) == number


def test_a_marker_is_the_number_and_nothing_else() -> None:
    """The reference's marker has no newline."""
    assert encode_latest(12) == b"12"


@given(versions())
def test_a_marker_reads_back(version: int) -> None:
    """Every version survives its marker."""
    assert decode_latest(encode_latest(version)) == version


@pytest.mark.parametrize(
    ("highest", "data"),
    [
        (Highest(number=5), b"5"),
        (Highest(number=5, floor=5), b"5 all 5"),
        (Highest(number=7, floor=5), b"7 all 5"),
        (Highest(number=VERSION_MAX), b"9007199254740991"),
    ],
)
def test_the_high_water_mark_is_short_text(highest: Highest, data: bytes) -> None:
    """The mark is the number, and `all N` where everything up to N was deleted; a newline does no harm."""
    assert encode_highest(highest) == data
    assert decode_highest(data) == decode_highest(data + b"\n") == highest


@given(name_states())
def test_the_high_water_mark_reads_back(state: NameState) -> None:
    """Every mark survives its text."""
    assert decode_highest(encode_highest(state.highest)) == state.highest


@pytest.mark.parametrize(
    "data", [b"", b"x", b"-5", b"5 all", b"5 all x", b"5 all 6", b"5 6", b" 5", b"\xff", b"9999999999999999", b"5" * 17]
)
def test_a_damaged_mark_is_none(data: bytes) -> None:
    """What cannot be a mark says nothing: the directories still speak for themselves."""
    assert decode_highest(data) == Highest(number=0)


@given(st.binary(max_size=64))
def test_any_bytes_are_some_mark(data: bytes) -> None:
    """No content of the two files can make a look into the directory fail, or give a number there cannot be."""
    assert 0 < (decode_latest(data) or 1) <= VERSION_MAX
    highest = decode_highest(data)
    assert 0 <= highest.floor <= highest.number <= VERSION_MAX
