"""The sidecar `.datastore-sync-state.json`: what a cache knows about itself, shared by all clients of the cache.

Owns: its members, their order, and both spellings of the fingerprint.
Must not know: what a mark leads to, when a fast path may be taken.
Keeps: a sidecar that is not understood is none, which costs a full walk and never a change; unknown members survive.
"""

from typing import Any, Final, Literal

from mire.errors import FormatError, InputError, shown
from mire.model.state import ETAG, GENERATION, FingerprintKind, Sidecar
from mire.wire.fields import Fields, flag, present, sequence, whole
from mire.wire.jsontext import decode_json, encode_indented

SIDECAR: Final = ".datastore-sync-state.json"
PATHS_MAX: Final = 200
"""Above so many paths the reference (until 2026.09) goes over to `bulkInvalidated`."""

_SPELLINGS: Final[dict[str, FingerprintKind]] = {"remoteIndexETag": ETAG, "remoteIndexGeneration": GENERATION}


def decode_sidecar(data: bytes) -> Sidecar | None:
    """The sidecar, or None when the bytes are none: cut off, of another version, a member of a wrong type."""
    try:
        return _decode(Fields(decode_json(data, SIDECAR), SIDECAR))
    except FormatError:
        # The rule of the format: the cache is then walked in full, and the file written again.
        return None


def _decode(fields: Fields) -> Sidecar:
    version = _version(fields)
    kind, fingerprint = _fingerprint(fields)
    last_verified_at, local_dirty = fields.take("lastVerifiedAt", _text), fields.take("localDirty", flag)
    if version == 1:
        return Sidecar(
            version=1,
            kind=kind,
            fingerprint=fingerprint,
            last_verified_at=last_verified_at,
            local_dirty=local_dirty,
            extra=fields.rest(),
        )
    return Sidecar(
        version=2,
        kind=kind,
        fingerprint=fingerprint,
        last_verified_at=last_verified_at,
        local_dirty=local_dirty,
        dirty_paths=fields.take("dirtyPaths", _texts),
        bulk_invalidated=fields.take("bulkInvalidated", flag),
        lazy_pull_active=fields.maybe("lazyPullActive", flag) or False,
        dirty_paths_overflowed=fields.maybe("dirtyPathsOverflowed", flag),
        last_catalog_hash=fields.maybe("lastCatalogHash", _text),
        data_key_migrated=fields.maybe("dataKeyMigrated", flag),
        control_plane_keys_migrated=fields.maybe("controlPlaneKeysMigrated", flag),
        commit_seq=fields.maybe("commitSeq", whole),
        extra=fields.rest(),
    )


def encode_sidecar(sidecar: Sidecar) -> bytes:
    """The text: two-space indent, no newline, members in the reference's order, absent ones left out."""
    spelling = next(name for name, kind in _SPELLINGS.items() if kind == sidecar.kind)
    known: dict[str, Any] = {
        "version": sidecar.version,
        spelling: sidecar.fingerprint,
        "lastVerifiedAt": sidecar.last_verified_at,
        "localDirty": sidecar.local_dirty,
    }
    if sidecar.version != 1:
        known |= {
            "dirtyPaths": list(sidecar.dirty_paths),
            "bulkInvalidated": sidecar.bulk_invalidated,
            "lazyPullActive": sidecar.lazy_pull_active,
            "dirtyPathsOverflowed": sidecar.dirty_paths_overflowed,
            "lastCatalogHash": sidecar.last_catalog_hash,
            "dataKeyMigrated": sidecar.data_key_migrated,
            "controlPlaneKeysMigrated": sidecar.control_plane_keys_migrated,
            "commitSeq": sidecar.commit_seq,
        }
    return encode_indented({**present(known), **sidecar.extra})


def _version(fields: Fields) -> Literal[1, 2]:
    version = fields.take("version", whole)
    if version == 1:
        return 1
    if version == 2:  # noqa: PLR2004 - the second format
        return 2
    raise FormatError(f"{SIDECAR} has the version {version}")


def _fingerprint(fields: Fields) -> tuple[FingerprintKind, str]:
    for spelling, kind in _SPELLINGS.items():
        fingerprint = fields.maybe(spelling, _text)
        if fingerprint is not None:
            return kind, fingerprint
    raise FormatError(f"{SIDECAR} lacks a fingerprint")


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise InputError(f"{shown(value)} is not a text")
    return value


def _texts(value: object) -> tuple[str, ...]:
    return tuple(map(_text, sequence(value)))
