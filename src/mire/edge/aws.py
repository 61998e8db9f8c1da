"""The AWS side of S3: profiles, credentials, and the errors of botocore.

Owns: one session of botocore and what is asked of it: credentials, region, endpoint, certificates.
Must not know: objects.
Keeps: no value of a credential leaves this module, except into the call that signs.
"""

import os
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

from mire.edge import clock
from mire.edge.foreign import Failure, Trouble, answered, keep_quiet
from mire.errors import ConfigError, shown

_TTL: Final = timedelta(minutes=9)
"""botocore hands out credentials that are good for ten more minutes; obstore asks again five before this is over."""

_BY_NAME: Final = {
    "ConnectTimeoutError": Trouble.UNREACHABLE,
    "EndpointConnectionError": Trouble.UNREACHABLE,
    "ProxyConnectionError": Trouble.UNREACHABLE,
    "SSLError": Trouble.TLS,
    "ReadTimeoutError": Trouble.TIMEOUT,
    "ConnectionClosedError": Trouble.LOST,
    "HTTPClientError": Trouble.LOST,
    "IncompleteReadError": Trouble.LOST,
    "ResponseStreamingError": Trouble.LOST,
    "SSOError": Trouble.EXPIRED,
    "SSOTokenLoadError": Trouble.EXPIRED,
    "UnauthorizedSSOTokenError": Trouble.EXPIRED,
    "PendingAuthorizationExpiredError": Trouble.EXPIRED,
    "TokenRetrievalError": Trouble.EXPIRED,
    "LoginRefreshRequired": Trouble.EXPIRED,
    "LoginTokenLoadError": Trouble.EXPIRED,
}


def advice(profile: str | None) -> str:
    """How to get credentials that work."""
    named = profile or os.environ.get("AWS_PROFILE")
    login = f"aws sso login --profile {named}" if named else "aws sso login"
    return f"set AWS_PROFILE or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run '{login}'"


def failure_of(error: BaseException) -> Failure:
    """What an error of botocore says."""
    response = getattr(error, "response", None)
    if isinstance(response, dict) and "ResponseMetadata" in response:
        status = response["ResponseMetadata"].get("HTTPStatusCode", 0)
        return answered(int(status), str(response.get("Error", {}).get("Code", "")))
    name = type(error).__name__
    for each in type(error).__mro__:
        if each.__name__ in _BY_NAME:
            return Failure(_BY_NAME[each.__name__], detail=name)
    if "Credential" in name or "Profile" in name or "Token" in name or "Assume" in name:
        return Failure(Trouble.CREDENTIALS, detail=name)
    return Failure(Trouble.OTHER, detail=name)


class Credentials:
    """What obstore asks for credentials; a failure is kept here, because obstore shows only texts."""

    def __init__(self, session: "AwsSession") -> None:
        self._session = session
        self.failure: Failure | None = None

    def __call__(self) -> Any:
        """The credentials of the moment."""
        import botocore.exceptions  # noqa: PLC0415 - takes long to import

        try:
            credentials = self._session.credentials()
            if credentials is not None:
                frozen = credentials.get_frozen_credentials()
                return {
                    "access_key_id": frozen.access_key,
                    "secret_access_key": frozen.secret_key,
                    "token": frozen.token,
                    "expires_at": clock.now() + _TTL,
                }
            self.failure = Failure(Trouble.CREDENTIALS, detail="none found")
        except (botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError) as error:
            self.failure = of_credentials(failure_of(error))
        except OSError:  # a program that should give credentials cannot be run
            self.failure = Failure(Trouble.CREDENTIALS)
        raise LookupError("no credentials")


def of_credentials(failure: Failure) -> Failure:
    """A failure that happened while credentials were fetched, whatever refused them."""
    if failure.trouble is Trouble.EXPIRED:
        return failure
    detail = failure.detail or f"{failure.status} {failure.code}".strip()
    return Failure(Trouble.CREDENTIALS, detail=detail)


def _unusable(error: BaseException, profile: str | None) -> ConfigError:
    named = profile or os.environ.get("AWS_PROFILE")
    if type(error).__name__ == "ProfileNotFound":
        return ConfigError(f"there is no AWS profile {shown(named)}: see 'aws configure list-profiles'", kind="profile")
    return ConfigError(f"the AWS configuration cannot be used ({type(error).__name__}): see ~/.aws/config")


class AwsSession:
    """A session of botocore with a profile; made when something is first asked of it."""

    def __init__(self, profile: str | None) -> None:
        self._profile = profile
        self._making = threading.RLock()
        self._session: Any = None

    def _made(self) -> Any:
        with self._making:
            if self._session is None:
                import botocore.session  # noqa: PLC0415 - takes long to import, and other stores do not need it

                keep_quiet("botocore")
                self._session = botocore.session.Session(profile=self._profile)
            return self._session

    def credentials(self) -> Any:
        """The credentials that the chain of AWS finds, which renew themselves; or None."""
        with self._making:
            return self._made().get_credentials()

    @property
    def region(self) -> str | None:
        """The region of the environment or the profile."""
        region = self._asked(lambda session: session.get_config_variable("region"))
        return str(region) if region else None

    def setting(self, name: str) -> str | None:
        """A value of the profile in the configuration file."""
        found = self._asked(lambda session: session.get_scoped_config().get(name))
        return str(found) if found else None

    def _asked(self, question: Callable[[Any], Any]) -> Any:
        import botocore.exceptions  # noqa: PLC0415 - takes long to import

        try:
            with self._making:
                return question(self._made())
        except botocore.exceptions.BotoCoreError as error:
            problem = _unusable(error, self._profile)
        raise problem
