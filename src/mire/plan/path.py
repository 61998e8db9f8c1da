"""Paths as people configure them, made absolute.

Owns: `~`, `$VAR`, `${VAR}` and where a relative path starts.
Must not know: whether anything is there.
Keeps: a path that would silently become another one (a variable that is not set) is refused.
"""

import posixpath
import re
from collections.abc import Mapping

from mire.errors import ConfigError, shown

_VARIABLE = re.compile(r"\$(?:\{([^}]*)\}|([A-Za-z_][A-Za-z0-9_]*))")


def expand_path(path: str, *, repo_dir: str, environ: Mapping[str, str], what: str) -> str:
    """A configured path, absolute: `~`, `$VAR` and `${VAR}` filled in, relative ones from the repository."""
    if "\0" in path:
        raise ConfigError(f"{what}: the path {shown(path)} has a NUL character")

    def value_of(match: re.Match[str]) -> str:
        name = match[1] if match[1] is not None else match[2]
        if not environ.get(name):
            raise ConfigError(
                f"{what}: the path {shown(path)} uses {shown(f'${name}')}, which is not set: set it or spell it out"
            )
        return environ[name]

    text = _VARIABLE.sub(value_of, path)
    if text == "~" or text.startswith("~/"):
        if not environ.get("HOME"):
            raise ConfigError(f"{what}: the path {shown(path)} begins with ~, but HOME is not set")
        text = environ["HOME"] + text[1:]
    return posixpath.normpath(posixpath.join(repo_dir, text))
