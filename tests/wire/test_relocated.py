"""The journal of a migration between a namespace and the root."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mire.errors import FormatError
from mire.wire.relocated import Relocated, decode_relocated, encode_relocated

TEXTS = st.text(max_size=20)


@given(objects=st.dictionaries(TEXTS, TEXTS), is_forward=st.booleans())
def test_a_journal_comes_back(objects: dict[str, str], *, is_forward: bool) -> None:
    """What is written is what is read."""
    journal = Relocated(direction="forward" if is_forward else "reverse", objects=objects)
    assert decode_relocated(encode_relocated(journal)) == journal


GARBAGE = [
    b"",
    b"[]",
    b'{"direction": "up", "objects": {}}',
    b'{"direction": "forward"}',
    b'{"direction": "forward", "objects": {"a": 1}}',
]


@pytest.mark.parametrize("data", GARBAGE)
def test_what_is_not_understood_is_an_error(data: bytes) -> None:
    """Somebody is in the middle of something: nobody begins anew."""
    with pytest.raises(FormatError):
        decode_relocated(data)
