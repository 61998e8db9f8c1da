"""What format markers allow."""

import pytest

from mire.errors import DeniedError, FormatError, RemoteError
from mire.plan.marker import Look, writing_ban

OLD, NEW, GARBLED = b'{"format": 2}', b'{"format": 3}', b"{"


@pytest.mark.parametrize(("datastore", "namespace"), [(None, None), (OLD, None), (None, OLD), (OLD, OLD)])
def test_no_marker_or_one_we_know_allows_everything(datastore: Look, namespace: Look) -> None:
    """A store without a marker has our format."""
    assert writing_ban(datastore, namespace) is None


@pytest.mark.parametrize(
    ("data", "kind"), [(NEW, "datastore_format_unsupported"), (GARBLED, "datastore_format_marker_invalid")]
)
def test_a_newer_or_garbled_marker_refuses_the_datastore(data: bytes, kind: str) -> None:
    """At the root of the datastore it forbids reading too."""
    with pytest.raises(FormatError) as caught:
        writing_ban(data, None)
    assert caught.value.kind == kind


@pytest.mark.parametrize("data", [NEW, GARBLED])
def test_a_marker_moved_into_the_namespace_forbids_writing_x9(data: bytes) -> None:
    """X9: an old program may have moved the marker; others still read there, but we write nothing."""
    reason = writing_ban(None, data)
    assert reason is not None
    assert "nothing is written" in reason


@pytest.mark.parametrize("error", [RemoteError("timed out"), DeniedError("no right")])
def test_a_marker_nobody_could_read_forbids_writing(error: RemoteError) -> None:
    """Not knowing is not the same as no marker."""
    for looks in ((error, None), (None, error), (error, NEW)):
        reason = writing_ban(*looks)
        assert reason is not None
        assert error.message in reason
