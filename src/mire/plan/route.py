"""Which tier a path belongs to: the datastore, or the repository's own local directory.

Owns: the rule for `directories` and `exclude`.
Must not know: where the tiers are.
Keeps: secrets and bundles are local whatever the settings say.
"""

from functools import lru_cache
from typing import Final, Literal

from pathspec import GitIgnoreSpec

from mire.errors import ConfigError, shown
from mire.model.config import Config
from mire.model.names import ALWAYS_LOCAL_SUBDIRS, DATASTORE_SUBDIRS, RelPath

Tier = Literal["datastore", "local"]

_LOCAL: Final = frozenset(ALWAYS_LOCAL_SUBDIRS)


def tier_of(rel_path: RelPath, config: Config) -> Tier:
    """The tier of an artifact's directory or of a record's file; its parts never lie in different tiers."""
    subdir = rel_path.partition("/")[0]
    if subdir in _LOCAL or subdir not in config.directories:
        return "local"
    return "local" if config.exclude and is_excluded(rel_path, config.exclude) else "datastore"


def is_excluded(rel_path: str, patterns: tuple[str, ...]) -> bool:
    """Whether the patterns exclude a path or a directory above it; the last match wins."""
    return _compiled(patterns).match_file(rel_path) or _compiled(patterns).match_file(f"{rel_path}/")


def check_exclude(patterns: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse patterns that cannot be understood."""
    _compiled(patterns)
    return patterns


@lru_cache(maxsize=32)
def _compiled(patterns: tuple[str, ...]) -> GitIgnoreSpec:
    try:
        return GitIgnoreSpec.from_lines(map(_anchored, patterns))
    except ValueError as error:
        raise ConfigError(f"exclude {shown(list(patterns))} has a pattern that cannot be read: {error}") from None


def _anchored(pattern: str) -> str:
    # In the reference a pattern without a slash is about the top-level directories, and only about them:
    # `logs` there never touches a data item called "logs". Where such a pattern matches a directory we keep
    # that meaning; everywhere else a pattern means what it means in .gitignore.
    bare = pattern.removeprefix("!")
    if "/" in bare or not bare.strip() or bare.startswith("#"):
        return pattern
    matches_subdir = any(map(GitIgnoreSpec.from_lines([f"/{bare}"]).match_file, DATASTORE_SUBDIRS))
    return f"{'!' if pattern != bare else ''}/{bare}" if matches_subdir else pattern
