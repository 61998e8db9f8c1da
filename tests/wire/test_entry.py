"""Entries: byte-exact, lossless, and a bad one spoils nothing but itself."""

import json
from dataclasses import replace

import pytest
from hypothesis import given

from indexes import entries, rels
from mire.model.index import Damaged, Entry
from mire.wire.entry import decode_member, encode_member
from mire.wire.indextext import decode_index

SHA = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
HEAD = b'"a/b":{"key":"a/b","size":4,"lastModified":"2026-03-04T05:06:06.950Z"'


@given(rels(), entries())
def test_round_trip(rel: str, entry: Entry) -> None:
    """Every member comes back, also another `key` and those of a newer writer, in the same bytes."""
    text = encode_member(rel, entry)
    decoded = decode_member(rel, text)
    assert isinstance(decoded, Entry)
    assert encode_member(rel, decoded) == text
    wanted = dict(entry.extra)
    if wanted.get("key") == rel:
        del wanted["key"]
    assert decoded == Entry(
        size_bytes=entry.size_bytes,
        last_modified=entry.last_modified,
        local_mtime=entry.local_mtime,
        sha256=entry.sha256,
        extra=wanted,
    )


@given(rels(), entries())
def test_an_entry_without_extras_is_written_like_any_other(rel: str, entry: Entry) -> None:
    """The short way for what is usual gives the bytes that encoding the whole document gives."""
    plain = replace(entry, extra={})
    assert encode_member(rel, replace(entry, extra={"x": 1})) == encode_member(rel, plain)[:-1] + b',"x":1}'


def test_members_stand_in_the_reference_order() -> None:
    """`key`, `size`, `lastModified`, `localMtime`, `sha256`, then what we do not know."""
    entry = Entry(size_bytes=4, last_modified="m", local_mtime="l", sha256=SHA, extra={"x": [1]})
    wanted = f'"ä":{{"key":"ä","size":4,"lastModified":"m","localMtime":"l","sha256":"{SHA}","x":[1]}}'
    assert encode_member("ä", entry) == wanted.encode()
    assert (
        encode_member("ä", Entry(size_bytes=0, last_modified="m"))
        == '"ä":{"key":"ä","size":0,"lastModified":"m"}'.encode()
    )


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (b'{"size":-1,"lastModified":""}', "size"),
        (b'{"size":9007199254740992,"lastModified":""}', "size"),
        (b'{"size":1e400,"lastModified":""}', "beyond"),
        (b'{"size":1.0,"lastModified":""}', "size"),
        (b'{"size":' + b"9" * 5000 + b',"lastModified":""}', "digits"),
        (b'{"size":true,"lastModified":""}', "size"),
        (b'{"size":"1","lastModified":""}', "size"),
        (b'{"size":null,"lastModified":""}', "size"),
        (b'{"lastModified":""}', "size"),
        (b'{"size":1}', "modification"),
        (b'{"size":1,"lastModified":7}', "modification"),
        (b'{"size":1,"lastModified":"","localMtime":7}', "local time"),
        (b'{"size":1,"lastModified":"","sha256":""}', "hash"),
        (b'{"size":1,"lastModified":"","sha256":"' + SHA.upper().encode() + b'"}', "hash"),
        (b'{"size":1,"lastModified":"","sha256":"' + SHA.encode() + b'0"}', "hash"),
        (b'{"size":1,"lastModified":"","sha256":7}', "hash"),
        (b"7", "object"),
        (b"[]", "object"),
        (b"null", "object"),
    ],
)
def test_one_bad_entry_spoils_nothing_else(text: bytes, word: str) -> None:
    """A bad entry says what is wrong with it; its neighbours are read, and it survives a change of them."""
    with_key = text.replace(b"{", b'{"key":"bad",', 1)
    for bad in (text, with_key):
        good = HEAD + b"}"
        index = decode_index(b'{"version":1,"entries":{"bad":' + bad + b"," + good + b"}}", "index")
        damaged = index["bad"]
        assert isinstance(damaged, Damaged)
        assert word in damaged.reason
        assert isinstance(index["a/b"], Entry)
        assert index.with_changes({}, ["a/b"]) == b'{"version":1,"entries":{"bad":' + bad + b"}}"


@pytest.mark.parametrize(
    "tail",
    [b',"sha256":"%b","localMtime":"x"}' % SHA.encode(), b',"size":4}', b',"localMtime":null}', b',"x":{"key":"a"}}'],
)
def test_unusual_entries_are_read(tail: bytes) -> None:
    """Other orders, members given twice, null and nested members are no damage."""
    entry = decode_member("a/b", HEAD + tail)
    assert isinstance(entry, Entry)
    assert entry.size_bytes == 4
    document = json.loads(b"{" + HEAD + tail + b"}")["a/b"]
    assert (entry.sha256, entry.local_mtime) == (document.get("sha256"), document.get("localMtime"))
    assert dict(entry.extra) == ({"x": document["x"]} if "x" in document else {})


def test_what_is_no_json_is_damage() -> None:
    """A text that is cut off decodes to what is wrong with it."""
    assert isinstance(decode_member("a/b", HEAD), Damaged)


def test_a_number_that_could_not_be_written_again_is_damage() -> None:
    """Also in a member we do not know: what is read can be written."""
    assert isinstance(decode_member("a/b", HEAD + b',"x":1e400}'), Damaged)
