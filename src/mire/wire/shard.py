"""A shard `_index/<partition>.json`: the entries of one partition.

Owns: its key, and the text of a new one.
Must not know: which partitions are listed.
Keeps: an emptied shard is a text with no entries, never no text.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from mire.errors import shown
from mire.model.index import Entry
from mire.model.names import SOLO, Namespace, RelPath
from mire.wire.entry import encode_member
from mire.wire.indextext import IndexText, decode_index
from mire.wire.relpath import INDEX_DIR

SUFFIX: Final = ".json"


def shard_prefix(namespace: Namespace) -> str:
    """Below which key all shards are, and the list of them."""
    return f"{INDEX_DIR}/" if namespace == SOLO else f"{namespace}/{INDEX_DIR}/"


def shard_key(namespace: Namespace, partition: str) -> str:
    """Where a shard is kept; names are used as they are."""
    return f"{shard_prefix(namespace)}{partition}{SUFFIX}"


def decode_shard(data: bytes, key: str) -> IndexText:
    """The entries of a shard; a `FormatError` names the key when the text is none, cut off, or of a newer version."""
    return decode_index(data, f"shard {shown(key)}")


def encode_shard(entries: Mapping[RelPath, Entry]) -> bytes:
    """A new shard."""
    return _encode(encode_member(rel, entry) for rel, entry in entries.items())


def shard_of(index: IndexText, rels: Iterable[str]) -> bytes:
    """The shard that says of these paths what an index says."""
    return _encode(index.members(rels))


def _encode(members: Iterable[bytes]) -> bytes:
    return b"".join([b'{"version":1,"entries":{', b",".join(members), b"}}"])
