"""The requests to GCS that obstore cannot make, sent by a session of google.auth.

Owns: one request to the JSON interface and its answer; reading the page of a listing.
Must not know: credentials, what is done with the answer.
Keeps: each request is sent once. Every key is given as the store has it: obstore's listings drop final slashes and fail
as a whole at a key with an empty segment.
"""

import functools
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final
from urllib.parse import quote

from mire.edge import gcp
from mire.edge.bucket import BrokenListingError
from mire.edge.connection import CONNECT_TIMEOUT
from mire.edge.foreign import Failure, Place, Trouble, answered
from mire.edge.gcsupload import upload_pieces
from mire.edge.limits import PAGE_KEYS
from mire.edge.remote import Level, Stat

_FIELDS: Final = "items(name,size,generation,updated),prefixes,nextPageToken"
_GOOD = range(200, 300)


class JsonRequests:
    """Sends requests about one bucket; may be used from many threads."""

    def __init__(self, place: Place, credentials: gcp.Credentials | None, ca_file: str | None) -> None:
        self._place = place
        self._credentials = credentials
        self._ca_file = ca_file
        seconds = place.timeout_ms / 1000
        self._timeout = min(CONNECT_TIMEOUT.total_seconds(), seconds), seconds

    @functools.cached_property
    def _session(self) -> Any:
        return gcp.session_of(self._credentials, self._ca_file)

    def send(self, method: str, key: str = "", *, query: dict[str, str] | None = None) -> dict[str, Any] | Failure:
        """Send one request about an object, or about all of them; the document that is answered, or how it failed."""
        url = f"{self._place.endpoint}/storage/v1/b/{quote(self._place.bucket, safe='')}/o"
        response = self._ask(method, f"{url}/{quote(key, safe='')}" if key else url, query=query)
        return response if isinstance(response, Failure) else _read(response)

    def upload(self, key: str, parts: Iterator[bytes], generation: str) -> dict[str, Any] | Failure:
        """Store an object in pieces over one generation ("0": where there is none); what describes it."""
        url = f"{self._place.endpoint}/upload/storage/v1/b/{quote(self._place.bucket, safe='')}/o"
        query = {"uploadType": "resumable", "name": key, "ifGenerationMatch": generation}
        return upload_pieces(self._ask, url, parts, query, _read)

    def _ask(
        self,
        method: str,
        url: str,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> Any:
        try:
            return self._session.request(
                method,
                url,
                params=query,
                headers=headers,
                data=body,
                timeout=self._timeout,
                allow_redirects=False,
            )
        except gcp.foreign_errors() as error:
            return gcp.failure_of(error)


def _read(response: Any) -> dict[str, Any] | Failure:
    try:
        document = response.json() if response.content else {}
    except ValueError:
        document = None
    if response.status_code not in _GOOD:
        return answered(response.status_code, _reason_in(document))
    return document if isinstance(document, dict) else Failure(Trouble.LOST)


def _reason_in(document: Any) -> str:
    try:
        return str(document["error"]["errors"][0]["reason"])
    except (KeyError, IndexError, TypeError):
        return ""


def pages(
    ask: Callable[[dict[str, str]], dict[str, Any]], prefix: str, *, start: str = "", delimiter: str = ""
) -> Iterator[Level]:
    """The pages of a listing, each asked for when it is wanted; `start` is the first key that may come."""
    query = {"prefix": prefix, "maxResults": str(PAGE_KEYS), "fields": _FIELDS, "projection": "noAcl"}
    if start:
        query["startOffset"] = start
    if delimiter:
        query["delimiter"] = delimiter
    while True:
        document = ask(query)
        try:
            objects = tuple(map(_stat_of, document.get("items", ())))
            prefixes = tuple(map(str, document.get("prefixes", ())))
        except (KeyError, ValueError, TypeError):
            raise BrokenListingError("the listing has an entry without name, size, time or generation") from None
        yield Level(prefixes=prefixes, objects=objects)
        following = document.get("nextPageToken")
        if not following:
            return
        if following == query.get("pageToken"):
            raise BrokenListingError("the listing goes in circles")
        query["pageToken"] = following


def _stat_of(item: dict[str, str]) -> Stat:
    return Stat(
        key=item["name"],
        size_bytes=int(item["size"]),
        fingerprint=str(item["generation"]),
        modified_ms=int(datetime.fromisoformat(item["updated"]).timestamp() * 1000),
    )
