"""The text of an index: whatever is found, changed or compared in it is what a JSON parser would find."""

import json
import pickle
import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from indexes import PAD, Document, compact, document_of, documents, entries, parsed, rels, usual
from mire.errors import FormatError
from mire.model.index import Damaged, Diff, Entry
from mire.wire.canonical import frame_of
from mire.wire.entry import decode_member
from mire.wire.indextext import IndexText, decode_index
from mire.wire.partition import partition_of

PADS = st.sampled_from(({}, PAD))
NESTED = {"xNested": {"a": {"key": "a", "deep": [{"b": {"key": "b"}}]}}}


def expected(document: Document) -> dict[str, Entry | Damaged]:
    """The entries of plain data, each decoded alone."""
    return {rel: decode_member(rel, compact(rel) + b":" + compact(entry)) for rel, entry in document.items()}


def has_surrogates(document: Document) -> bool:
    """Whether a name or a value has an escape that is searched for in vain."""
    return re.search("[\ud800-\udfff]", json.dumps(document, ensure_ascii=False)) is not None


def is_flat(document: Document) -> bool:
    """Whether entries have no lists or objects in them."""
    return not any(isinstance(value, (list, dict)) for entry in document.values() for value in entry.values())


@given(documents(), PADS, st.lists(rels(), max_size=4))
def test_entries_are_found_where_a_parser_finds_them(
    document: Document, pad: dict[str, str], others: list[str]
) -> None:
    """Every look-up agrees with the parsed text: by name and by end, by search, by map, and one after the other."""
    data = usual(document, **pad)
    wanted = expected(document)
    searched, mapped = decode_index(data, "index"), decode_index(data, "index")
    assert searched.data == data
    assert (frame_of(data) is not None) == (is_flat(document) and not has_surrogates(document))
    for rel in (*document, *others):
        assert searched.get(rel) == wanted.get(rel)
        assert (rel in searched) == (rel in wanted)
    assert dict(mapped.entries()) == dict(mapped) == wanted
    assert list(mapped) == list(wanted)
    assert (len(mapped), bool(mapped)) == (len(wanted), bool(wanted))
    for end in ("", "/", *(rel[len(rel) // 2 :] for rel in document)):
        by_text, by_map = decode_index(data, "index").ending(end), mapped.ending(end)
        assert list(by_text) == list(by_map) == [rel for rel in wanted if rel.endswith(end)]


@given(documents(), PADS, st.dictionaries(rels(), entries(), max_size=4), st.lists(rels(), max_size=3), st.data())
def test_changes_are_those_of_an_object(
    document: Document, pad: dict[str, str], upserts: dict[str, Entry], removals: list[str], data: st.DataObject
) -> None:
    """A changed text is the text of the changed object: entries keep their places, new ones come last."""
    if document:
        removals += data.draw(st.lists(st.sampled_from(sorted(document)), max_size=3))
        upserts |= data.draw(st.dictionaries(st.sampled_from(sorted(document)), entries(), max_size=3))
    index = decode_index(usual(document, lastPulled="then", **pad), "index")
    changed = index.with_changes(upserts, removals, last_pulled="now")
    wanted = {rel: entry for rel, entry in document.items() if rel not in removals or rel in upserts}
    wanted |= {rel: document_of(rel, entry) for rel, entry in upserts.items()}
    assert changed == usual(wanted, lastPulled="now", **pad)


@given(documents(), PADS, documents(), st.lists(rels(), max_size=3))
def test_differences_are_those_of_the_objects(
    document: Document, pad: dict[str, str], other: Document, dropped: list[str]
) -> None:
    """Whatever two indexes are, the difference is that of their objects."""
    newer = {rel: entry for rel, entry in {**document, **other}.items() if rel not in dropped}
    diff = decode_index(usual(document, **pad), "a").diff(decode_index(usual(newer, lastPulled="now", **pad), "b"))
    assert set(diff.added) == set(newer) - set(document)
    assert set(diff.removed) == set(document) - set(newer)
    both = set(document) & set(newer)
    assert set(diff.changed) == {rel for rel in both if compact(document[rel]) != compact(newer[rel])}


@given(documents(), st.randoms(use_true_random=False), st.integers(0, 3), st.integers(0, 80), st.integers(0, 80))
def test_differences_of_long_indexes(document: Document, random: object, changed: int, gone: int, new: int) -> None:
    """Entries changed, left out in runs, and appended are told apart among many that stay."""
    many = {f"data/a/b/{number}/n/1/raw": {"key": "", "size": number} for number in range(300)}
    start = random.randint(0, 299)
    older = {**many, **document}
    newer = {rel: entry for at, (rel, entry) in enumerate(older.items()) if not start <= at < start + gone}
    for rel in random.sample(sorted(newer), changed):
        newer[rel] = {"key": "", "size": 1000}
    newer |= {f"data/a/new/{number}/n/1/raw": {"key": "", "size": number} for number in range(new)}
    diff = decode_index(usual(older), "a").diff(decode_index(usual(newer), "b"))
    assert set(diff.added) == set(newer) - set(older)
    assert list(diff.removed) == [rel for rel in older if rel not in newer]
    assert set(diff.changed) == {rel for rel in newer if rel in older and newer[rel] != older[rel]}


def test_an_index_does_not_differ_from_itself() -> None:
    """No difference is false."""
    index = decode_index(usual({"a": {"key": "a", "size": 1}}), "index")
    assert index.diff(decode_index(usual({"a": {"key": "a", "size": 1}}, lastPulled="later"), "index")) == Diff()
    assert not Diff()
    assert Diff(removed=("a",))


@given(documents(), PADS, st.lists(rels(), min_size=1, max_size=5))
def test_partitions_are_those_of_the_names(document: Document, pad: dict[str, str], others: list[str]) -> None:
    """The paths of a partition are found by search and by map, also where names of directories run together."""
    data = usual(document, **pad)
    index = decode_index(data, "index")
    groups: dict[str | None, list[str]] = {}
    for rel in document:
        groups.setdefault(partition_of(rel), []).append(rel)
    for name in {*groups, *map(partition_of, others)} - {None}:
        found = index.of_partition(name)
        assert list(found) == groups.get(name, [])
        texts = [compact(rel) + b":" + compact(document[rel]) for rel in found]
        assert list(index.members(found)) == texts
    assert decode_index(data, "index").by_partition() == groups
    assert list(decode_index(data, "index").by_partition()) == list(groups)


@given(documents(), st.sampled_from((None, 2)), st.sampled_from(("raw", "ascii")), st.sampled_from(({}, NESTED)), PADS)
def test_other_spellings_say_the_same(
    document: Document, indent: int | None, escapes: str, nested: dict[str, object], pad: dict[str, str]
) -> None:
    """White space, escapes, other orders and nested members are read, and brought into the usual text."""
    whole = {"entries": document, **pad, **nested, "version": 1}
    data = json.dumps(whole, ensure_ascii=escapes == "ascii", indent=indent).encode(errors="backslashreplace")
    index = decode_index(data, "index")
    assert dict(index) == dict(index.entries()) == expected(document)
    wanted = usual(document, **pad, **nested)
    assert parsed(index.data) == parsed(index.with_changes({}, ())) == parsed(wanted)
    diff = index.diff(decode_index(wanted, "index"))
    assert (diff.added, diff.removed) == ((), ())
    assert escapes == "ascii" or index.data == wanted


@given(documents(), PADS, st.data())
def test_a_name_given_twice_counts_once(document: Document, pad: dict[str, str], data: st.DataObject) -> None:
    """The last one counts, as for every parser; taking it out takes out all."""
    assume(document and not has_surrogates(document))
    twice = data.draw(st.lists(st.sampled_from(sorted(document)), min_size=1, max_size=3))
    entry = {"key": "again", "size": 3, "lastModified": "", "x": 1}
    body = [compact(rel) + b":" + compact(value) for rel, value in document.items()]
    body += [compact(rel) + b":" + compact(entry) for rel in twice]
    text = usual({}, **pad)[:-2] + b",".join(body) + b"}}"
    wanted = document | dict.fromkeys(twice, entry)
    assert parsed(text)["entries"] == wanted
    for rel in wanted:
        assert decode_index(text, "index").get(rel) == expected(wanted)[rel]
    left = decode_index(text, "index").with_changes({}, twice[:1])
    assert twice[0] not in parsed(left)["entries"]
    own = partition_of(twice[0])
    if own is not None:
        assert sorted(decode_index(text, "index").of_partition(own)) == sorted(
            r for r in wanted if partition_of(r) == own
        )
    newer = usual({rel: value for rel, value in wanted.items() if rel != twice[0]}, **pad)
    assert decode_index(text, "index").diff(decode_index(newer, "index")).removed == (twice[0],)
    fewer = text.replace(b"," + compact(twice[-1]) + b":" + compact(entry), b"")
    assert twice[-1] not in decode_index(text, "index").diff(decode_index(fewer, "index")).removed


@given(documents(), st.integers(0, 10**6), st.sampled_from(("cut", "drop", "flip", "double")), st.integers(0, 255))
def test_damage_is_never_taken_for_an_index(document: Document, place: int, how: str, byte: int) -> None:
    """A damaged text is an error, or says what a parser says."""
    data = usual(document, lastPulled="2026-01-01T00:00:00.000Z")
    at = place % len(data)
    damaged = {
        "cut": data[:at],
        "drop": data[:at] + data[at + 1 :],
        "flip": data[:at] + bytes([byte]) + data[at + 1 :],
        "double": data[:at] + data[at:][:byte] + data[at:],
    }[how]
    meant = parsed(damaged)
    if frame_of(damaged) is not None:
        assert meant is not None
    try:
        index = decode_index(damaged, "shard 'x'")
    except FormatError as error:
        refused = error.message
        assert meant is None or meant.get("version") != 1 or not isinstance(meant.get("entries"), dict)
        assert "shard 'x'" in refused
    else:
        assert meant["version"] == 1
        assert dict(index) == expected(meant["entries"])


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b'"',
        b'{"version":1}',
        b'{"version":2,"entries":{}}',
        b'{"version":true,"entries":{}}',
        b'{"version":"1","entries":{}}',
        b'{"entries":{}}',
        b'{"version":1,"entries":[]}',
        b'{"version":1,"entries":null}',
        b'{"version":1,"entries":{},"entries":[]}',
        b'{"version":1,"entries":{}} {}',
        b'{"version":1,"entries":{"a":{"key":"a","size":NaN}}}',
        b'{"version":1,"entries":{"a":{"key":"a","size":01}}}',
        b'{"version":1,"entries":{"a":{"key":"a","size":1 2}}}',
        b'{"version":1,"entries":{"a":{"key":"a\n"}}}',
        b'{"version":1,"entries":{"\xff":{"key":"\xff"}}}',
        b'{"version":1,"entries":{"\xed\xa0\x80":{"key":""}}}',
        b'\xef\xbb\xbf{"version":1,"entries":{}}',
        b'{"version":1,"entries":{"a":{"key":"a"},}}',
        b'{"version":1,"entries":{"a":' + b"[" * 100_000,
    ],
)
def test_what_is_no_index_is_an_error(text: bytes) -> None:
    """Cut off, not UTF-8, of another version or shape: never an empty index."""
    with pytest.raises(FormatError, match="monolith 'x'"):
        decode_index(text, "monolith 'x'")


def test_the_first_entries_wins_nothing() -> None:
    """Of `entries` given twice the last one counts."""
    index = decode_index(b'{"version":1,"entries":{"a":{"key":"a"}},"entries":{"b":{"key":"b"}}}', "index")
    assert list(index) == ["b"]


def test_numbers_and_escapes_of_others_keep_their_spelling() -> None:
    """What a newer writer wrote stays as it is spelled, also when the text around it is rewritten."""
    text = b'{ "version": 1, "x": 1.50e3, "entries": { "a": { "key": "a", "x": [1E5, "\\u00e4 b"] } } }'
    changed = decode_index(text, "index").with_changes({}, ())
    assert changed == b'{"version":1,"x":1.50e3,"entries":{"a":{"key":"a","x":[1E5,"\\u00e4 b"]}}}'


def test_a_time_is_set_where_there_was_none() -> None:
    """Without a time, or with one of a wrong type, the new one stands behind the version."""
    wanted = b'{"version":1,"lastPulled":"now","entries":{}}'
    for text in (b'{"version":1,"entries":{}}', b'{"version":1,"lastPulled":7,"entries":{}}'):
        assert decode_index(text, "index").with_changes({}, last_pulled="now") == wanted


def test_names_given_twice_in_both_texts() -> None:
    """What is gone from one of two places is still there, and its neighbours are as they were."""
    one, two = b'{"key":"k","size":1}', b'{"key":"k","size":2,"x":"longer"}'
    head, more = b'{"version":1,"entries":{"a":' + one + b',"d":' + two + b',"d":' + one, b',"c":' + one + b"}}"
    diff = decode_index(head + b',"a":' + two + more, "index").diff(decode_index(head + more, "index"))
    assert diff == Diff(changed=("a",))


def test_many_changes_of_a_large_text() -> None:
    """More look-ups than a search is worth give the same text."""
    document = {f"data/a/b/{number}/n/1/raw": {"key": "k", "size": number} for number in range(40)}
    removals = list(document)[::2]
    changed = decode_index(usual(document, **PAD), "index").with_changes({}, removals)
    assert changed == usual({rel: entry for rel, entry in document.items() if rel not in removals}, **PAD)


def test_an_index_can_be_sent_to_another_process() -> None:
    """Jobs hand indexes to workers."""
    index = decode_index(usual({"a": {"key": "a", "size": 1, "lastModified": ""}}), "index")
    copy = pickle.loads(pickle.dumps(index))  # noqa: S301 - our own bytes
    assert isinstance(copy, IndexText)
    assert dict(copy) == dict(index)
