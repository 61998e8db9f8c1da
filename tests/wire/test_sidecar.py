"""The sidecar: byte-exact as the reference writes it, lossless, and damage is "no sidecar"."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexes import members
from mire.model.state import ETAG, GENERATION, Sidecar
from mire.testing.strategies import texts
from mire.wire.sidecar import decode_sidecar, encode_sidecar

GOLDEN = Path(__file__).parent.parent / "golden"
FILES = sorted((*GOLDEN.rglob(".datastore-sync-state.json"), *(GOLDEN / "sidecars").glob("*.json")))
KINDS = st.sampled_from((ETAG, GENERATION))
WHOLE = {
    "version": 2,
    "remoteIndexETag": "",
    "lastVerifiedAt": "",
    "localDirty": True,
    "dirtyPaths": ["data/a"],
    "bulkInvalidated": False,
    "lazyPullActive": False,
}

sidecars = st.builds(
    Sidecar,
    version=st.just(1),
    kind=KINDS,
    fingerprint=texts(),
    last_verified_at=texts(),
    local_dirty=st.booleans(),
    extra=members(),
) | st.builds(
    Sidecar,
    version=st.just(2),
    kind=KINDS,
    fingerprint=texts(),
    last_verified_at=texts(),
    local_dirty=st.booleans(),
    dirty_paths=st.lists(texts(), max_size=4).map(tuple),
    bulk_invalidated=st.booleans(),
    lazy_pull_active=st.booleans(),
    dirty_paths_overflowed=st.none() | st.booleans(),
    last_catalog_hash=st.none() | texts(),
    data_key_migrated=st.none() | st.booleans(),
    control_plane_keys_migrated=st.none() | st.booleans(),
    commit_seq=st.none() | st.integers(0, 2**53 - 1),
    extra=members(),
)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(GOLDEN)))
def test_sidecars_of_the_reference_come_back(path: Path) -> None:
    """Every one is read, and written again in the same bytes."""
    data = path.read_bytes()
    sidecar = decode_sidecar(data)
    assert sidecar is not None
    document = json.loads(data)
    assert (sidecar.kind, sidecar.fingerprint) == (ETAG, document["remoteIndexETag"])
    assert (sidecar.local_dirty, list(sidecar.dirty_paths)) == (document["localDirty"], document["dirtyPaths"])
    assert (sidecar.lazy_pull_active, sidecar.bulk_invalidated) == (
        document["lazyPullActive"],
        document["bulkInvalidated"],
    )
    assert not sidecar.extra
    assert encode_sidecar(sidecar) == data


def test_there_are_golden_sidecars() -> None:
    """The marks, and the state after a push, a full pull, a lazy pull and a catalog export."""
    assert len(FILES) >= 15


@given(sidecars)
def test_round_trip(sidecar: Sidecar) -> None:
    """Every member comes back, both spellings of the fingerprint and those of a newer writer included."""
    assert decode_sidecar(encode_sidecar(sidecar)) == sidecar


def test_members_stand_in_the_reference_order() -> None:
    """Optional members follow the sample of the format; the counter is last."""
    sidecar = Sidecar(
        kind=GENERATION,
        fingerprint="17",
        dirty_paths=("team-a/data/ä",),
        dirty_paths_overflowed=False,
        last_catalog_hash="ff",
        data_key_migrated=True,
        control_plane_keys_migrated=True,
        commit_seq=7,
    )
    assert list(json.loads(encode_sidecar(sidecar))) == [
        *("version", "remoteIndexGeneration", "lastVerifiedAt", "localDirty", "dirtyPaths", "bulkInvalidated"),
        *("lazyPullActive", "dirtyPathsOverflowed", "lastCatalogHash", "dataKeyMigrated", "controlPlaneKeysMigrated"),
        "commitSeq",
    ]
    assert '    "team-a/data/ä"\n' in encode_sidecar(sidecar).decode()


def test_the_first_version_knows_no_paths() -> None:
    """A dirty sidecar of version 1 says only that something is dirty, and is written as it was."""
    document = {"version": 1, "remoteIndexETag": "e", "lastVerifiedAt": "", "localDirty": True}
    data = json.dumps(document, indent=2).encode()
    sidecar = decode_sidecar(data)
    assert sidecar == Sidecar(version=1, kind=ETAG, fingerprint="e", local_dirty=True)
    assert encode_sidecar(sidecar) == data


@pytest.mark.parametrize("missing", ["version", "remoteIndexETag", "lastVerifiedAt", "localDirty", "dirtyPaths"])
def test_a_sidecar_that_lacks_a_member_is_none(missing: str) -> None:
    """What every sidecar has must be there."""
    assert decode_sidecar(json.dumps(WHOLE).encode()) is not None
    assert decode_sidecar(json.dumps({k: v for k, v in WHOLE.items() if k != missing}).encode()) is None


@pytest.mark.parametrize(
    ("member", "value"),
    [
        *(("version", value) for value in (0, 3, "2", True, None)),
        *(("remoteIndexETag", value) for value in (1, None, [])),
        *(("lastVerifiedAt", value) for value in (1, None)),
        *(("localDirty", value) for value in (1, "true", None)),
        *(("dirtyPaths", value) for value in (None, "a", [1], {})),
        *(("bulkInvalidated", value) for value in (0, None)),
        *((name, "yes") for name in ("lazyPullActive", "dirtyPathsOverflowed", "dataKeyMigrated")),
        *(("commitSeq", value) for value in (-1, 1.5, "1")),
        ("lastCatalogHash", 7),
    ],
)
def test_a_member_of_a_wrong_type_makes_it_none(member: str, value: object) -> None:
    """A sidecar that is partly understood is not trusted at all: the cache is walked."""
    assert decode_sidecar(json.dumps({**WHOLE, member: value}).encode()) is None


@given(st.binary(max_size=60) | st.just(b"[" * 100_000) | sidecars.map(encode_sidecar).map(lambda data: data[:-2]))
def test_damage_is_no_sidecar(data: bytes) -> None:
    """Whatever the bytes are, nothing is raised."""
    assert decode_sidecar(data) is None
