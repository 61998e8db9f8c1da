"""The manifest of a namespace: byte-exact, and damage is never "not registered"."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexes import members
from mire.errors import FormatError
from mire.model.manifest import Manifest
from mire.model.names import Namespace
from mire.testing.strategies import instants, texts
from mire.wire.manifest import decode_manifest, encode_manifest, encode_manifest_file, manifest_key

GOLDEN = Path(__file__).parent.parent / "golden" / "namespaced" / "bucket" / "swamp"
WHOLE = {"namespace": "green", "repoId": "r", "registeredAt": "2026-01-01T00:00:00.000Z"}

manifests = st.builds(
    Manifest,
    namespace=texts(min_size=1),
    repo_id=texts(min_size=1),
    registered_at=instants(),
    extra=members(),
)


def test_the_manifest_of_the_reference_comes_back() -> None:
    """It is read, and written again in the same bytes."""
    key = manifest_key(Namespace("team-a"))
    data = (GOLDEN / key).read_bytes()
    manifest = decode_manifest(data, key)
    assert (manifest.namespace, manifest.repo_id) == ("team-a", "11111111-2222-4333-8444-555555555555")
    assert encode_manifest(manifest) == data
    assert encode_manifest_file(manifest) == data + b"\n"


@given(manifests)
def test_round_trip(manifest: Manifest) -> None:
    """Every member comes back from the object and from the file, those of a newer writer included."""
    assert decode_manifest(encode_manifest(manifest), "x") == manifest
    assert decode_manifest(encode_manifest_file(manifest), "x") == manifest


@pytest.mark.parametrize(
    "document",
    [
        [],
        None,
        {},
        {**WHOLE, "namespace": None},
        {**WHOLE, "repoId": ""},
        {**WHOLE, "repoId": 7},
        {**WHOLE, "registeredAt": 7},
    ],
)
def test_damage_is_an_error(document: object) -> None:
    """A manifest that is not understood names its key."""
    with pytest.raises(FormatError, match="green/x"):
        decode_manifest(json.dumps(document).encode(), "green/x")
    with pytest.raises(FormatError, match="green/x"):
        decode_manifest(json.dumps(document).encode()[:-1], "green/x")
