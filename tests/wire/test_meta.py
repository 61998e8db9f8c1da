"""The list of partitions: lossless, strict, sorted as the reference sorts."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexes import compact, members
from mire.errors import FormatError
from mire.model.index import Meta, Proof
from mire.testing.strategies import texts
from mire.wire.meta import decode_meta, encode_meta, sort_partitions

names = texts(min_size=1).filter(lambda name: "/" not in name and name != "_meta")
proofs = st.builds(
    Proof, monolith=st.none() | texts(), shards=st.dictionaries(texts(), texts(), max_size=2), extra=members()
)
metas = st.builds(
    Meta,
    version=st.just(1),
    partitions=st.lists(names, max_size=5).map(tuple),
    commit_seq=st.none() | st.integers(0, 2**53 - 1),
    proof=st.none() | proofs,
    extra=members(),
) | st.builds(
    Meta,
    version=st.just(2),
    partitions=st.lists(names, max_size=5).map(sort_partitions),
    commit_seq=st.integers(0, 2**53 - 1),
    proof=st.none() | proofs,
    extra=members(),
)


@given(metas)
def test_round_trip(meta: Meta) -> None:
    """Every member comes back, those of a newer writer and of a newer proof included, in the same bytes."""
    data = encode_meta(meta)
    decoded = decode_meta(data, "meta")
    assert decoded == meta
    assert encode_meta(decoded) == data


def test_members_stand_in_the_reference_order() -> None:
    """Old readers see what they know; the proof comes behind it."""
    proof = Proof(monolith='"etag"', extra={"xNew": 1})
    meta = Meta(version=2, partitions=("b", "a"), commit_seq=118, proof=proof, extra={"lastCompacted": "x"})
    assert encode_meta(meta) == (
        b'{"version":2,"partitions":["a","b"],"commitSeq":118,'
        b'"proof":{"monolith":"\\"etag\\"","xNew":1},"lastCompacted":"x"}'
    )
    assert encode_meta(Meta(version=1, partitions=("b", "a"))) == b'{"version":1,"partitions":["b","a"]}'


def test_names_are_sorted_by_code_units() -> None:
    """Characters above U+FFFF come before those from U+E000 on, as in ECMAScript; each name stands once."""
    assert sort_partitions(["\uffee", "\U0001f40a", "b", "B", "b"]) == ("B", "b", "\U0001f40a", "\uffee")


@pytest.mark.parametrize("proof", ["yes", 1, [], True, None])
def test_a_proof_of_another_kind_proves_nothing(proof: object) -> None:
    """What is no object is no proof, and no damage: old and new clients go on."""
    assert decode_meta(compact({"version": 1, "partitions": [], "proof": proof}), "meta").proof is None


def test_a_proof_of_something_else_survives() -> None:
    """Members of a newer proof are kept; without a fingerprint of the monolith nothing is proved."""
    meta = decode_meta(b'{"version":1,"partitions":[],"proof":{"monolith":7,"x":1}}', "meta")
    assert meta.proof == Proof(monolith=None, extra={"monolith": 7, "x": 1})
    assert encode_meta(meta) == b'{"version":1,"partitions":[],"proof":{"monolith":7,"x":1}}'


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "{}",
        '{"version":3,"partitions":[],"commitSeq":1}',
        '{"version":0,"partitions":[]}',
        '{"version":true,"partitions":[]}',
        '{"version":"2","partitions":[],"commitSeq":1}',
        '{"version":2,"partitions":[]}',
        '{"version":2,"partitions":[],"commitSeq":null}',
        '{"version":2,"partitions":[],"commitSeq":-1}',
        '{"version":2,"partitions":[],"commitSeq":1.5}',
        '{"version":2,"partitions":[],"commitSeq":9007199254740992}',
        '{"version":1}',
        '{"version":1,"partitions":{}}',
        '{"version":1,"partitions":[1]}',
        '{"version":1,"partitions":[""]}',
        '{"version":1,"partitions":["a/b"]}',
        '{"version":1,"partitions":["_meta"]}',
        '{"version":1,"partitions":[',
        json.dumps({"version": 1, "entries": {}}),
    ],
)
def test_what_is_not_understood_is_an_error(text: str) -> None:
    """Garbled, newer, or of another shape: never "no list", which would be overwritten."""
    with pytest.raises(FormatError, match=r"meta '_index/_meta\.json'"):
        decode_meta(text.encode(), "_index/_meta.json")


def test_bytes_that_are_no_text_are_an_error() -> None:
    """Not UTF-8 is said so."""
    with pytest.raises(FormatError, match="UTF-8"):
        decode_meta(b'{"version":1,"partitions":["\xff"]}', "meta")
