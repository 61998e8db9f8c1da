"""The journal of a migration between a namespace and the root of a store, a control record of the namespace.

Owns: its name and text.
Must not know: what is moved, when.
Keeps: a record that is not understood is an error: somebody is in the middle of something.

    {"direction": "forward", "objects": {"data/x/1/raw": "1768000000000 12 9a0364b9e99bb480dd25e1f0284c8555"}}

An object is told by its time in milliseconds, its size in bytes and its fingerprint.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from mire.wire.fields import Fields, one_of, text_map
from mire.wire.jsontext import decode_json, encode_compact

RECORD: Final = "mire/namespace-migration.json"
Direction = Literal["forward", "reverse"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Relocated:
    """A migration under way: which way, and which objects (as they were) leave their old place at its end."""

    direction: Direction
    objects: Mapping[str, str] = field(default_factory=dict)


def encode_relocated(journal: Relocated) -> bytes:
    """The record."""
    return encode_compact({"direction": journal.direction, "objects": dict(journal.objects)})


def decode_relocated(data: bytes) -> Relocated:
    """The migration that is under way."""
    what = f"migration record {RECORD}"
    fields = Fields(decode_json(data, what), what)
    direction = fields.take("direction", one_of("forward", "reverse"))
    objects = fields.take("objects", text_map)
    return Relocated(direction="forward" if direction == "forward" else "reverse", objects=objects)
