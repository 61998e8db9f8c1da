"""mire: a datastore for the runtime artifacts of automation.

The flow, on one screen (a reader goes down the layers, never back up):

| step | verb | decides | bytes | touches | leaves behind |
| --- | --- | --- | --- | --- | --- |
| open | `flow/datastore` | `plan/config`, `plan/route` | `wire/repo`, `wire/marker` | settings | where things are |
| hold | `flow/lock` | `plan/lock` | `wire/lockfile` | lock files | nobody else writes the model |
| write | `flow/write` | `plan/write` | `wire/metadata`, `wire/latest` | files | a version on disk |
| remove, rename | `flow/remove`, `flow/rename` | `plan/write` | `wire/latest` | files | a name changed as a whole |
| record | `flow/record` | - | `wire/record` | files | an output, a run, an audit event |
| catalog | `flow/catalog`, `flow/scan` | - | `wire/metadata` | files, SQLite | rows |
| query | `flow/query` | `plan/query` | `wire/cel` | SQLite, then content | an answer |
| retain | `flow/retain`, `flow/hold`, `flow/prune` | `plan/retention` | `wire/hold` | files | what is due, gone |
| read | `flow/read` | `plan/write` | `wire/metadata` | files | an answer |
| push, pull | `flow/mark`, `flow/push`, `flow/pull` | `plan/threeway` | `wire/shard` | cache, remote | both agree |
| move | `flow/setup_remote` | - | `wire/repo` | a directory, cache, remote, settings | a repository that syncs |
| verify | `flow/verify` | `plan/verify` | `wire/metadata` | cache, remote | findings |

Names are imported when first used, so that `mire --help` stays instant.
"""

from typing import TYPE_CHECKING, Any

from mire.model.release import VERSION

__version__ = VERSION

_HOME = {
    # open a store, put and get
    "open": "mire.api",
    "Store": "mire.api",
    "Model": "mire.api",
    "Artifact": "mire.flow.read",
    "Metadata": "mire.model.artifact",
    "Owner": "mire.model.artifact",
    # records
    "Output": "mire.model.record",
    "Run": "mire.model.record",
    "CommandEvent": "mire.model.record",
    "VaultEvent": "mire.model.record",
    # kinds of datastores, for packages that add one
    "Backend": "mire.flow.backend",
    "Schema": "mire.model.backend",
    "Option": "mire.model.backend",
    "Remote": "mire.edge.remote",
    # errors
    "MireError": "mire.errors",
    "InputError": "mire.errors",
    "ConfigError": "mire.errors",
    "NotFoundError": "mire.errors",
    "ConflictError": "mire.errors",
    "OwnershipError": "mire.errors",
    "LockTimeoutError": "mire.errors",
    "LockLostError": "mire.errors",
    "RemoteError": "mire.errors",
    "DeniedError": "mire.errors",
    "MissingBucketError": "mire.errors",
    "ThrottledError": "mire.errors",
    "FormatError": "mire.errors",
    "InternalError": "mire.errors",
}

if TYPE_CHECKING:
    from mire.api import Model as Model
    from mire.api import Store as Store
    from mire.api import open as open
    from mire.edge.remote import Remote as Remote
    from mire.errors import ConfigError as ConfigError
    from mire.errors import ConflictError as ConflictError
    from mire.errors import DeniedError as DeniedError
    from mire.errors import FormatError as FormatError
    from mire.errors import InputError as InputError
    from mire.errors import InternalError as InternalError
    from mire.errors import LockLostError as LockLostError
    from mire.errors import LockTimeoutError as LockTimeoutError
    from mire.errors import MireError as MireError
    from mire.errors import MissingBucketError as MissingBucketError
    from mire.errors import NotFoundError as NotFoundError
    from mire.errors import OwnershipError as OwnershipError
    from mire.errors import RemoteError as RemoteError
    from mire.errors import ThrottledError as ThrottledError
    from mire.flow.backend import Backend as Backend
    from mire.flow.read import Artifact as Artifact
    from mire.model.artifact import Metadata as Metadata
    from mire.model.artifact import Owner as Owner
    from mire.model.backend import Option as Option
    from mire.model.backend import Schema as Schema
    from mire.model.record import CommandEvent as CommandEvent
    from mire.model.record import Output as Output
    from mire.model.record import Run as Run
    from mire.model.record import VaultEvent as VaultEvent

__all__ = ["__version__", *_HOME]  # noqa: PLE0604 - the keys are strings


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'mire' has no attribute {name!r}")
    import importlib  # noqa: PLC0415 - only when a name is used

    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value
