"""How obstore connects to a store.

Owns: time limits and certificates of connections.
Must not know: objects, credentials.
Keeps: an address where nobody answers is given up within seconds. Requests that should be short are limited as a whole,
long ones by the time without progress.
"""

from datetime import timedelta
from typing import Any, Final

from mire.edge import files
from mire.edge.foreign import Place
from mire.errors import ConfigError, shown
from mire.model.release import VERSION

CONNECT_TIMEOUT: Final = timedelta(seconds=3)
_STREAM_TIMEOUT: Final = timedelta(days=1)
_IDLE_TIMEOUT: Final = timedelta(seconds=15)
"""Servers close idle connections, often after 20 s; one that is closed while we use it costs a try."""


def client_options(place: Place, ca_file: str | None, *, for_streams: bool) -> Any:
    """How obstore connects: one limit for small requests as a whole, another for the pauses of long ones."""
    limit = timedelta(milliseconds=place.timeout_ms)
    options: dict[str, Any] = {
        "allow_http": place.endpoint.startswith("http://"),
        "connect_timeout": min(CONNECT_TIMEOUT, limit),
        "pool_idle_timeout": _IDLE_TIMEOUT,
        "user_agent": f"mire/{VERSION}",
        **({"timeout": _STREAM_TIMEOUT, "read_timeout": limit} if for_streams else {"timeout": limit}),
    }
    if ca_file is not None:
        pem = files.read_file(ca_file)
        if pem is None or b"-----BEGIN CERTIFICATE-----" not in pem:
            raise ConfigError(f"{shown(ca_file)} has no certificate: name a PEM file of CA certificates", path=ca_file)
        options["root_certificate"] = pem
    return options
