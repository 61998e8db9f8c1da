"""One version on disk: its number claimed, its files written in order, its name published, its removal.

Owns: the order of file operations, which is the whole of crash safety here.
Must not know: why a version is written.
Keeps: raw before metadata before `latest`, each durable before the next; the lock is proved ours before
each step that makes something visible.
"""

import json
import os
from collections.abc import Iterable

from mire.edge import files
from mire.errors import ConflictError, shown
from mire.flow.datastore import Datastore
from mire.flow.lock import Hold
from mire.flow.mark import marking
from mire.flow.read import finished_numbers, look_at_marks, look_at_name
from mire.model.artifact import Highest, Metadata, ModelRef, NameState
from mire.model.names import DataName, RelPath, Version
from mire.plan.write import leftover_numbers, next_version
from mire.wire.latest import decode_highest, decode_latest, encode_highest, encode_latest
from mire.wire.layout import HIGHEST, LATEST, METADATA, RAW, name_dir
from mire.wire.metadata import encode_metadata

_CLAIMS_MAX = 100


def claim(ds: Datastore, model: ModelRef, name: DataName) -> Version:
    """Take the next number by creating its directory; whoever creates it has it."""
    directory = ds.path_of(name_dir(model, name))
    state = look_at_marks(ds, model, name)
    if not state.marker:
        _check_place(ds.root_of(name_dir(model, name)), name_dir(model, name))
    files.make_dirs(directory)
    # The marker alone says where to start; only a name without one, or with deletions, must be listed.
    claimed = _claim_from(directory, state) if state.marker and not state.highest.number else None
    if claimed is None:
        state = look_at_name(ds, model, name)
        _sweep(ds, directory, state)
        claimed = _claim_from(directory, state)
    if claimed is None:
        raise ConflictError(
            f"{shown(name)} of {model}: {_CLAIMS_MAX} versions were taken by others while we tried: try again",
            name=name,
        )
    return claimed


def claim_hidden(ds: Datastore, model: ModelRef, name: DataName, count: int, hold: Hold) -> list[Version]:
    """Take several numbers whose versions stay invisible until the name is published.

    Where there is a marker they are above it. Where there is none, the floor of deleted versions is above them:
    publishing ends that, and whoever claims next in a name that was never published removes them.
    """
    directory = ds.path_of(name_dir(model, name))
    state = look_at_name(ds, model, name)
    seen = [] if state.marker else finished_numbers(ds, model, name, state)
    if seen:
        publish(ds, model, name, seen[-1], hold)  # what is visible without a marker must stay so
    numbers = [claim(ds, model, name)]
    while len(numbers) < count:
        more = _claim_from(directory, NameState(numbers=(numbers[-1],)))
        if more is None:
            raise ConflictError(f"{shown(name)} of {model}: others take versions as fast as we: try again", name=name)
        numbers.append(more)
    if not look_at_marks(ds, model, name).marker:
        floor = encode_highest(Highest(number=numbers[-1], floor=numbers[-1]))
        files.write_file(os.path.join(directory, HIGHEST), [floor])
    return numbers


def _check_place(root: str, rel_path: RelPath) -> None:
    """Refuse a first version inside another model's data, or around it: deleting one would take the other.

    Only ids that are not UUIDs can meet so: `a/b` of model type `x` is a directory of model type `x/a` too.
    """
    parts = rel_path.split("/")
    for depth in range(2, len(parts)):
        above = os.path.join(root, *parts[:depth])
        if any(files.is_file(os.path.join(above, name)) for name in (LATEST, HIGHEST, METADATA, RAW)):
            raise _nested(rel_path, "/".join(parts[:depth]))
    for entry in files.list_dir(os.path.join(root, rel_path)):
        inner = os.path.join(root, rel_path, entry.name)
        if entry.is_dir and any(child.is_dir for child in files.list_dir(inner)):
            raise _nested(rel_path, f"{rel_path}/{entry.name}")


def _nested(rel_path: RelPath, other: str) -> ConflictError:
    return ConflictError(
        f"{shown(rel_path)} would share a directory with other data, {shown(other)}: choose another id or name",
        kind="nested",
        path=rel_path,
    )


def _claim_from(directory: str, state: NameState) -> Version | None:
    number = next_version(state)
    for candidate in range(number, number + _CLAIMS_MAX):
        if files.claim_dir(os.path.join(directory, str(candidate))):
            return Version(candidate)
    return None


def _sweep(ds: Datastore, directory: str, state: NameState) -> None:
    """Remove what a deletion published as gone but did not live to remove."""
    leftover = [os.path.join(directory, str(number)) for number in leftover_numbers(state)]
    with marking(ds, removing=leftover):
        for path in leftover:
            remove_version(path)


def finish(directory: str, metadata: Metadata, hold: Hold) -> None:
    """Write the metadata: from now on the version is complete."""
    hold.check()
    files.write_file(os.path.join(directory, METADATA), [encode_metadata(metadata)])


def latest_path(ds: Datastore, model: ModelRef, name: DataName) -> str:
    """The marker of a name."""
    return os.path.join(ds.path_of(name_dir(model, name)), LATEST)


def publish(ds: Datastore, model: ModelRef, name: DataName, version: int, hold: Hold) -> None:
    """Point `latest` at a version; never backwards, even if we were stopped and others went on."""
    directory = ds.path_of(name_dir(model, name))
    path = os.path.join(directory, LATEST)
    with files.directory_guard(directory):
        hold.check()
        marker = files.read_marker(path)
        if (decode_latest(marker or b"") or 0) < version:
            files.write_file(path, [encode_latest(version)])
        forget_floor(ds, directory)


def forget_floor(ds: Datastore, directory: str) -> None:
    """End "everything up to N is deleted": once that is gone, or something was published after it.

    Kept longer it would speak up again when another program takes `latest` away, against versions it never meant.
    """
    path = os.path.join(directory, HIGHEST)
    highest = decode_highest(files.read_file(path, limit=64) or b"")
    if highest.floor:
        with marking(ds, path):
            files.write_file(path, [encode_highest(Highest(number=highest.number))])


def write_version(directory: str, chunks: Iterable[bytes], metadata: Metadata, hold: Hold) -> None:
    """Write content and metadata; the version is complete, and not yet published."""
    files.write_file(os.path.join(directory, RAW), chunks)
    finish(directory, metadata, hold)


def remove_version(directory: str) -> None:
    """Remove a version; metadata first, so that from then on the directory claims nothing."""
    if files.is_link(directory):
        files.remove_tree(directory)  # the link, not what it leads to
        return
    files.remove_file(os.path.join(directory, METADATA))
    files.remove_tree(directory)


def compact_json(content: object) -> bytes:
    """JSON as model methods store it: no spaces, no newline."""
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
