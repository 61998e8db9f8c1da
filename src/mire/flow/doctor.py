"""The doctor: tries on a user's own store what mire relies on, and leaves nothing behind.

Owns: the trials on a remote, their order, their time and their removal.
Must not know: what an outcome means; the plan says.
Keeps: nothing is written outside keys of our own making, and those are removed however the trials end.
"""

import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

from mire.edge import clock, pool, process
from mire.edge.etags import EitherEtags
from mire.edge.remote import Absent, Body, Matches, Refused, Remote, Stored, Unknown
from mire.errors import MireError, NotFoundError, RemoteError
from mire.flow.backend import find_backend, new_probe_key, open_remote, reach
from mire.flow.control import check_remote_marker
from mire.flow.doctordir import diagnose_directory
from mire.model.config import Filesystem, Target
from mire.model.doctor import UNTRIED, Evidence, Report, Trial
from mire.model.names import SOLO
from mire.plan.address import parse_target
from mire.plan.doctor import PAGED_OBJECTS, impossible_fingerprint, report_of, surely_ahead_ms
from mire.wire.control import control_prefix

NAMED: Final = "URL"
"""Where a datastore comes from that was named to be examined."""

BUDGET_MS: Final = 8_000
"""After this no new trial begins: a store that needs longer is too slow to be used."""

PAGING_MS: Final = 60_000
"""The same for one who asked for a thousand objects."""

REQUEST_MS: Final = 3_000
"""What one request of the doctor may take, whatever the settings allow."""

_AT_ONCE = 25
_NEVER_SENT = ("tls", "unreachable")
_SECOND_MS = 1_000
_LISTED = ("a", "b/c", "b/d", "e f", "\u00e9")
"""Below the room of one run: a level, a space, a letter that is not ASCII, in the order of their bytes."""

T = TypeVar("T")


def target_named(text: str, *, repo_dir: str) -> Target:
    """The datastore that somebody asks about."""
    return parse_target(text, repo_dir=repo_dir, environ=process.environ(), what=NAMED)


def diagnose(
    target: Target, *, repo_dir: str, origin: str, paging: bool = False, allow_untrusted: bool = False
) -> Report:
    """Examine a datastore and say whether it can be trusted."""
    if isinstance(target, Filesystem):
        return diagnose_directory(target.path)
    one = find_backend(target.type, origin=origin)
    remote = open_remote(target, repo_dir=repo_dir, origin=origin, timeout_ms=REQUEST_MS)
    return report_of(
        examine(remote, paging=paging),
        schema=one.schema,
        name=remote.properties.name,
        relies_on_delete=remote.properties.conditional_delete,
        allow_untrusted=allow_untrusted,
    )


def examine(remote: Remote, *, paging: bool = False, budget_ms: float | None = None) -> Evidence:
    """Try everything on a remote; `paging` also writes enough objects for a second page of a listing."""
    probe = _Probe(remote, budget_ms if budget_ms is not None else PAGING_MS if paging else BUDGET_MS)
    trials: dict[str, Trial] = {}
    told_ms = 0.0
    try:
        trials["contact"] = probe.trial(lambda: reach(remote, probe.room))
        if trials["contact"].outcome == "yes":
            trials["marker"] = probe.trial(lambda: _check_marker(remote))
            trials["clock"], told_ms = _try_clock(probe)
            trials |= _try_conditions(probe)
            if trials["create"].outcome == "yes":
                trials |= _try_listing(probe)
                trials["paged"] = _try_paging(probe) if paging else UNTRIED
    finally:
        left_behind = probe.clean_up()
    return Evidence(
        **trials, clock_ms=told_ms, latency_ms=probe.latency_ms, requests=probe.requests, left_behind=left_behind
    )


class _Probe:
    """Requests that are timed, bounded, and cleaned up after."""

    def __init__(self, remote: Remote, budget_ms: float) -> None:
        self.remote = remote
        self.room = f"{control_prefix(SOLO)}mire-probe-{clock.new_uuid()}/"
        self._budget_ms = budget_ms
        self._started_ms = clock.monotonic_ms()
        self._latencies: list[float] = []
        self._keys: list[str] = []

    @property
    def latency_ms(self) -> float:
        """The median of all requests."""
        return statistics.median(self._latencies or [0.0])

    @property
    def requests(self) -> int:
        """How many there were."""
        return len(self._latencies)

    def attempt(self, call: Callable[[], T]) -> tuple[Trial, T | None]:
        """What came of a call; False and a refusal are no."""
        try:
            with self._timed():
                result = call()
        except MireError as error:
            return Trial("failed", error), None
        if isinstance(result, Unknown):
            return Trial("unknown", result.error), None
        return Trial("no" if result is False or isinstance(result, Refused) else "yes"), result

    def trial(self, call: Callable[[], object]) -> Trial:
        """What came of a call."""
        return self.attempt(call)[0]

    def write(self, key: str, call: Callable[[], T]) -> tuple[Trial, T | None]:
        """What came of a call that may leave an object behind."""
        self._keys.append(key)
        tried, result = self.attempt(call)
        if tried.error is not None and (tried.is_denied or tried.error.kind in _NEVER_SENT):
            self._keys.remove(key)
        return tried, result

    @contextmanager
    def _timed(self) -> Iterator[None]:
        started_ms = clock.monotonic_ms()
        if started_ms - self._started_ms > self._budget_ms:
            raise RemoteError(
                f"{self.remote.properties.name} is too slow: the checks were not done after"
                f" {self._budget_ms / 1000:g} s; check the network",
                kind="timeout",
                transient=True,
            )
        try:
            yield
        finally:
            self._latencies.append(clock.monotonic_ms() - started_ms)

    def clean_up(self) -> tuple[str, ...]:
        """Remove every probe; those that are left."""
        keys, self._keys = sorted(set(self._keys)), []
        with process.undisturbed():
            return tuple(sorted(key for key, is_gone in pool.run(self._remove, keys, at_once=_AT_ONCE) if not is_gone))

    def _remove(self, key: str) -> bool:
        try:
            self.remote.delete(key)
        except NotFoundError:
            return True
        except MireError:
            return False
        return True


def _check_marker(remote: Remote) -> bool:
    ban = check_remote_marker(remote)
    if ban is not None:
        raise RemoteError(ban, kind="marker_unreadable")
    return True


def _try_clock(probe: _Probe) -> tuple[Trial, float]:
    """How far the store's clock is surely ahead of ours; HTTP dates drop the milliseconds."""
    before_ms = clock.now_ns() / 1e6
    tried, told_ms = probe.attempt(probe.remote.server_time_ms)
    after_ms = clock.now_ns() / 1e6
    if told_ms is None:
        return tried, 0.0
    step_ms = _SECOND_MS if told_ms % _SECOND_MS == 0 else 0
    return tried, surely_ahead_ms(told_ms, step_ms, before_ms, after_ms)


def _try_conditions(probe: _Probe) -> dict[str, Trial]:
    """Create, create again, replace with a wrong and with the right fingerprint, read, remove."""
    remote = probe.remote.quoted if isinstance(probe.remote, EitherEtags) else probe.remote
    key, bodies = new_probe_key(), [clock.new_uuid().encode() for _ in range(5)]
    trials: dict[str, Trial] = {}
    trials["create"], made = probe.write(key, lambda: remote.put_if(key, bodies[0], Absent()))
    if not isinstance(made, Stored):
        return trials
    old = made.fingerprint
    impossible = impossible_fingerprint(old)
    trials["read_back"] = probe.trial(lambda: _shows(remote.get(key), bodies[0], old))
    trials["create_again"] = probe.trial(lambda: remote.put_if(key, bodies[1], Absent()))
    trials["replace_wrong"] = probe.trial(lambda: remote.put_if(key, bodies[2], Matches(impossible)))
    trials["unharmed"] = probe.trial(lambda: remote.get(key).data == bodies[0])
    trials["replace_right"], now = probe.attempt(lambda: remote.put_if(key, bodies[3], Matches(old)))
    if not isinstance(now, Stored) and isinstance(probe.remote, EitherEtags):
        remote = probe.remote.unquoted
        trials["unquoted_right"], now = probe.attempt(lambda: remote.put_if(key, bodies[3], Matches(old)))
        trials["unquoted_wrong"] = probe.trial(lambda: remote.put_if(key, bodies[4], Matches(old)))
    if isinstance(now, Stored):
        trials |= _try_reading_and_removing(probe, remote, key, bodies[3], old, now.fingerprint)
    return trials


def _try_reading_and_removing(
    probe: _Probe, remote: Remote, key: str, data: bytes, old: str, new: str
) -> dict[str, Trial]:
    trials = {"read_new": probe.trial(lambda: _shows(remote.get(key), data, new))}
    trials["unchanged"] = probe.trial(
        lambda: remote.get_if_changed(key, new) is None and remote.get_if_changed(key, old) is not None
    )
    if probe.remote.properties.conditional_delete:
        trials["delete_wrong"] = probe.trial(lambda: remote.delete_if(key, old))
        trials["delete_right"] = probe.trial(lambda: remote.delete_if(key, new))
    else:
        trials["delete_right"] = probe.trial(lambda: remote.delete(key))
    trials["gone"] = probe.trial(lambda: _is_gone(remote, key))
    return trials


def _shows(body: Body, data: bytes, fingerprint: str) -> bool:
    return body.data == data and body.stat.fingerprint == fingerprint


def _is_gone(remote: Remote, key: str) -> bool:
    try:
        remote.head(key)
    except NotFoundError:
        return True
    return False


def _try_listing(probe: _Probe) -> dict[str, Trial]:
    keys = [f"{probe.room}{name}" for name in _LISTED]
    failed = next((tried for key in keys if (tried := _store(probe, key)).outcome != "yes"), None)
    if failed is not None:
        return {"listed": failed}
    remote = probe.remote

    def is_complete() -> bool:
        level = remote.list_level(probe.room)
        is_level = level.prefixes == (f"{probe.room}b/",) and [s.key for s in level.objects] == [keys[0], *keys[3:]]
        return is_level and [stat.key for stat in remote.list(probe.room)] == keys

    return {
        "listed": probe.trial(is_complete),
        "listed_after": probe.trial(lambda: [s.key for s in remote.list(probe.room, after=keys[1])] == keys[2:]),
    }


def _try_paging(probe: _Probe) -> Trial:
    room = f"{probe.room}page/"
    keys = [f"{room}{number:04}" for number in range(PAGED_OBJECTS)]
    stored = pool.run(lambda key: _store(probe, key), keys, at_once=_AT_ONCE)
    failed = next((tried for _, tried in stored if tried.outcome != "yes"), None)
    if failed is not None:
        return failed
    return probe.trial(lambda: [stat.key for stat in probe.remote.list(room)] == keys)


def _store(probe: _Probe, key: str) -> Trial:
    return probe.write(key, lambda: probe.remote.put(key, b"probe"))[0]
