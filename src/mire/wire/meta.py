"""The list of partitions, `_index/_meta.json`.

Owns: its key, members, order, and the extra member `proof` that says with which monolith the shards agree.
Must not know: when a proof is believed.
Keeps: a list that is not understood is an error, never "no list": it would be overwritten.
"""

from collections.abc import Iterable
from typing import Any, Final, Literal

from mire.errors import FormatError, InputError, shown
from mire.model.index import Meta, Proof
from mire.model.names import Namespace
from mire.wire.fields import Fields, present, sequence, whole
from mire.wire.jsontext import decode_json, encode_compact
from mire.wire.partition import META
from mire.wire.shard import shard_key

COMMIT_SEQ_MAX: Final = 2**53 - 1
"""The reference counts in IEEE doubles: above this adding one changes nothing."""


def meta_key(namespace: Namespace) -> str:
    """Where the list is kept."""
    return shard_key(namespace, META)


def decode_meta(data: bytes, key: str) -> Meta:
    """The list; a `FormatError` names the key when it is garbled or newer."""
    what = f"meta {shown(key)}"
    fields = Fields(decode_json(data, what), what)
    version = _version(fields, what)
    commit_seq = fields.take("commitSeq", _commit_seq) if version != 1 else fields.maybe("commitSeq", _commit_seq)
    return Meta(
        version=version,
        partitions=fields.take("partitions", _partitions),
        commit_seq=commit_seq,
        proof=fields.maybe("proof", _proof),
        extra=fields.rest(),
    )


def encode_meta(meta: Meta) -> bytes:
    """The list; that of version 2 is sorted, whatever order the partitions are in."""
    known = {
        "version": meta.version,
        "partitions": list(meta.partitions if meta.version == 1 else sort_partitions(meta.partitions)),
        "commitSeq": meta.commit_seq,
        "proof": None if meta.proof is None else _encode_proof(meta.proof),
    }
    return encode_compact({**present(known), **meta.extra})


def _encode_proof(proof: Proof) -> dict[str, Any]:
    known = {"monolith": proof.monolith, "shards": dict(proof.shards) or None}
    return {**present(known), **proof.extra}


def sort_partitions(names: Iterable[str]) -> tuple[str, ...]:
    """Each name once, sorted by UTF-16 code units, as the reference sorts."""
    return tuple(sorted(set(names), key=lambda name: name.encode("utf-16-be", "surrogatepass")))


def _version(fields: Fields, what: str) -> Literal[1, 2]:
    version = fields.take("version", whole)
    if version == 1:
        return 1
    if version == 2:  # noqa: PLR2004 - the second format
        return 2
    raise FormatError(f"{what} has the version {version}, this mire knows 1 and 2: upgrade mire")


def _commit_seq(value: object) -> int:
    if whole(value) > COMMIT_SEQ_MAX:
        raise InputError(f"{shown(value)} is above 2^53")
    return whole(value)


def _partitions(value: object) -> tuple[str, ...]:
    names = sequence(value)
    for name in names:
        if not isinstance(name, str) or not name or "/" in name or name == META:
            raise InputError(f"{shown(name)} is no name of a partition")
    return names


def _proof(value: object) -> Proof | None:
    # It is ours alone: what we do not understand proves nothing, and breaks nothing.
    if not isinstance(value, dict):
        return None
    rest: dict[str, Any] = dict(value)
    monolith = rest.pop("monolith") if isinstance(rest.get("monolith"), str) else None
    shards = rest.pop("shards") if _is_texts(rest.get("shards")) else {}
    return Proof(monolith=monolith, shards=shards, extra=rest)


def _is_texts(value: object) -> bool:
    return isinstance(value, dict) and bool(value) and all(isinstance(each, str) for each in value.values())
