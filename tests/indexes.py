"""Indexes for property tests: names that look like JSON, entries of a newer writer, texts as clients write them."""

import json
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from mire.model.index import Entry
from mire.testing.strategies import instants, texts, unknown_members

Document = dict[str, dict[str, Any]]

TRAPS = (
    *(
        "",
        "a",
        "a/b",
        '"',
        '\\"',
        "\\",
        "\\\\",
        '":{"key":"',
        '"a":{"key":"a"',
        '},"a":{"key":"a"}',
        "},",
        ",",
        "{",
        ":",
    ),
    *("entries", "key", "version", "}}", '{"', '":{', "a}", "ä", "日本/語", "\U0001f40a", "\ud800", "\x7f", "\u2028"),
    *("data/x/y/z", "data/x/y/z/n/1/raw", "data/x--y/z/n/1/raw", "data/x/y--z/n/1/raw", "data/x-/-y/z/n/1/raw"),
    *("data/x/y/z/n/latest", "data//y/z/n/latest", "config/a", "_root/a", "_meta/a", "\n", "\x01/\b\f", "a\tb/\r"),
)
"""Names that a search which forgets about quotes, escapes or dashes would confuse."""

PAD = {"xPad": "-" * (1 << 16)}
"""A member that makes a text large enough to be searched, not mapped."""


def rels() -> SearchStrategy[str]:
    """Any names an index can have, lone surrogates included."""
    joined = st.lists(st.sampled_from(TRAPS) | st.text(max_size=6), min_size=1, max_size=5).map("/".join)
    return st.sampled_from(TRAPS) | joined


def entries() -> SearchStrategy[Entry]:
    """Entries as they are set, some of a newer writer."""
    return st.builds(
        Entry,
        size_bytes=st.integers(0, 2**53 - 1),
        last_modified=instants() | texts(),
        local_mtime=st.none() | instants(),
        sha256=st.none() | st.text("0123456789abcdef", min_size=64, max_size=64),
        extra=members() | st.builds(lambda key, rest: {"key": key, **rest}, rels(), members()),
    )


def members() -> SearchStrategy[dict[str, Any]]:
    """Members of a newer writer that JSON can hold."""
    return unknown_members().filter(lambda found: "Infinity" not in json.dumps(found))


def documents() -> SearchStrategy[Document]:
    """The entries of an index as plain data."""
    return st.dictionaries(rels(), entries(), max_size=12).map(
        lambda found: {rel: document_of(rel, entry) for rel, entry in found.items()}
    )


def document_of(rel: str, entry: Entry) -> dict[str, Any]:
    """An entry as plain data, in the order of the format."""
    optional = {"localMtime": entry.local_mtime, "sha256": entry.sha256}
    known = {"key": rel, "size": entry.size_bytes, "lastModified": entry.last_modified}
    return {**known, **{name: value for name, value in optional.items() if value is not None}, **entry.extra}


def usual(document: Document, **members: object) -> bytes:
    """The text every client writes; `members` stand before the entries."""
    return compact({"version": 1, **members, "entries": document})


def compact(value: object) -> bytes:
    """JSON without white space, as the format says it is written."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(errors="backslashreplace")


def parsed(data: bytes) -> Any:
    """What a JSON parser makes of a text, or None when it refuses it."""
    try:
        return json.loads(data.decode(), parse_constant=_refuse)
    except ValueError:
        return None


def _refuse(name: str) -> object:
    raise ValueError(name)
