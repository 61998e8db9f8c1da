"""The `.hold` file: what is read back is what was written, and damage is never "not held"."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mire.errors import FormatError
from mire.model.hold import Holds, NameHold
from mire.testing.strategies import instants, texts, unknown_members, versions
from mire.wire.hold import decode_holds, encode_holds

holds = st.builds(
    Holds,
    items=st.lists(
        st.builds(
            NameHold,
            version=st.none() | versions(),
            reason=st.none() | texts(min_size=1),
            by=texts(min_size=1),
            at=instants(),
            extra=unknown_members(),
        ),
        max_size=4,
        unique_by=lambda item: item.version,
    ).map(tuple),
    extra=unknown_members(),
)


@given(holds)
def test_round_trip(value: Holds) -> None:
    """Every member comes back, those of a newer writer included."""
    assert decode_holds(encode_holds(value)) == value


@given(holds, st.none() | versions())
def test_holding_and_releasing(value: Holds, version: int | None) -> None:
    """A new hold replaces the one of the same version and keeps the members it does not know."""
    new = NameHold(version=version, by="ada@host", at="2026-01-01T00:00:00.000Z")  # type: ignore[arg-type]
    before = value.of(version)
    held = value.with_hold(new)
    after = held.of(version)
    assert after is not None
    assert (after.by, dict(after.extra)) == ("ada@host", {} if before is None else dict(before.extra))
    assert held.without(version) == value.without(version)
    assert held.without(version).of(version) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "held",
        "[]",
        "{}",
        '{"holds": 1}',
        '{"holds": [1]}',
        '{"holds": [{}]}',
        '{"holds": [{"by": "a", "at": "yesterday"}]}',
        '{"holds": [{"by": "", "at": "2026-01-01T00:00:00.000Z"}]}',
        '{"holds": [{"by": "a", "at": "2026-01-01T00:00:00.000Z", "version": 0}]}',
        '{"holds": [{"by": "a", "at": "2026-01-01T00:00:00.000Z", "version": "3"}]}',
        json.dumps({"holds": [{"by": "a", "at": "2026-01-01T00:00:00.000Z"}] * 2}),
        "[" * 100_000,
        " " * (1 << 20) + "{}",
    ],
)
def test_damage_is_an_error(text: str) -> None:
    """A document that breaks the format raises, whatever it breaks."""
    with pytest.raises(FormatError):
        decode_holds(text.encode())
