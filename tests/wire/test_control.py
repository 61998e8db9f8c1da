"""Keys of control records."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mire.errors import InputError
from mire.model.names import SOLO, Namespace, parse_rel_path
from mire.wire.control import FORMAT_RECORD, control_key, control_prefix

GREEN = Namespace("green")


def test_keys_are_those_of_the_format() -> None:
    """Records are below `_control/`, those of a namespace below its own."""
    assert control_key(SOLO, FORMAT_RECORD) == "_control/datastore-format"
    assert control_key(GREEN, "heartbeats/web-1") == "green/_control/heartbeats/web-1"
    assert control_prefix(SOLO) == "_control/"
    assert control_prefix(GREEN, "claims") == control_prefix(GREEN, "claims/") == "green/_control/claims/"


BAD = ["", "/", "//", "/a", "a//b", "..", "a/../b", ".", "a/./b", "a\\b", "C:/x", "a\x00b", "a\nb", "\udcff", "é" * 451]


@pytest.mark.parametrize("key", [*BAD, "a/"])
def test_a_key_that_could_lead_elsewhere_is_refused(key: str) -> None:
    """No empty, '.' or '..' segment, no control character, nothing too long, nothing absolute."""
    with pytest.raises(InputError, match="control key") as caught:
        control_key(SOLO, key)
    assert caught.value.kind == "bad_key"
    assert caught.value.message.isprintable()


@pytest.mark.parametrize("prefix", [each for each in BAD if each])
def test_a_prefix_that_could_lead_elsewhere_is_refused(prefix: str) -> None:
    """What is no key is no prefix either."""
    with pytest.raises(InputError, match="control key"):
        control_prefix(SOLO, prefix)


@given(st.text(max_size=30), st.sampled_from([SOLO, GREEN]))
def test_every_accepted_key_stays_below_control(key: str, namespace: Namespace) -> None:
    """A key is refused, or is the end of a clean path below the namespace's `_control/`."""
    try:
        full = control_key(namespace, key)
    except InputError:
        return
    assert full == control_prefix(namespace) + key
    assert parse_rel_path(full) == full
