"""When a lock is stale, whose it is, and how long to wait for it.

Owns: every judgement about a lock that was found.
Must not know: files, processes, clocks; it is told ages and whether a pid lives.
Keeps: a holder on another host is judged only by age, and age is told by the store's clock, never ours.
"""

import re
from collections.abc import Mapping
from typing import Final

from mire.errors import LockTimeoutError, shown
from mire.model.lease import TTL_MS, Ancestry, Host, LockKey, Sighting

MODEL_BACKOFF_MS: Final = (25, 250)
GLOBAL_BACKOFF_MS: Final = (100, 2_000)
"""First and longest pause between two tries. The global lock is held longer, so it is asked less often."""

PARTING_TTL_MS: Final = 120_000
"""How long a lock lives that is being given back in two steps: longer than any request and its repetitions."""

_ANCESTORS_MAX = 64
_TTL_MAX_MS = 600_000
"""A body may claim any time to live; nobody keeps a lock this long without renewing it."""

_SURE_SHARE = 0.5
"""Part of its time to live for which a lock is relied on without asking; the rest is for clocks that differ, for
seconds that are rounded, and for the step that follows."""

# Our own nonces: where the pid counts. Others' say nothing about it.
_SPACE = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{4}([0-9a-f]{8})")


def is_expired(sighting: Sighting) -> bool:
    """Whether nobody renewed the lock for its time to live; a body we cannot read has the usual one."""
    # A time in the future is as far from a renewal just now as one in the past.
    return abs(sighting.age_ms) > min(sighting.lease.ttl_ms if sighting.lease else TTL_MS, _TTL_MAX_MS)


def is_surely_ours(since_ms: float, ttl_ms: int) -> bool:
    """Whether a lock confirmed this long ago cannot be anybody else's, so that nobody need be asked."""
    return since_ms <= min(ttl_ms, _TTL_MAX_MS) * _SURE_SHARE


def is_overdue(since_ms: float, ttl_ms: int) -> bool:
    """Whether a lock was not confirmed for so long that somebody may have taken it over."""
    return since_ms > min(ttl_ms, _TTL_MAX_MS)


def pid_to_probe(sighting: Sighting, host: Host) -> int | None:
    """The pid whose death would free the lock now: only on our own host, and not ourselves."""
    lease = sighting.lease
    if lease is None or not lease.pid or lease.hostname != host.hostname or lease.pid == host.pid:
        return None
    space = _SPACE.fullmatch(lease.nonce or "")
    return None if space and host.space and space[1] != host.space else lease.pid


def is_inherited(sighting: Sighting, ancestry: Ancestry, host: Host) -> bool:
    """Whether a process we descend from holds the lock, so that we work under its protection."""
    lease = sighting.lease
    if lease is None:
        return False
    if lease.nonce is not None and lease.nonce in ancestry.nonces:
        return True
    return lease.hostname == host.hostname and lease.pid in ancestry.pids


def parse_ancestry(environ: Mapping[str, str], own_pid: int) -> Ancestry:
    """What the reference's environment variables say about locks our ancestors hold; damage says nothing.

    A process that holds locks finds itself there, and is no ancestor of its own.
    """
    pids = {_pid(environ.get("SWAMP_LOCK_HOLDER_PID", ""))}
    pids.update(_pid(part) for part in environ.get("SWAMP_LOCK_ANCESTOR_PIDS", "").split(",")[:_ANCESTORS_MAX])
    nonces: set[str] = set()
    for entry in environ.get("SWAMP_LOCK_HOLDER_TOKENS", "").split(","):
        holder, colon, tokens = entry.partition(":")
        if colon and _pid(holder) not in (0, own_pid):
            pids.add(_pid(holder))
            nonces.update(token for token in tokens.split("+") if token)
    pids -= {0, own_pid}
    return Ancestry(pids=frozenset(pids), nonces=frozenset(nonces))


def ancestry_environ(environ: Mapping[str, str], pid: int, nonces: tuple[str, ...]) -> dict[str, str]:
    """The variables a child needs to know our locks, on top of those we were given."""
    pids = [pid, *sorted(parse_ancestry(environ, pid).pids)][:_ANCESTORS_MAX]
    tokens = [environ["SWAMP_LOCK_HOLDER_TOKENS"]] if environ.get("SWAMP_LOCK_HOLDER_TOKENS") else []
    return {
        "SWAMP_LOCK_HOLDER_PID": str(pid),
        "SWAMP_LOCK_ANCESTOR_PIDS": ",".join(map(str, pids)),
        "SWAMP_LOCK_HOLDER_TOKENS": ",".join([f"{pid}:{'+'.join(nonces)}", *tokens]),
    }


def pause_ms(attempt: int, bounds: tuple[int, int], jitter: float, left_ms: float) -> float:
    """How long to wait before try `attempt + 1`: doubling, ±25 % (`jitter` in [0, 1)), within the budget."""
    first, longest = bounds
    wanted = min(first * 2.0 ** min(attempt, 30), longest)
    return max(0.0, min(wanted * (0.75 + jitter / 2), left_ms))


def timeout_error(key: LockKey, waited_ms: int, sighting: Sighting | None) -> LockTimeoutError:
    """The error of a wait that ended, naming holder, host and age."""
    lease = sighting.lease if sighting else None
    age_s = max(0, sighting.age_ms) / 1000 if sighting else 0.0
    if lease is None:
        who = "held by an unknown holder (its body is empty or garbled)"
    else:
        # Anybody can write a lock's body, so what it says is shown with its control characters escaped.
        holder, hostname = shown(lease.holder)[1:-1], shown(lease.hostname or "unknown")[1:-1]
        who = f"held by {holder} on host {hostname} (pid {lease.pid})"
    return LockTimeoutError(
        f"lock {key} is {who}, last renewed {age_s:.1f} s ago; gave up after {waited_ms / 1000:.1f} s:"
        " wait and try again, raise --lock-timeout, or see 'mire lock status'",
        lock_key=key,
        waited_ms=waited_ms,
        holder=lease.holder if lease else None,
        hostname=lease.hostname if lease else None,
        pid=lease.pid if lease else None,
        age_ms=sighting.age_ms if sighting else None,
    )


def _pid(text: str) -> int:
    text = text.strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 10 else 0  # noqa: PLR2004 - fits a pid
