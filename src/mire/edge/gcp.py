"""The Google side of GCS: credentials, sessions, and the errors of Google's libraries.

Owns: what is asked of google.auth.
Must not know: objects.
Keeps: no token leaves this module, except into the call that sends it. Asking for credentials ends within seconds,
also where nothing answers at the metadata address. Without authentication nobody is asked for anything.
"""

import functools
import warnings
from typing import Any, Final

from mire.edge.foreign import Failure, Trouble, keep_quiet

ADVICE: Final = "run 'gcloud auth application-default login' or set GOOGLE_APPLICATION_CREDENTIALS"
_SCOPES: Final = ("https://www.googleapis.com/auth/devstorage.read_write",)
_TOKEN_TIMEOUT_S: Final = 4.0
_METADATA_TIMEOUT_S: Final = 1.0
_METADATA: Final = ("169.254.169.254", "metadata.google.internal")

_BY_NAME: Final = {
    "SSLError": Trouble.TLS,
    "ConnectTimeout": Trouble.UNREACHABLE,
    "ProxyError": Trouble.UNREACHABLE,
    "ReadTimeout": Trouble.TIMEOUT,
    "Timeout": Trouble.TIMEOUT,
    "ChunkedEncodingError": Trouble.LOST,
    "ContentDecodingError": Trouble.LOST,
    "DefaultCredentialsError": Trouble.CREDENTIALS,
    "RefreshError": Trouble.CREDENTIALS,
    "TransportError": Trouble.CREDENTIALS,
    "GoogleAuthError": Trouble.CREDENTIALS,
}


def failure_of(error: BaseException) -> Failure:
    """What an error of google.auth or requests says."""
    names = [each.__name__ for each in type(error).__mro__]
    if "RefreshError" in names and "invalid_grant" in str(error):
        return Failure(Trouble.EXPIRED, detail="invalid_grant")
    for name in names:
        if name in _BY_NAME:
            return Failure(_BY_NAME[name], detail=names[0])
    if "ConnectionError" in names:
        # requests has one class for "never connected" and "connected, then lost".
        is_new = "NewConnectionError" in repr(error) or "NameResolutionError" in repr(error)
        return Failure(Trouble.UNREACHABLE if is_new else Trouble.LOST)
    return Failure(Trouble.OTHER, detail=names[0])


def foreign_errors() -> tuple[type[BaseException], ...]:
    """What google.auth and requests may raise."""
    import google.auth.exceptions  # noqa: PLC0415 - takes long to import
    import requests.exceptions  # noqa: PLC0415 - as above

    return google.auth.exceptions.GoogleAuthError, requests.exceptions.RequestException


class Nobody:
    """What obstore asks for credentials when none are to be sent; so that it asks no metadata server."""

    def __call__(self) -> Any:
        """A token that is never sent."""
        return {"token": "", "expires_at": None}


class Credentials:
    """Application default credentials, for obstore and for sessions."""

    def __init__(self) -> None:
        self._provider: Any = None
        self.failure: Failure | None = None

    def __call__(self) -> Any:
        """The token of the moment, as obstore wants it."""
        try:
            if self._provider is None:
                from obstore.auth.google import GoogleCredentialProvider  # noqa: PLC0415 - takes long to import

                self._provider = GoogleCredentialProvider(self.google, request=self._request)
            return self._provider()
        except foreign_errors() + (OSError, ValueError) as error:  # noqa: RUF005 - mypy reads only this
            self.failure = _of_credentials(error)
        raise LookupError("no credentials")

    @functools.cached_property
    def google(self) -> Any:
        """The credentials as google.auth has them."""
        import google.auth  # noqa: PLC0415 - takes long to import

        keep_quiet("google")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # advice about quota projects
            return google.auth.default(scopes=_SCOPES, request=self._request)[0]

    @functools.cached_property
    def _request(self) -> Any:
        import google.auth.transport.requests  # noqa: PLC0415 - takes long to import

        return _Bounded(google.auth.transport.requests.Request())


class _Bounded:
    """A transport of google.auth that does not wait for long, and for the metadata server only once."""

    def __init__(self, request: Any) -> None:
        self._request = request
        self._gave_up: BaseException | None = None
        self.session = request.session

    def __call__(self, url: str, *arguments: Any, timeout: float | None = None, **options: Any) -> Any:
        is_metadata = any(host in url for host in _METADATA)
        limit = _METADATA_TIMEOUT_S if is_metadata else _TOKEN_TIMEOUT_S
        if is_metadata and self._gave_up is not None:
            raise self._gave_up
        try:
            return self._request(url, *arguments, timeout=min(timeout or limit, limit), **options)
        except Exception as error:
            if is_metadata:
                self._gave_up = error
            raise


def _of_credentials(error: BaseException) -> Failure:
    failure = failure_of(error)
    if failure.trouble is Trouble.EXPIRED:
        return failure
    is_missing = type(error).__name__ == "DefaultCredentialsError"
    return Failure(Trouble.CREDENTIALS, detail="none found" if is_missing else failure.detail)


def session_of(credentials: Credentials | None, ca_file: str | None) -> Any:
    """A session of requests that sends credentials, or none."""
    import google.auth.credentials  # noqa: PLC0415 - takes long to import
    import google.auth.transport.requests  # noqa: PLC0415 - as above

    keep_quiet("google")
    anonymous: Any = google.auth.credentials.AnonymousCredentials
    authorized: Any = google.auth.transport.requests.AuthorizedSession
    session = authorized(anonymous() if credentials is None else credentials.google)
    if ca_file is not None:
        _trust(session, ca_file)
    return session


def _trust(session: Any, ca_file: str) -> None:
    # `session.verify` is not enough: REQUESTS_CA_BUNDLE in the environment would win over it.
    merged = session.merge_environment_settings

    def with_ours(*arguments: Any) -> Any:
        return {**merged(*arguments), "verify": ca_file}

    session.merge_environment_settings = with_ours
