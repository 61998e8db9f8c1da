"""The control plane of a remote: small records that programs leave for one another, and the format marker.

Owns: putting, getting, listing and creating control records; the look at the marker before the first write.
Must not know: what records say, which kinds of stores there are.
Keeps: None means that a record is not there, and nothing else; of all who create one record exactly one is told
that he did, also when the answer to him was lost.
"""

from collections.abc import Callable
from functools import partial

from mire.edge import clock
from mire.edge.deadline import gather
from mire.edge.remote import Absent, Refused, Remote, Stored
from mire.errors import MireError, NotFoundError, RemoteError
from mire.model.names import SOLO, Namespace
from mire.plan.marker import Look, writing_ban
from mire.wire.control import FORMAT_RECORD, control_key, control_prefix
from mire.wire.marker import BYTES_MAX

MARKER_DEADLINE_MS = 3_000
_CREATE_TRIES = 5


class ControlStore:
    """The control records of a namespace, which is asked for at every call: a store may be bound to one later."""

    def __init__(self, remote: Remote, namespace: Callable[[], Namespace] = lambda: SOLO) -> None:
        self._remote = remote
        self._namespace = namespace

    def put(self, key: str, data: bytes) -> None:
        """Store a record, replacing what is there."""
        self._remote.put(self._key(key), data)

    def get(self, key: str) -> bytes | None:
        """A record, or None when it is not there; any other trouble is an error."""
        try:
            return self._remote.get(self._key(key)).data
        except NotFoundError:
            return None

    def list(self, prefix: str = "") -> list[str]:
        """The full keys of all records below a prefix; `a` and `a/` mean the same, and not `ab`."""
        root = len(control_prefix(self._namespace()))
        return [stat.key[root:] for stat in self._remote.list(control_prefix(self._namespace(), prefix))]

    def delete(self, key: str) -> None:
        """Remove a record; one that is not there is fine."""
        self._remote.delete(self._key(key))

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """Store a record where there is none; whether it was us who did."""
        full, token = self._key(key), clock.new_uuid()
        is_unsure = False
        for _ in range(_CREATE_TRIES):
            outcome = self._remote.put_if(full, data, Absent(), token=token)
            if isinstance(outcome, Stored):
                return True
            if isinstance(outcome, Refused) and not is_unsure:
                return False
            is_unsure = True
            settled = self._is_ours(full, data, token)
            if settled is not None:
                return settled
        raise RemoteError(
            f"{self._remote.properties.name} answers no request to create {full}: nobody knows whether it is there",
            transient=True,
            key=full,
        )

    def _is_ours(self, full: str, data: bytes, token: str) -> bool | None:
        """Whether the record that is there is the one we sent; None when there is none, so that we try again."""
        try:
            body = self._remote.get(full)
        except NotFoundError:
            return None
        # A store that keeps no tokens leaves only the bytes; two who create the same ones cannot be told apart.
        return body.data == data if body.token is None else body.token == token

    def _key(self, key: str) -> str:
        return control_key(self._namespace(), key)


def fetch_datastore_record(remote: Remote, key: str, *, deadline_ms: float = MARKER_DEADLINE_MS) -> bytes | None:
    """A record of the whole datastore, of no namespace; None only when it is not there, an error after the deadline."""
    (answer,) = _look(remote, [control_key(SOLO, key)], deadline_ms)
    if isinstance(answer, MireError):
        raise answer
    return answer


def check_remote_marker(
    remote: Remote, namespace: Namespace = SOLO, *, deadline_ms: float = MARKER_DEADLINE_MS
) -> str | None:
    """Refuse a datastore of a newer format; why nothing may be written, or None.

    To be called before any lock, pull, push or write. One request, two in a namespace, at the same time.
    """
    spaces = [SOLO] if namespace == SOLO else [SOLO, namespace]
    keys = [control_key(space, FORMAT_RECORD) for space in spaces]
    return writing_ban(*map(_as_look, _look(remote, keys, deadline_ms, limit=BYTES_MAX)))


def _look(
    remote: Remote, keys: list[str], deadline_ms: float, limit: int | None = None
) -> list[bytes | MireError | None]:
    calls = [partial(_fetch, remote, key, limit) for key in keys]
    return gather(calls, deadline_ms=deadline_ms, what=f"{remote.properties.name}: reading {keys[0]}")


def _fetch(remote: Remote, key: str, limit: int | None) -> bytes | None:
    """A record, or None when it is not there; of one above the limit no more than shows that."""
    data = b""
    try:
        for chunk in remote.get_stream(key).chunks:
            data += chunk
            if limit is not None and len(data) > limit:
                break
    except NotFoundError:
        return None
    return data


def _as_look(answer: bytes | MireError | None) -> Look:
    if isinstance(answer, MireError) and not isinstance(answer, RemoteError):
        return RemoteError(answer.message, kind=answer.kind)
    return answer
