"""What all commands share: common options, opening the store, one JSON document or text, errors.

Owns: stdout, stderr and exit codes.
Must not know: what a command does.
Keeps: with `--json`, stdout holds exactly one JSON document; an error is one JSON document on stderr.
"""

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from mire.api import Store
    from mire.flow.datastore import Datastore, Lifecycle
    from mire.plan.config import Flags

F = TypeVar("F", bound=Callable[..., Any])

_BROKEN_PIPE = 141
"""What a shell reports for a program that ended by SIGPIPE."""

_CLEAR_LINE = "\r\x1b[K"
_WORTH_SHOWING = 1_000
_OBJECTS_APART = 25
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


@dataclass(slots=True)
class Settings:
    """The options every command takes, wherever on the line they stand."""

    repo: str | None = None
    is_json: bool = False
    datastore: str | None = None
    lock_timeout_s: float | None = None
    sync_timeout_s: float | None = None
    max_age_s: float | None = None
    has_progress: bool = False
    lifecycles: list["Lifecycle"] = field(default_factory=list)
    """Of the datastores that were opened: they may have something to say at the end."""

    def take_notices(self) -> list[str]:
        """What there is to say, once."""
        said = [notice for lifecycle in self.lifecycles for notice in lifecycle.notices]
        for lifecycle in self.lifecycles:
            lifecycle.notices.clear()
        return said


def settings() -> Settings:
    """The options of this invocation."""
    root = click.get_current_context().find_root()
    if not isinstance(root.obj, Settings):
        root.obj = Settings()
    return root.obj


_COMMON: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("repo", "--repo", {"metavar": "DIR", "help": "The repository (default: SWAMP_REPO_DIR, else here or above)."}),
    ("is_json", "--json", {"is_flag": True, "help": "Print one JSON document."}),
    (
        "datastore",
        "--datastore",
        {"metavar": "SPEC", "help": "Use another datastore, e.g. file:///mnt/share or s3://bucket/prefix."},
    ),
    (
        "lock_timeout_s",
        "--lock-timeout",
        {"type": float, "metavar": "SECONDS", "help": "How long to wait for a lock (default 60)."},
    ),
    (
        "sync_timeout_s",
        "--timeout",
        {"type": float, "metavar": "SECONDS", "help": "How long a sync may take, 1 to 21600 (default 300)."},
    ),
)


_READ: tuple[tuple[str, str, dict[str, Any]], ...] = (
    (
        "max_age_s",
        "--max-age",
        {
            "type": click.FloatRange(min=0),
            "metavar": "SECONDS",
            "help": "Pull first if the cache is older than that (default: ask no remote).",
        },
    ),
)


def common_options(command: F) -> F:
    """Add the common options; the last one given wins, before or after the command's name."""
    return _with_options(command, _COMMON)


def read_options(command: F) -> F:
    """Add the common options, and those of commands that only read."""
    return _with_options(command, (*_READ, *_COMMON))


def _with_options(command: F, chosen: Sequence[tuple[str, str, dict[str, Any]]]) -> F:
    def remember(context: click.Context, parameter: click.Parameter, value: Any) -> None:
        del context
        if value is not None and value is not False and parameter.name is not None:
            setattr(settings(), parameter.name, value)

    for name, flag, options in reversed(chosen):
        command = click.option(
            flag, name, expose_value=False, callback=remember, is_eager=True, default=None, **options
        )(command)
    return command


def flags() -> "Flags":
    """The settings of this invocation as the store takes them."""
    from mire.plan.config import Flags

    given = settings()
    return Flags(datastore=given.datastore, lock_timeout_s=given.lock_timeout_s, sync_timeout_s=given.sync_timeout_s)


def repo_dir() -> str:
    """The repository this invocation is about."""
    from mire.flow.datastore import find_repo

    return find_repo(os.getcwd(), settings().repo)


def open_datastore(*, check: bool = True) -> "Datastore":
    """The datastore of this invocation; a cache that is older than was asked for is refreshed first."""
    from mire.flow.datastore import open_datastore as open_it

    ds = open_it(repo_dir(), flags=flags(), check=check)
    if ds.lifecycle is not None:
        settings().lifecycles.append(ds.lifecycle)
        _refresh(ds, ds.lifecycle)
    return ds


def _refresh(ds: "Datastore", lifecycle: "Lifecycle") -> None:
    from mire.flow.sync import refresh_older

    max_age_s = settings().max_age_s
    notice = None if max_age_s is None else refresh_older(ds, max_age_s)
    if notice is not None:
        lifecycle.notices.append(notice)


def open_store() -> "Store":
    """The store of this invocation."""
    from mire.api import Store

    return Store(open_datastore())


def emit(command: str, document: dict[str, Any], text: str | Callable[[], str]) -> None:
    """Print the result: the JSON document of the command, or its text."""
    if settings().has_progress:
        click.echo(_CLEAR_LINE, nl=False, err=True)
    if settings().is_json:
        out = json_text({"schema": f"mire.{command}/1", **document})
    else:
        out = text() if callable(text) else "\n".join(map(plain, text.split("\n")))
    if out:
        write_out([out.encode(errors="surrogateescape"), b"\n"])


def write_out(chunks: Iterable[bytes]) -> None:
    """Write to standard output; a reader that has gone ends the command quietly, anything else is an error."""
    from mire.errors import RemoteError

    if sys.stdout is None:
        raise RemoteError("cannot write to standard output: it is closed", kind="output")
    try:
        for chunk in chunks:
            sys.stdout.buffer.write(chunk)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        _abandon_stdout()
        raise click.exceptions.Exit(_BROKEN_PIPE) from None
    except OSError as error:
        _abandon_stdout()
        raise RemoteError(f"cannot write to standard output: {error.strerror}", kind="output") from None


def _abandon_stdout() -> None:
    # Keeps the interpreter from trying, and complaining, once more at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def json_text(document: object) -> str:
    """A JSON document that any reader takes: bytes of names that are not UTF-8 become escapes."""
    text = json.dumps(document, ensure_ascii=False, indent=2, default=str)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(document, indent=2, default=str)
    return text


def plain(value: object) -> str:
    """A value as it may be shown: control and direction characters cannot reach the terminal."""
    return _CONTROL.sub(lambda match: ascii(match[0])[1:-1], "" if value is None else str(value))


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Rows under a header: drawn by Rich on a terminal, aligned text elsewhere."""
    cells = [[plain(cell) for cell in row] for row in rows]
    if sys.stdout is not None and sys.stdout.isatty():
        return _rich_table(columns, cells)
    widths = [max(len(column), *(len(row[i]) for row in cells), 0) for i, column in enumerate(columns)]
    lines = [columns, *cells]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def _rich_table(columns: Sequence[str], cells: list[list[str]]) -> str:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        drawn.add_column(column, overflow="fold")
    for row in cells:
        drawn.add_row(*map(Text, row))
    console = Console()
    with console.capture() as capture:
        console.print(drawn)
    return capture.get().rstrip("\n")


def notices(lines: Iterable[str]) -> None:
    """Say something beside the answer, on standard error."""
    for line in lines:
        click.echo(f"mire: note: {plain(line)}", err=True)


def progress(count: int) -> None:
    """Show how far a long reading of files is, on a terminal."""
    if count >= _WORTH_SHOWING:
        show_progress(settings(), f"reading versions: {count}")


def sync_progress() -> Callable[[int], None]:
    """What shows how far a sync is, on a terminal; it is called by other threads."""
    given = settings()

    def show(count: int) -> None:
        if count % _OBJECTS_APART == 0:
            show_progress(given, f"syncing: {count} objects")

    return show


def show_progress(given: Settings, text: str) -> None:
    """Show how far something is, on a terminal; for other threads, which do not know the invocation."""
    if sys.stderr is not None and sys.stderr.isatty():
        given.has_progress = True
        click.echo(f"{_CLEAR_LINE}{text}", nl=False, err=True)


def nothing(text: str, ds: "Datastore") -> str:
    """What is said of an empty answer: in a cache that was never filled, why it is empty."""
    from mire.flow.age import hint_never_pulled

    return f"{text}{hint_never_pulled(ds)}"


def facts(pairs: Iterable[tuple[str, object]]) -> str:
    """Labelled values, one a line."""
    shown = [(label, plain(value)) for label, value in pairs if value is not None]
    width = max((len(label) for label, _ in shown), default=0)
    return "\n".join(f"{label.ljust(width)}  {value}".rstrip() for label, value in shown)


def size_text(size_bytes: int | None) -> str:
    """A size for people."""
    if size_bytes is None:
        return "-"
    size = float(size_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:  # noqa: PLR2004 - the step between two units
            return f"{size_bytes} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def age_text(age_ms: float) -> str:
    """An age for people."""
    seconds = max(0.0, age_ms / 1000)
    for length, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.1f} s"
