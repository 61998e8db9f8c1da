"""A bucket through obstore: what S3 and GCS have in common.

Owns: the calls that obstore makes, and their outcome as ours.
Must not know: credentials, endpoints, how a listing is asked for: `s3` and `gcs` fill those in.
Keeps: obstore tries each request once; whether to try again is decided above. A conditional write that may have
happened is `Unknown`.
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from typing import Any, Final

import obstore
from obstore.exceptions import BaseError as ObstoreError
from obstore.exceptions import NotModifiedError

from mire.edge import foreign
from mire.edge.foreign import Failure, Place, Trouble
from mire.edge.key import check_key
from mire.edge.limits import PART_BYTES
from mire.edge.remote import Absent, Body, Condition, Level, Matches, Properties, Refused, Stat, Stored, Stream, Unknown
from mire.edge.source import Source, parts_of
from mire.errors import ConfigError, MireError, NotFoundError, RemoteError, shown

_PARTS_AT_ONCE: Final = 4
_CHUNK_BYTES: Final = 1 << 20
_TOKEN: Final = "mire-token"  # noqa: S105 - the name of a member, not a secret
_FOREIGN: Final = (ObstoreError, FileNotFoundError, NotImplementedError, ValueError)
_PRECONDITION = 412
_MISSING = 404


class BrokenListingError(Exception):
    """A page of a listing that cannot be read or followed."""


class BucketRemote(ABC):
    """The part of a `Remote` that obstore can do; a subclass opens the store and does the rest."""

    def __init__(self) -> None:
        self._opening = threading.Lock()
        self._stores: dict[bool, Any] = {}
        self._is_bucket_known = False

    @property
    @abstractmethod
    def properties(self) -> Properties:
        """What this remote can do."""

    @property
    @abstractmethod
    def place(self) -> Place:
        """Where it is, for messages."""

    @abstractmethod
    def _open(self, *, for_streams: bool) -> Any:
        """A store of obstore; one for streams limits the time without progress, not the time in all."""

    @abstractmethod
    def _fingerprint(self, meta: Any) -> str | None:
        """The fingerprint in what obstore says of an object."""

    @abstractmethod
    def _update_mode(self, fingerprint: str) -> Any:
        """How obstore is told to replace only this version."""

    @abstractmethod
    def get_if_changed(self, key: str, fingerprint: str) -> Body | None:
        """The object, or None when it still has this fingerprint."""

    def get(self, key: str) -> Body:
        """The object, all at once."""
        body: Body = self._call(check_key(key), self._body, key)
        return body

    def _body(self, key: str, options: Any = None) -> Body | None:
        try:
            result = obstore.get(self._store(), key, options=options)
        except NotModifiedError:
            return None
        data = bytes(result.bytes())
        return Body(stat=self._stat(result.meta), data=data, token=result.attributes.get(_TOKEN))

    def get_stream(self, key: str) -> Stream:
        """The object in pieces."""
        result = self._call(check_key(key), obstore.get, self._store(for_streams=True), key)
        return Stream(stat=self._stat(result.meta), chunks=self._chunks(key, result))

    def _chunks(self, key: str, result: Any) -> Iterator[bytes]:
        stream = result.stream(_CHUNK_BYTES)
        while (chunk := self._call(key, next, stream, None)) is not None:
            yield bytes(chunk)

    def head(self, key: str) -> Stat:
        """What is known of the object."""
        meta = self._try(obstore.head, self._store(), check_key(key))
        if isinstance(meta, Failure):
            raise self._error(self._explained(meta, key), key)
        return self._stat(meta)

    def _explained(self, failure: Failure, key: str) -> Failure:
        """A refused HEAD has no body that says why; ask again in a way that has one, unless it is clear."""
        is_clear = failure.trouble is not Trouble.ANSWERED or failure.status not in (400, 401, 403, _MISSING)
        if is_clear or (failure.status == _MISSING and self._is_bucket_known):
            return failure
        second = self._try(obstore.get, self._store(), key, options={"range": (0, 1)})
        return second if isinstance(second, Failure) and second.code else failure

    def put(self, key: str, data: bytes) -> Stored:
        """Store an object, replacing what is there."""
        return self._stored(self._call(check_key(key), obstore.put, self._store(), key, data, use_multipart=False))

    def put_if(
        self, key: str, data: bytes, condition: Condition, *, token: str | None = None
    ) -> Stored | Refused | Unknown:
        """Store an object if the condition holds; the token is kept in its metadata."""
        mode = "create" if isinstance(condition, Absent) else self._update_mode(condition.fingerprint)
        attributes = {_TOKEN: token} if token else None
        result = self._try(
            obstore.put, self._store(), check_key(key), data, mode=mode, attributes=attributes, use_multipart=False
        )
        if not isinstance(result, Failure):
            return self._stored(result)
        problem = self._error(result, key)
        is_gone = result.status == _MISSING and isinstance(condition, Matches) and isinstance(problem, NotFoundError)
        if result.status == _PRECONDITION or is_gone:
            return Refused()
        return self._unknown_or_raise(result, problem)

    def _unknown_or_raise(self, failure: Failure, problem: MireError) -> Unknown:
        """Unknown when the request may have been carried out; else the problem is raised."""
        never_sent = failure.trouble in (Trouble.UNREACHABLE, Trouble.NAME, Trouble.TLS)
        is_open = failure.trouble is Trouble.OTHER or (isinstance(problem, RemoteError) and problem.transient)
        if isinstance(problem, RemoteError) and is_open and not never_sent:
            return Unknown(problem)
        raise problem

    def put_stream(self, key: str, open_chunks: Callable[[], Iterable[bytes]]) -> Stored:
        """Store an object from pieces, in parts when it is larger than one."""
        check_key(key)
        source = Source(open_chunks())
        first = source.up_to(PART_BYTES)
        if source.is_exhausted:
            return self.put(key, b"".join(first))
        result = self._try(
            obstore.put,
            self._store(for_streams=True),
            key,
            chain(first, source),
            use_multipart=True,
            chunk_size=PART_BYTES,
            max_concurrency=_PARTS_AT_ONCE,
        )
        if source.error is not None:
            raise source.error
        if isinstance(result, Failure):
            raise self._error(result, key)
        return self._stored(result)

    def put_stream_if(
        self, key: str, open_chunks: Callable[[], Iterable[bytes]], condition: Condition
    ) -> Stored | Refused | Unknown:
        """Store an object from pieces if the condition holds when the last one is there; obstore cannot, in parts."""
        check_key(key)
        source = Source(open_chunks())
        first = source.up_to(PART_BYTES)
        if source.is_exhausted:
            return self.put_if(key, b"".join(first), condition)
        return self._put_parts(key, parts_of(chain(first, source), PART_BYTES), condition)

    @abstractmethod
    def _put_parts(self, key: str, parts: Iterator[bytes], condition: Condition) -> Stored | Refused | Unknown:
        """Store an object of more than one part if the condition holds at the end."""

    def delete(self, key: str) -> None:
        """Remove an object; one that is not there is fine."""
        result = self._try(obstore.delete, self._store(), check_key(key))
        if isinstance(result, Failure):
            problem = self._error(result, key)
            if not isinstance(problem, NotFoundError):
                raise problem

    def copy(self, source: str, target: str) -> None:
        """Copy an object inside the store, replacing what is there."""
        self._call(check_key(source), obstore.copy, self._store(), source, check_key(target))

    def _checked_pages(self, prefix: str, pages: Iterator[Level]) -> Iterator[Level]:
        try:
            yield from pages
        except BrokenListingError as error:
            why = str(error)
        else:
            return
        raise RemoteError(
            f"cannot list {shown(prefix)} in {self.place.name} at {self.place.endpoint}: {why}; try again",
            kind="broken_listing",
            transient=True,
            prefix=prefix,
        )

    def _exists(self, key: str) -> bool:
        try:
            self.head(key)
        except NotFoundError:
            return False
        return True

    def _store(self, *, for_streams: bool = False) -> Any:
        store = self._stores.get(for_streams)
        if store is None:
            with self._opening:
                store = self._stores.get(for_streams)
                if store is None:
                    store = self._stores[for_streams] = self._opened(for_streams=for_streams)
        return store

    def _opened(self, *, for_streams: bool) -> Any:
        store = self._try(partial(self._open, for_streams=for_streams))
        if isinstance(store, Failure):
            # obstore reads the environment by itself, with names and rules of its own.
            raise ConfigError(
                f"{self.place.name} cannot be opened: see its settings, and the variables of the environment for it",
                kind="unusable",
            )
        return store

    def _call(self, key: str, call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        result = self._try(call, *arguments, **options)
        if isinstance(result, Failure):
            raise self._error(result, key)
        return result

    def _try(self, call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """What a call gives, or how it failed: raised later, so that the foreign error is not even its context."""
        try:
            return call(*arguments, **options)
        except MireError:  # some of ours are ValueErrors, too
            raise
        except _FOREIGN as error:
            return foreign.failure_of(error)

    def _error(self, failure: Failure, key: str | None) -> MireError:
        if failure.code == "NoSuchKey" or failure.status == _PRECONDITION:
            self._is_bucket_known = True
        return foreign.error_of(failure, self.place, key)

    def _stat(self, meta: Any) -> Stat:
        self._is_bucket_known = True
        return Stat(
            key=meta["path"],
            size_bytes=meta["size"],
            fingerprint=self._checked(meta),
            modified_ms=int(meta["last_modified"].timestamp() * 1000),
        )

    def _stored(self, result: Any) -> Stored:
        self._is_bucket_known = True
        return Stored(self._checked(result))

    def _checked(self, meta: Any) -> str:
        fingerprint = self._fingerprint(meta)
        if not fingerprint:
            raise RemoteError(
                f"{self.place.name} at {self.place.endpoint} gives no fingerprint of its objects: it cannot be shared",
                kind="no_fingerprint",
            )
        return fingerprint
