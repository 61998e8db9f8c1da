"""The clock of an HTTP server, from the Date header that every answer carries.

Owns: one unsigned request to an address, whatever is answered.
Must not know: what the server stores.
Keeps: nothing is sent but the address: no credentials, no query. An answer is waited for only a few seconds: later it
would tell little about the time.
"""

import ssl
from dataclasses import replace
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, HTTPSHandler, Request, build_opener

from mire.edge.connection import CONNECT_TIMEOUT
from mire.edge.foreign import Failure, Place, Trouble, error_of


class _Staying(HTTPRedirectHandler):
    """Redirects are answers too: they are not followed."""

    def redirect_request(self, *_: object) -> None:
        """Follow nothing."""


def server_time_ms(place: Place, ca_file: str | None) -> float:
    """What the server's clock shows, at a resolution of one second: never ahead of the real one."""
    limit_ms = min(place.timeout_ms, round(CONNECT_TIMEOUT.total_seconds() * 1000))
    try:
        opener = build_opener(_Staying(), HTTPSHandler(context=_context(place.endpoint, ca_file)))
        request = Request(place.endpoint + "/", method="HEAD")  # noqa: S310 - an endpoint is http or https, as checked
        try:
            with opener.open(request, timeout=limit_ms / 1000) as answer:
                date = answer.headers["Date"]
        except HTTPError as refused:
            date = refused.headers["Date"]
            refused.close()
        return parsedate_to_datetime(date).timestamp() * 1000
    except (OSError, HTTPException, ValueError, TypeError) as error:
        failure = _failure_of(error)
    raise error_of(failure, replace(place, timeout_ms=limit_ms))


def _context(endpoint: str, ca_file: str | None) -> ssl.SSLContext:
    """Who is trusted; without TLS nobody, for reading the authorities takes ten times as long as asking."""
    if endpoint.startswith("https:"):
        return ssl.create_default_context(cafile=ca_file)
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _failure_of(error: Exception) -> Failure:
    reason = error.reason if isinstance(error, URLError) else error
    if isinstance(reason, ssl.SSLError):
        return Failure(Trouble.TLS)
    if isinstance(error, TimeoutError):  # one that is wrapped happened while connecting
        return Failure(Trouble.TIMEOUT)
    if isinstance(error, (URLError, HTTPException)) or isinstance(reason, ConnectionError):
        return Failure(Trouble.UNREACHABLE)
    return Failure(Trouble.OTHER, detail="it tells no date")
