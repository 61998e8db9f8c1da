"""Judgements about locks: stale, inherited, how long to wait, what to say."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mire.model.instant import Instant
from mire.model.lease import TTL_MS, Ancestry, Host, Lease, LockKey, Sighting
from mire.plan.lock import (
    GLOBAL_BACKOFF_MS,
    MODEL_BACKOFF_MS,
    ancestry_environ,
    is_expired,
    is_inherited,
    is_overdue,
    is_surely_ours,
    parse_ancestry,
    pause_ms,
    pid_to_probe,
    timeout_error,
)
from mire.testing.strategies import leases, uuids

HERE = Host(hostname="build-7", pid=100, user="dana")
LEASE = Lease(
    holder="erin@build-7",
    hostname="build-7",
    pid=200,
    acquired_at=Instant("2026-05-02T08:00:00.000Z"),
    ttl_ms=30_000,
    nonce="n-1",
)
KEY = LockKey("data/docker/x/.lock")


def seen(lease: Lease | None = LEASE, age_ms: int = 0) -> Sighting:
    """A lock as found."""
    return Sighting(lease=lease, age_ms=age_ms)


@pytest.mark.parametrize(
    ("sighting", "expired"),
    [
        (seen(age_ms=0), False),
        (seen(age_ms=30_000), False),
        (seen(age_ms=30_001), True),
        (seen(replace(LEASE, ttl_ms=50), age_ms=51), True),
        (seen(replace(LEASE, ttl_ms=86_400_000), age_ms=30_001), False),
        (seen(None, age_ms=TTL_MS), False),
        (seen(None, age_ms=TTL_MS + 1), True),
        (seen(age_ms=-5_000), False),
    ],
)
def test_a_lock_expires_when_nobody_renewed_it(sighting: Sighting, expired: bool) -> None:  # noqa: FBT001 - a table
    """A lock lives as long as its body says, and one that says nothing as long as any other."""
    assert is_expired(sighting) is expired


@given(leases(), st.integers(0, 10**10), st.text())
def test_the_clock_of_a_holder_is_not_believed(lease: Lease, age_ms: int, written: str) -> None:
    """What a body says about its time does not count: only the age by the store's clock does."""
    lied = replace(lease, acquired_at=Instant(written))
    assert is_expired(seen(lied, age_ms)) is is_expired(seen(lease, age_ms))
    assert is_expired(seen(lease, age_ms)) is (abs(age_ms) > min(lease.ttl_ms, 600_000))


@pytest.mark.parametrize(
    ("since_ms", "ttl_ms", "sure", "overdue"),
    [
        (0, 30_000, True, False),
        (15_000, 30_000, True, False),
        (15_001, 30_000, False, False),
        (30_000, 30_000, False, False),
        (30_001, 30_000, False, True),
        (300_001, 10**9, False, False),
        (600_001, 10**9, False, True),
        (-5, 1, True, False),
    ],
)
def test_a_holder_is_sure_for_half_the_time_to_live(
    since_ms: float,
    ttl_ms: int,
    sure: bool,  # noqa: FBT001 - a table
    overdue: bool,  # noqa: FBT001 - a table
) -> None:
    """Within half of it nobody need be asked; beyond it, or beyond what others respect, the lock may be gone."""
    assert is_surely_ours(since_ms, ttl_ms) is sure
    assert is_overdue(since_ms, ttl_ms) is overdue


@given(leases(), st.integers(0, 10**7))
def test_nobody_takes_a_lock_its_holder_is_sure_of(lease: Lease, age_ms: int) -> None:
    """While a holder relies on its lock without asking, others do not find it expired."""
    if is_surely_ours(age_ms, lease.ttl_ms):
        assert not is_expired(seen(lease, age_ms))
    assert is_overdue(age_ms, lease.ttl_ms) is is_expired(seen(lease, age_ms))


def test_a_pid_counts_only_where_it_was_given() -> None:
    """Containers may share a hostname and count pids each for themselves; our nonces tell, others' do not."""
    here = replace(HERE, space="0000abcd")
    ours, theirs = (f"11111111-2222-8333-8444-5555{space}" for space in ("0000abcd", "0000ffff"))
    assert pid_to_probe(seen(replace(LEASE, nonce=ours)), here) == LEASE.pid
    assert pid_to_probe(seen(replace(LEASE, nonce=theirs)), here) is None
    for nonce in (None, "n-1", "11111111-2222-4333-8444-55550000ffff"):
        assert pid_to_probe(seen(replace(LEASE, nonce=nonce)), here) == LEASE.pid


@pytest.mark.parametrize(
    ("sighting", "pid"),
    [
        (seen(), 200),
        (seen(replace(LEASE, hostname="build-8")), None),
        (seen(replace(LEASE, hostname="")), None),
        (seen(replace(LEASE, pid=HERE.pid)), None),
        (seen(replace(LEASE, pid=0)), None),
        (seen(None), None),
    ],
)
def test_a_pid_means_something_on_its_own_host_only(sighting: Sighting, pid: int | None) -> None:
    """The process to ask about is that of another holder on this host; elsewhere only age tells."""
    assert pid_to_probe(sighting, HERE) == pid


@pytest.mark.parametrize(
    ("sighting", "ancestry", "inherited"),
    [
        (seen(), Ancestry(), False),
        (seen(), Ancestry(pids=frozenset({200})), True),
        (seen(), Ancestry(pids=frozenset({201})), False),
        (seen(replace(LEASE, hostname="build-8")), Ancestry(pids=frozenset({200})), False),
        (seen(), Ancestry(nonces=frozenset({"n-1"})), True),
        (seen(replace(LEASE, hostname="build-8")), Ancestry(nonces=frozenset({"n-1"})), True),
        (seen(replace(LEASE, nonce=None)), Ancestry(nonces=frozenset({"n-1"})), False),
        (seen(replace(LEASE, pid=0, nonce=None)), Ancestry(pids=frozenset({200})), False),
        (seen(None), Ancestry(pids=frozenset({200}), nonces=frozenset({"n-1"})), False),
    ],
)
def test_a_lock_of_an_ancestor_is_inherited(
    sighting: Sighting,
    ancestry: Ancestry,
    inherited: bool,  # noqa: FBT001 - a table
) -> None:
    """A lock is inherited by its nonce anywhere, or by its pid on this host."""
    assert is_inherited(sighting, ancestry, HERE) is inherited


@pytest.mark.parametrize(
    ("environ", "pids", "nonces"),
    [
        ({}, set(), set()),
        ({"SWAMP_LOCK_HOLDER_PID": "7"}, {7}, set()),
        ({"SWAMP_LOCK_HOLDER_PID": " 7 "}, {7}, set()),
        ({"SWAMP_LOCK_ANCESTOR_PIDS": "7,8, 9"}, {7, 8, 9}, set()),
        ({"SWAMP_LOCK_HOLDER_TOKENS": "7:a+b,8:c"}, {7, 8}, {"a", "b", "c"}),
        ({"SWAMP_LOCK_HOLDER_TOKENS": "7:,8:+c+"}, {7, 8}, {"c"}),
        ({"SWAMP_LOCK_HOLDER_PID": "100", "SWAMP_LOCK_ANCESTOR_PIDS": "100,7"}, {7}, set()),
        ({"SWAMP_LOCK_HOLDER_TOKENS": "100:mine,7:theirs"}, {7}, {"theirs"}),
        ({"SWAMP_LOCK_HOLDER_PID": "x"}, set(), set()),
        ({"SWAMP_LOCK_HOLDER_PID": "-7"}, set(), set()),
        ({"SWAMP_LOCK_HOLDER_PID": "0"}, set(), set()),
        ({"SWAMP_LOCK_HOLDER_PID": "٣"}, set(), set()),
        ({"SWAMP_LOCK_HOLDER_PID": "9" * 5000}, set(), set()),
        ({"SWAMP_LOCK_ANCESTOR_PIDS": ",,x,7,"}, {7}, set()),
        ({"SWAMP_LOCK_HOLDER_TOKENS": "garbage,x:n,:m,0:z,7"}, set(), set()),
        ({"SWAMP_LOCK_ANCESTOR_PIDS": ",".join(map(str, range(1000, 1100)))}, set(range(1000, 1064)), set()),
    ],
)
def test_the_environment_tells_about_ancestors(environ: dict[str, str], pids: set[int], nonces: set[str]) -> None:
    """The reference's three variables are read, we are no ancestor of our own, and damage says nothing."""
    assert parse_ancestry(environ, HERE.pid) == Ancestry(pids=frozenset(pids), nonces=frozenset(nonces))


@given(
    st.lists(
        st.tuples(st.integers(1, 2**31 - 1), st.lists(uuids(), max_size=3)),
        min_size=1,
        max_size=5,
        unique_by=lambda e: e[0],
    )
)
def test_a_child_knows_the_locks_of_all_its_ancestors(chain: list[tuple[int, list[str]]]) -> None:
    """Each process of a chain adds its locks; its child inherits all of them, and itself only those above it."""
    environ: dict[str, str] = {}
    for index, (pid, nonces) in enumerate(chain):
        above = chain[:index]
        environ = {**environ, **ancestry_environ(environ, pid, tuple(nonces))}
        assert environ["SWAMP_LOCK_HOLDER_PID"] == str(pid)
        pids = [pid, *sorted(ancestor for ancestor, _ in above)]
        assert environ["SWAMP_LOCK_ANCESTOR_PIDS"] == ",".join(map(str, pids))
        for own_pid, ancestors in ((pid, above), (2**31, [*above, (pid, nonces)])):
            assert parse_ancestry(environ, own_pid) == Ancestry(
                pids=frozenset(ancestor for ancestor, _ in ancestors),
                nonces=frozenset(nonce for _, held in ancestors for nonce in held),
            )


@given(st.integers(100, 5000), st.integers(1, 99))
def test_the_list_of_ancestors_is_bounded(count: int, pid: int) -> None:
    """However deep the chain, at most 64 pids are handed down, the nearest one always."""
    environ = {"SWAMP_LOCK_ANCESTOR_PIDS": ",".join(map(str, range(1000, 1000 + count)))}
    pids = ancestry_environ(environ, pid, ())["SWAMP_LOCK_ANCESTOR_PIDS"].split(",")
    assert len(pids) == 64
    assert pids[0] == str(pid)


BOUNDS = st.sampled_from([MODEL_BACKOFF_MS, GLOBAL_BACKOFF_MS, (1, 1)])
JITTER = st.floats(0, 1, exclude_max=True)


@given(st.integers(0, 10_000), BOUNDS, JITTER, st.floats(-1e6, 1e9))
def test_a_pause_stays_within_its_bounds_and_the_budget(
    attempt: int, bounds: tuple[int, int], jitter: float, left_ms: float
) -> None:
    """A pause is never negative or above the budget, and within a quarter of the doubled first one or the longest."""
    pause = pause_ms(attempt, bounds, jitter, left_ms)
    first, longest = bounds
    assert 0 <= pause <= max(left_ms, 0)
    if left_ms > longest * 2:
        wanted = min(first * 2 ** min(attempt, 64), longest)
        assert 0.75 * wanted <= pause <= 1.25 * wanted


@given(BOUNDS, JITTER)
def test_pauses_grow(bounds: tuple[int, int], jitter: float) -> None:
    """From one try to the next a pause does not shrink, until it is as long as it may be."""
    pauses = [pause_ms(attempt, bounds, jitter, 1e9) for attempt in range(40)]
    assert pauses == sorted(pauses)
    assert pauses[-1] >= 0.75 * bounds[1]


def test_jitter_spreads_by_a_quarter() -> None:
    """Two waiters with different luck wait differently, by at most a quarter each way."""
    assert pause_ms(0, (100, 1000), 0.0, 1e9) == 75
    assert pause_ms(0, (100, 1000), 0.5, 1e9) == 100
    assert 124 < pause_ms(0, (100, 1000), 0.999, 1e9) < 125


def test_a_wait_that_ended_says_for_whom() -> None:
    """The error names lock, holder, host, pid, age and how long we waited, in words and as values."""
    error = timeout_error(KEY, 60_400, seen(age_ms=120_000))
    for word in (KEY, "erin@build-7", "host build-7", "pid 200", "120.0 s ago", "60.4 s", "mire lock status"):
        assert word in error.message
    assert error.names == {
        "lock_key": KEY,
        "waited_ms": 60_400,
        "holder": "erin@build-7",
        "hostname": "build-7",
        "pid": 200,
        "age_ms": 120_000,
    }
    assert (error.kind, error.exit_code) == ("lock_timeout", 75)


@pytest.mark.parametrize("sighting", [None, seen(None, 1_000)])
def test_a_wait_for_nobody_known_says_so(sighting: Sighting | None) -> None:
    """Where the body is empty or garbled, or the lock went as we gave up, the holder is unknown."""
    error = timeout_error(KEY, 1, sighting)
    assert "unknown holder" in error.message
    assert error.names["holder"] is None


def test_a_host_without_a_name_is_unknown() -> None:
    """An old body may not say on which host its holder is."""
    assert "erin@build-7 on host unknown (pid 200)" in timeout_error(KEY, 1, seen(replace(LEASE, hostname=""))).message


@given(leases())
def test_a_holder_cannot_draw_on_the_terminal(lease: Lease) -> None:
    """Whatever a body calls its holder, the message is one printable line."""
    assert timeout_error(KEY, 1, seen(lease)).message.isprintable()
