"""The monolith `.datastore-index.json`: the whole index in one object.

Owns: its key, and the text of a new one.
Must not know: when it is the truth and when a copy.
Keeps: what is written is what every client ever released reads.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from mire.errors import shown
from mire.model.index import Entry
from mire.model.instant import Instant
from mire.model.names import SOLO, Namespace, RelPath
from mire.wire.entry import encode_member
from mire.wire.indextext import IndexText, decode_index
from mire.wire.jsontext import encode_compact

MONOLITH: Final = ".datastore-index.json"


def monolith_key(namespace: Namespace) -> str:
    """Where the monolith is kept."""
    return MONOLITH if namespace == SOLO else f"{namespace}/{MONOLITH}"


def decode_monolith(data: bytes, key: str = MONOLITH) -> IndexText:
    """The index; a `FormatError` names the key when the text is none, cut off, or of a newer version."""
    return decode_index(data, f"monolith {shown(key)}")


def encode_monolith(entries: Mapping[RelPath, Entry], last_pulled: Instant) -> bytes:
    """A new monolith."""
    return _encode([encode_member(rel, entry) for rel, entry in entries.items()], last_pulled)


def monolith_of(shards: Sequence[IndexText], last_pulled: Instant) -> bytes:
    """The monolith that says what the shards say; of a path that is in several the last one counts."""
    last = {rel: number for number, shard in enumerate(shards) for rel in shard}
    members = [
        member
        for number, shard in enumerate(shards)
        for member in shard.members(rel for rel in shard if last[rel] == number)
    ]
    return _encode(members, last_pulled)


def _encode(members: Sequence[bytes], last_pulled: Instant) -> bytes:
    head = b'{"version":1,"lastPulled":' + encode_compact(last_pulled) + b',"entries":{'
    return b"".join([head, b",".join(members), b"}}"])
