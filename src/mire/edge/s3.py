"""S3, and stores that speak like it: obstore for objects, botocore for credentials and what obstore cannot do.

Owns: the calls of one bucket, its credentials, and the dialect of its ETags.
Must not know: prefixes, what objects mean, how often to try again.
Keeps: opening asks nobody for anything: credentials and certificates are read with the first call. A fingerprint is
an ETag without its quotes.
"""

import functools
from collections.abc import Callable, Iterator
from typing import Any, Final

from obstore.store import S3Store

from mire.edge import process
from mire.edge.aws import AwsSession, Credentials, advice
from mire.edge.bucket import BucketRemote
from mire.edge.connection import client_options
from mire.edge.foreign import Failure, Place, Trouble
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
from mire.edge.s3address import Address, address_of
from mire.edge.s3list import pages
from mire.edge.s3request import SignedRequests
from mire.edge.s3upload import PartsError, upload_parts
from mire.errors import MireError, NotFoundError, RemoteError
from mire.model.backend import S3Settings

_MISSING: Final = 404
_PRECONDITION: Final = 412


class S3Remote(BucketRemote):
    """A `Remote` for a whole bucket; pickled as its settings."""

    def __init__(self, settings: S3Settings, *, quote_etags: bool = True, is_ordered: bool | None = None) -> None:
        super().__init__()
        self._settings = settings
        self._quote_etags = quote_etags
        self._is_ordered = is_ordered
        self._session = AwsSession(settings.profile)

    def __reduce__(self) -> tuple[Callable[..., "S3Remote"], tuple[S3Settings, bool, bool | None]]:
        return _reopened, (self._settings, self._quote_etags, self._is_ordered)

    @property
    def properties(self) -> Properties:
        """What this remote can do, if the store is as good as it should be: `mire doctor` proves it.

        Fingerprints are those of the content for objects stored in one part and not encrypted with a KMS key.
        """
        return Properties(
            name=f"s3://{self._settings.bucket}",
            conditional_put=True,
            conditional_delete=True,
            content_fingerprint=True,
        )

    @property
    def place(self) -> Place:
        """Where it is, for messages."""
        return self._address.place

    @functools.cached_property
    def _address(self) -> Address:
        return address_of(
            self._settings,
            environ=process.environ(),
            profile=self._session.setting,
            profile_region=self._session.region,
            advice=advice(self._settings.profile),
        )

    @functools.cached_property
    def _credentials(self) -> Credentials:
        return Credentials(self._session)

    def _open(self, *, for_streams: bool) -> Any:
        address = self._address
        return S3Store(
            self._settings.bucket,
            endpoint=address.bucket_url,
            aws_endpoint_url_s3=address.bucket_url,
            virtual_hosted_style_request=address.is_virtual,
            region=address.region,
            # Said here, because obstore would take these from the environment.
            skip_signature=False,
            conditional_put="etag",
            s3_express=self._settings.bucket.endswith("--x-s3"),
            disable_bulk_delete=True,
            client_options=client_options(address.place, address.ca_file, for_streams=for_streams),
            retry_config={"max_retries": 0},
            credential_provider=self._credentials,
        )

    @functools.cached_property
    def _requests(self) -> SignedRequests:
        return SignedRequests(
            self._settings.bucket, self._address, self._session, at_once=self._settings.push_concurrency
        )

    def _fingerprint(self, meta: Any) -> str | None:
        tag: str | None = meta["e_tag"]
        return None if tag is None else tag.strip('"')

    def _update_mode(self, fingerprint: str) -> Any:
        return {"e_tag": self._quoted(fingerprint)}

    def _quoted(self, fingerprint: str) -> str:
        return f'"{fingerprint}"' if self._quote_etags else fingerprint

    def get_if_changed(self, key: str, fingerprint: str) -> Body | None:
        """The object, or None when it still has this fingerprint."""
        options = {"if_none_match": self._quoted(fingerprint)}
        body: Body | None = self._call(check_key(key), self._body, key, options)
        return body

    def _put_parts(self, key: str, parts: Iterator[bytes], condition: Condition) -> Stored | Refused | Unknown:
        if isinstance(condition, Absent):
            headers = {"If-None-Match": "*"}
        else:
            headers = {"If-Match": self._quoted(condition.fingerprint)}

        def is_due() -> bool:
            # Some stores do not judge conditions of the last step: so the time in which that matters is short.
            try:
                found = self.head(key).fingerprint
            except NotFoundError:
                return isinstance(condition, Absent)
            return isinstance(condition, Matches) and found == condition.fingerprint

        try:
            outcome = upload_parts(self._requests.send, key, parts, headers, is_due)
        except PartsError as error:
            failed = error.failure
        else:
            return self._last_step(outcome, key)
        raise self._error(failed, key)

    def _last_step(self, outcome: str | Failure | None, key: str) -> Stored | Refused | Unknown:
        if isinstance(outcome, str):
            return Stored(outcome)
        if outcome is None or outcome.status == _PRECONDITION or outcome.code == "NoSuchKey":
            return Refused()
        return self._unknown_or_raise(outcome, self._error(outcome, key))

    def delete_if(self, key: str, fingerprint: str) -> Removed | Refused | Unknown:
        """Remove the object only if it has this fingerprint; obstore cannot."""
        check_key(key)
        failure = self._requests.send("DELETE", key, headers={"If-Match": self._quoted(fingerprint)})
        if not isinstance(failure, Failure):
            return Removed()
        if failure.status == _PRECONDITION:
            # Some stores say so of an object that is not there at all.
            return Refused() if self._exists(key) else Removed()
        problem = self._error(failure, key)
        if failure.status == _MISSING and not isinstance(problem, RemoteError):
            return Removed()
        return self._unknown_or_raise(failure, problem)

    def list(self, prefix: str = "", *, after: str | None = None) -> Iterator[Stat]:
        """The objects below a prefix, by ascending key, 1,000 to a request.

        AWS lists in this order. Others may not: SeaweedFS lists by directory, and what it starts after is by that
        order, too, so all pages are read and sorted here.
        """
        check_prefix(prefix)
        is_ordered = self._address.is_ordered if self._is_ordered is None else self._is_ordered
        if is_ordered:
            return (stat for page in self._pages(prefix, after=after or "") for stat in page.objects)
        return self._sorted(prefix, after or "")

    def _sorted(self, prefix: str, after: str) -> Iterator[Stat]:
        found = [stat for page in self._pages(prefix) for stat in page.objects if stat.key > after]
        yield from sorted(found, key=lambda stat: stat.key)

    def list_level(self, prefix: str = "") -> Level:
        """One level of the listing."""
        check_prefix(prefix)
        found = list(self._pages(prefix, delimiter="/"))
        return Level(
            prefixes=tuple(sorted(each for page in found for each in page.prefixes)),
            objects=tuple(sorted((each for page in found for each in page.objects), key=lambda stat: stat.key)),
        )

    def _pages(self, prefix: str, *, after: str = "", delimiter: str = "") -> Iterator[Level]:
        def ask(query: dict[str, str]) -> bytes:
            answer = self._requests.send("GET", query=query)
            if isinstance(answer, Failure):
                raise self._error(answer, None)
            self._is_bucket_known = True
            return answer.body

        return self._checked_pages(prefix, pages(ask, prefix, after=after, delimiter=delimiter))

    def _error(self, failure: Failure, key: str | None) -> MireError:
        # obstore shows only the text of what went wrong with credentials; they know better themselves.
        if failure.trouble is Trouble.CREDENTIALS and self._credentials.failure is not None:
            failure = self._credentials.failure
        return super()._error(failure, key)

    def server_time_ms(self) -> float:
        """The store's clock, at a resolution of one second."""
        from mire.edge import httpclock  # noqa: PLC0415 - what it takes to ask is rarely needed

        return httpclock.server_time_ms(self.place, self._address.ca_file)


def _reopened(settings: S3Settings, quote_etags: bool, is_ordered: bool | None) -> S3Remote:  # noqa: FBT001 - by pickle
    return S3Remote(settings, quote_etags=quote_etags, is_ordered=is_ordered)
