"""The body of a lock."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mire.model.instant import Instant, parse_instant
from mire.model.lease import TTL_MS, Lease
from mire.testing.strategies import instants, leases
from mire.wire.lockfile import decode_lease, encode_lease, lease_document, renewal_offset

GOLDEN = (Path(__file__).parent.parent / "golden" / "lock-body.json").read_bytes()


def body(**members: object) -> bytes:
    """A lock body with some members changed."""
    return json.dumps({**json.loads(GOLDEN), **members}).encode()


def test_the_reference_s_body_is_read_and_written_byte_for_byte() -> None:
    """A lock of the reference is understood, and encoding it gives the same bytes."""
    lease = decode_lease(GOLDEN)
    assert lease == Lease(
        holder="unknown@vm",
        hostname="vm",
        pid=8969,
        acquired_at=Instant("2026-11-15T06:25:31.959Z"),
        ttl_ms=30_000,
        nonce="24ee2216-846a-4824-832c-0687886850f7",
    )
    assert encode_lease(lease) == GOLDEN


@given(leases())
def test_a_lease_reads_back(lease: Lease) -> None:
    """Every lease survives its body, members of newer writers included."""
    assert decode_lease(encode_lease(lease)) == lease


def test_unknown_members_survive_in_place() -> None:
    """What a newer writer adds stands behind what we know, unchanged, null included."""
    lease = decode_lease(body(context={"job": "x"}, skipping=["n"], later=None))
    assert lease is not None
    assert lease.extra == {"context": {"job": "x"}, "skipping": ["n"], "later": None}
    assert list(json.loads(encode_lease(lease))) == [
        *("holder", "hostname", "pid", "acquiredAt", "ttlMs", "nonce"),
        *("context", "skipping", "later"),
    ]


def test_an_old_body_has_no_nonce() -> None:
    """A lock without a nonce is read, and written without one."""
    members = json.loads(GOLDEN)
    del members["nonce"]
    lease = decode_lease(json.dumps(members).encode())
    assert lease is not None
    assert lease.nonce is None
    assert json.loads(encode_lease(lease)) == lease_document(lease) == members


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b" \n",
        b"{",
        GOLDEN[:40],
        b"{}",
        b"[]",
        b"null",
        b"3",
        b'"x"',
        b"\xff\xfe",
        b'{"pid": 1, "ttlMs": 30000}',
        b'{"holder": 5}',
        b'{"holder": null, "nonce": ""}',
        b"[" * 100_000,
        b'{"holder": "x", "pid": ' + b"9" * 5000 + b"}",
    ],
    ids=lambda data: ascii(data)[:30],
)
def test_an_empty_or_garbled_body_names_nobody(data: bytes) -> None:
    """A body that names no holder is no lease; such a lock expires by its age."""
    assert decode_lease(data) is None


@given(
    st.binary() | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(lambda v: json.dumps(v).encode())
)
def test_any_bytes_are_a_lease_or_none(data: bytes) -> None:
    """No body makes a reader fail."""
    lease = decode_lease(data)
    assert lease is None or lease.ttl_ms > 0


@pytest.mark.parametrize("ttl", [None, 0, -1, 0.5, "30000", "x", True, [], 2**60, float("inf"), float("nan")])
def test_a_time_to_live_that_is_none_is_the_usual_one(ttl: object) -> None:
    """A lock whose time to live is missing, not a number or not above zero lives as long as any other."""
    lease = decode_lease(body(ttlMs=ttl))
    assert lease is not None
    assert lease.ttl_ms == TTL_MS


@pytest.mark.parametrize(("ttl", "read"), [(1, 1), (5000, 5000), (5000.0, 5000), (86_400_000, 86_400_000)])
def test_a_time_to_live_of_its_own_counts(ttl: object, read: int) -> None:
    """A lock may live longer or shorter than usual."""
    lease = decode_lease(body(ttlMs=ttl))
    assert lease is not None
    assert lease.ttl_ms == read


@pytest.mark.parametrize("bad", [None, 7, "", [], True])
def test_members_of_the_wrong_kind_say_nothing(bad: object) -> None:
    """A host, time or nonce that is no text counts as absent, and a pid that is no number as none."""
    lease = decode_lease(body(hostname=bad, acquiredAt=bad, nonce=bad, pid="x" if bad == 7 else bad))
    assert lease is not None
    assert (lease.hostname, lease.acquired_at, lease.nonce) == ("", "", None)
    assert lease.pid == 0


def test_a_nonce_alone_is_a_lease() -> None:
    """Who holds it is unknown, but it can be told from any other."""
    lease = decode_lease(b'{"nonce": "n-1"}')
    assert lease is not None
    assert (lease.holder, lease.nonce, lease.ttl_ms) == ("unknown", "n-1", TTL_MS)


@given(leases(), instants())
def test_renewing_changes_the_time_and_nothing_else(lease: Lease, now: Instant) -> None:
    """The offset points at the 24 bytes of the time, whatever the holder calls itself."""
    data = encode_lease(lease)
    offset = renewal_offset(data)
    assert data[offset : offset + 24].decode() == parse_instant(lease.acquired_at)
    renewed = decode_lease(data[:offset] + now.encode() + data[offset + 24 :])
    assert renewed == replace(lease, acquired_at=now)


def test_a_holder_cannot_move_the_offset() -> None:
    """A holder named like the member that follows does not mislead the renewal."""
    lease = decode_lease(body(holder='x", "acquiredAt": "2000-01-01T00:00:00.000Z'))
    assert lease is not None
    data = encode_lease(lease)
    assert data[renewal_offset(data) :].startswith(lease.acquired_at.encode())


def test_a_user_name_that_is_no_utf8_can_lock() -> None:
    """A name from the environment that cannot be encoded is replaced, not a reason to fail."""
    lease = decode_lease(GOLDEN)
    assert lease is not None
    assert json.loads(encode_lease(replace(lease, holder="d\udcffna@vm")))["holder"] == "d?na@vm"
