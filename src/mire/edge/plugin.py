"""What installed packages announce under a name of ours: their entry points.

Owns: looking through the installed distributions, and loading one object.
Must not know: what the objects are for.
Keeps: a package whose announcement cannot be read or loaded is told by name, and hides no other.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mire.errors import ConfigError, shown

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


@dataclass(frozen=True, slots=True, kw_only=True)
class Announced:
    """One entry point: its name, the package it comes with, and how to load it."""

    name: str
    package: str
    load: Callable[[], object]


def announced(group: str) -> Iterator[Announced]:
    """Every entry point of a group; of two installations of one package the first on the path counts."""
    from importlib.metadata import distributions  # noqa: PLC0415 - takes long to import, and few ask

    seen = set()
    for distribution in distributions():
        try:
            name, package = distribution.name, f"{distribution.name} {distribution.version}"
            entries = distribution.entry_points.select(group=group)
        except Exception:  # noqa: BLE001, S112 - half removed metadata of some package announces nothing
            continue
        if name in seen:
            continue
        seen.add(name)
        for entry in entries:
            yield Announced(name=entry.name, package=package, load=_loader(entry, package))


def _loader(entry: "EntryPoint", package: str) -> Callable[[], object]:
    def load() -> object:
        try:
            return entry.load()
        # Whatever a foreign module does while it is imported, ending the process included, is its failure.
        except (Exception, SystemExit) as error:
            raise ConfigError(
                f"{shown(entry.name)} of the package {package} cannot be loaded"
                f" ({type(error).__name__}: {error}): upgrade or remove the package",
                kind="broken_backend",
            ) from error

    return load
