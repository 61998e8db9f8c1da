"""Google Cloud Storage: obstore for objects, its JSON interface for what obstore cannot do.

Owns: the calls of one bucket.
Must not know: prefixes, what objects mean, how often to try again.
Keeps: opening asks nobody for anything. A fingerprint is a generation, which every write changes. Without
authentication no credentials are looked for, with it they are sent to any endpoint, also one's own.
"""

import functools
from collections.abc import Callable, Iterator
from typing import Any, Final

from obstore.store import GCSStore

from mire.edge import gcp
from mire.edge.bucket import BucketRemote
from mire.edge.connection import client_options
from mire.edge.foreign import Failure, Place, Trouble, answered, place_endpoint
from mire.edge.gcsrequest import JsonRequests, pages
from mire.edge.key import check_key, check_prefix
from mire.edge.remote import (
    Absent,
    Body,
    Condition,
    Level,
    Matches,
    Properties,
    Refused,
    Removed,
    Stat,
    Stored,
    Unknown,
)
from mire.errors import MireError, NotFoundError
from mire.model.backend import GcsSettings

_ENDPOINT: Final = "https://storage.googleapis.com"

_MISSING: Final = 404
_PRECONDITION: Final = 412


class GcsRemote(BucketRemote):
    """A `Remote` for a whole bucket; pickled as its settings."""

    def __init__(self, settings: GcsSettings) -> None:
        super().__init__()
        self._settings = settings
        self._credentials = gcp.Credentials() if settings.auth == "default" else None

    def __reduce__(self) -> tuple[Callable[..., "GcsRemote"], tuple[GcsSettings]]:
        return GcsRemote, (self._settings,)

    @property
    def properties(self) -> Properties:
        """What this remote can do."""
        return Properties(
            name=f"gs://{self._settings.bucket}",
            conditional_put=True,
            conditional_delete=True,
            content_fingerprint=False,
        )

    @functools.cached_property
    def place(self) -> Place:
        """Where it is, for messages."""
        return Place(
            name=f"gs://{self._settings.bucket}",
            bucket=self._settings.bucket,
            endpoint=place_endpoint(self._settings.api_endpoint or _ENDPOINT),
            timeout_ms=self._settings.request_timeout_ms,
            advice=gcp.ADVICE,
        )

    def _open(self, *, for_streams: bool) -> Any:
        return GCSStore(
            self._settings.bucket,
            base_url=self.place.endpoint,
            skip_signature=self._credentials is None,
            credential_provider=self._credentials or gcp.Nobody(),
            client_options=client_options(self.place, self._settings.ca_file, for_streams=for_streams),
            retry_config={"max_retries": 0},
        )

    @functools.cached_property
    def _requests(self) -> JsonRequests:
        return JsonRequests(self.place, self._credentials, self._settings.ca_file)

    def _fingerprint(self, meta: Any) -> str | None:
        version: str | None = meta["version"]
        return version

    def _update_mode(self, fingerprint: str) -> Any:
        return {"version": fingerprint}

    def get_if_changed(self, key: str, fingerprint: str) -> Body | None:
        """The object, or None when it still has this fingerprint.

        What obstore can ask for is another ETag, not another generation; so this looks first.
        """
        return None if self.head(key).fingerprint == fingerprint else self.get(key)

    def put_if(
        self, key: str, data: bytes, condition: Condition, *, token: str | None = None
    ) -> Stored | Refused | Unknown:
        """Store an object if the condition holds."""
        if isinstance(condition, Matches) and not _is_generation(condition.fingerprint):
            return Refused()
        return super().put_if(key, data, condition, token=token)

    def _put_parts(self, key: str, parts: Iterator[bytes], condition: Condition) -> Stored | Refused | Unknown:
        generation = "0" if isinstance(condition, Absent) else condition.fingerprint
        if isinstance(condition, Matches) and not _is_generation(generation):
            return Refused()
        outcome = self._requests.upload(key, parts, generation)
        if not isinstance(outcome, Failure):
            return Stored(str(outcome["generation"]))
        problem = self._error(outcome, key)
        is_gone = outcome.status == _MISSING and isinstance(problem, NotFoundError)
        if outcome.status == _PRECONDITION or (is_gone and isinstance(condition, Matches)):
            return Refused()
        return self._unknown_or_raise(outcome, problem)

    def delete_if(self, key: str, fingerprint: str) -> Removed | Refused | Unknown:
        """Remove the object only if it has this fingerprint; obstore cannot."""
        check_key(key)
        if not _is_generation(fingerprint):
            return Refused() if self._exists(key) else Removed()
        failure = self._requests.send("DELETE", key, query={"ifGenerationMatch": fingerprint})
        if not isinstance(failure, Failure):
            return Removed()
        if failure.status == _PRECONDITION:
            return Refused()
        if failure.status == _MISSING:
            return Refused() if self._exists(key) else Removed()
        return self._unknown_or_raise(failure, self._error(failure, key))

    def list(self, prefix: str = "", *, after: str | None = None) -> Iterator[Stat]:
        """The objects below a prefix, by ascending key, 1,000 to a request."""
        check_prefix(prefix)
        return (stat for page in self._pages(prefix, start=after or "") for stat in page.objects if stat.key != after)

    def list_level(self, prefix: str = "") -> Level:
        """One level of the listing."""
        check_prefix(prefix)
        found = tuple(self._pages(prefix, delimiter="/"))
        return Level(
            prefixes=tuple(sorted(each for page in found for each in page.prefixes)),
            objects=tuple(each for page in found for each in page.objects),
        )

    def _pages(self, prefix: str, *, start: str = "", delimiter: str = "") -> Iterator[Level]:
        def ask(query: dict[str, str]) -> dict[str, Any]:
            answer = self._requests.send("GET", query=query)
            if isinstance(answer, Failure):
                # A listing of what is there is never missing; the bucket is.
                raise self._error(answered(_MISSING, "NoSuchBucket") if answer.status == _MISSING else answer, None)
            self._is_bucket_known = True
            return answer

        return self._checked_pages(prefix, pages(ask, prefix, start=start, delimiter=delimiter))

    def _error(self, failure: Failure, key: str | None) -> MireError:
        # obstore shows only the text of what went wrong with credentials; they know better themselves.
        if failure.trouble is Trouble.CREDENTIALS and self._credentials is not None:
            failure = self._credentials.failure or failure
        return super()._error(failure, key)

    def server_time_ms(self) -> float:
        """The store's clock, at a resolution of one second."""
        from mire.edge import httpclock  # noqa: PLC0415 - what it takes to ask is rarely needed

        return httpclock.server_time_ms(self.place, self._settings.ca_file)


def _is_generation(fingerprint: str) -> bool:
    """Whether it can be one: zero, to a condition, would mean that there is no object."""
    return fingerprint.isascii() and fingerprint.isdigit() and int(fingerprint) > 0
