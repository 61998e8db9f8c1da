"""The requests to S3 that obstore cannot make, signed and sent by botocore.

Owns: one signed request and its answer.
Must not know: what is asked, what the answer means.
Keeps: each request is sent once. A body shorter than announced is a lost connection, not an answer. botocore's signer
and connections are used without its client of S3, which takes a tenth of a second to make and twenty times as
long as `s3list` to read a listing.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from mire.edge import process
from mire.edge.aws import AwsSession, failure_of, of_credentials
from mire.edge.connection import CONNECT_TIMEOUT
from mire.edge.foreign import Failure, Trouble, answered, code_in
from mire.edge.s3address import Address

_GOOD = range(200, 300)


@dataclass(frozen=True, slots=True)
class Answer:
    """A good answer."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    """By name in lower case."""


class SignedRequests:
    """Sends requests about one bucket; may be used from many threads."""

    def __init__(self, bucket: str, address: Address, session: AwsSession, *, at_once: int) -> None:
        base = address.bucket_url if address.is_virtual else f"{address.bucket_url}/{bucket}"
        self._base = base
        self._address = address
        self._session = session
        self._at_once = at_once

    def send(
        self,
        method: str,
        key: str = "",
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
    ) -> Answer | Failure:
        """Send one request; its answer, or how it failed."""
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - takes long to import

        url = f"{self._base}/{quote(key, safe='/~')}" if key else self._base
        if query:
            url += "?" + "&".join(
                f"{quote(name, safe='')}={quote(value, safe='-_.~')}" for name, value in query.items()
            )
        try:
            request = self._signed(method, url, dict(headers or {}), body)
        except (BotoCoreError, ClientError) as error:
            return of_credentials(failure_of(error))
        except OSError:  # a program that should give credentials cannot be run
            return Failure(Trouble.CREDENTIALS)
        if request is None:
            return Failure(Trouble.CREDENTIALS, detail="none found")
        try:
            response = self._connections.send(request)
        except BotoCoreError as error:
            return failure_of(error)
        return _read(response)

    def _signed(self, method: str, url: str, headers: dict[str, str], body: bytes) -> Any:
        from botocore.auth import S3SigV4Auth  # noqa: PLC0415 - takes long to import
        from botocore.awsrequest import AWSRequest  # noqa: PLC0415 - as above

        credentials = self._session.credentials()
        if credentials is None:
            return None
        request = AWSRequest(method=method, url=url, headers=headers, data=body)
        S3SigV4Auth(credentials.get_frozen_credentials(), "s3", self._address.region).add_auth(request)
        return request.prepare()

    @functools.cached_property
    def _connections(self) -> Any:
        from botocore.httpsession import URLLib3Session  # noqa: PLC0415 - takes long to import
        from botocore.utils import get_environ_proxies  # noqa: PLC0415 - as above

        seconds = self._address.place.timeout_ms / 1000
        return URLLib3Session(
            verify=self._address.ca_file or process.environ().get("SSL_CERT_FILE") or True,
            proxies=get_environ_proxies(self._base),
            timeout=(min(CONNECT_TIMEOUT.total_seconds(), seconds), seconds),
            max_pool_connections=self._at_once,
        )


def _read(response: Any) -> Answer | Failure:
    body: bytes = response.content
    announced = response.headers.get("Content-Length")
    if announced is not None and announced != str(len(body)):
        return Failure(Trouble.LOST)
    if response.status_code in _GOOD:
        return Answer(response.status_code, body, {name.lower(): text for name, text in response.headers.items()})
    return answered(response.status_code, code_in(body.decode(errors="replace")))
