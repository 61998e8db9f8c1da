"""Every way mire fails, in one tree; each error has a kind and an exit code.

    MireError                       exit  meaning
    ├── InputError (ValueError)        2  fix the call
    │   └── ConfigError                2  fix the settings
    ├── NotFoundError (LookupError)    3  it is not there
    ├── ConflictError                  4  someone else was first
    │   ├── OwnershipError             4  the name belongs to another producer
    │   ├── LockTimeoutError          75  wait, or see the holder
    │   └── LockLostError              4  stop: our writes may no longer be ours
    ├── RemoteError                    5  the world failed (carries `transient`)
    │   ├── DeniedError                6  credentials or rights
    │   ├── MissingBucketError         5  create the bucket, or name another
    │   └── ThrottledError             5  the store asks us to slow down
    ├── FormatError                    7  bytes break the spec, or come from something newer
    └── InternalError                 70  our bug

Must not know: any other module of mire.
Keeps: a message is one line that names the thing, shows the value and says what to do.
"""

from typing import ClassVar

_SHOWN_MAX = 120


def shown(value: object) -> str:
    """A value as it may stand in a one-line message: quoted, printable, cut when long."""
    try:
        text = ascii(value) if isinstance(value, bytes) else repr(value)
    except RecursionError:
        text = f"<a {type(value).__name__} nested too deeply to show>"
    if isinstance(value, str):
        # repr() keeps printable non-ASCII and escapes control characters and lone surrogates.
        text = "'" + text[1:-1].replace('"', "'") + "'" if text[0] == '"' else text
    return text if len(text) <= _SHOWN_MAX else f"{text[: _SHOWN_MAX - 1]}…"


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


class MireError(Exception):
    """Base of all errors mire raises on purpose. `names` holds the things it is about."""

    kind: str = "error"
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, kind: str | None = None, **names: object) -> None:
        super().__init__(" ".join(message.split()))
        if kind is not None:
            self.kind = kind
        self.names = names

    @property
    def message(self) -> str:
        """The one-line text."""
        return str(self.args[0])

    def document(self) -> dict[str, object]:
        """The error as the JSON document of `--json`."""
        known = {_camel(name): value for name, value in self.names.items() if value is not None}
        return {"kind": self.kind, "message": self.message, "exit": self.exit_code, **known}


class InputError(MireError, ValueError):
    """The call is wrong: a bad name, value or combination. Nothing was written."""

    kind = "input"
    exit_code = 2


class ConfigError(InputError):
    """The settings are wrong: `.swamp.yaml`, an environment variable or a flag."""

    kind = "config"


class NotFoundError(MireError, LookupError):
    """The repository, model, name, version or content is not there."""

    kind = "not_found"
    exit_code = 3


class ConflictError(MireError):
    """Someone else was first."""

    kind = "conflict"
    exit_code = 4


class OwnershipError(ConflictError):
    """The name belongs to another producer; its history is not mixed with ours."""

    kind = "ownership"


class LockTimeoutError(ConflictError):
    """A lock stayed held by someone else for longer than we were willing to wait."""

    kind = "lock_timeout"
    exit_code = 75


class LockLostError(ConflictError):
    """Our lock was taken over or removed while we held it: our writes may no longer be ours."""

    kind = "lock_lost"


class RemoteError(MireError):
    """The world failed: a disk, a mount, a network. `transient` says whether trying again may help."""

    kind = "remote"
    exit_code = 5

    def __init__(self, message: str, *, transient: bool = False, kind: str | None = None, **names: object) -> None:
        super().__init__(message, kind=kind, **names)
        self.transient = transient


class DeniedError(RemoteError):
    """Credentials or rights are missing."""

    kind = "denied"
    exit_code = 6


class MissingBucketError(RemoteError):
    """The bucket itself is not there: nothing in it can be, and nothing can be put into it."""

    kind = "missing_bucket"


class ThrottledError(RemoteError):
    """The store asks us to slow down; trying again later may help."""

    kind = "throttled"

    def __init__(self, message: str, *, transient: bool = True, kind: str | None = None, **names: object) -> None:
        super().__init__(message, transient=transient, kind=kind, **names)


class FormatError(MireError):
    """Stored bytes break the format, or come from something newer than this mire."""

    kind = "format"
    exit_code = 7


class InternalError(MireError):
    """A bug in mire."""

    kind = "internal"
    exit_code = 70
