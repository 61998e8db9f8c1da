"""The claim of a repository on a namespace.

Owns: `Manifest`.
Must not know: JSON, where it is kept, when a claim is a conflict.
Keeps: a claim counts whatever its slug and its time look like, since other clients check neither.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """Which repository registered a namespace, and when."""

    namespace: str
    repo_id: str
    registered_at: str
    extra: Mapping[str, Any] = field(default_factory=dict)
