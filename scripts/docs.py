"""Write docs/cli.md from the commands and docs/errors.md from the errors: `make docs`.

`pages()` gives both as text, so that a test can compare them with the files.
"""

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

import click

from mire import errors
from mire.cli.main import mire

ROOT = Path(__file__).resolve().parent.parent
_NOTE = "<!-- Written by scripts/docs.py: change the source, then run `make docs`. -->"
_SOURCE = Path(inspect.getfile(errors)).parent


def pages() -> dict[str, str]:
    """The generated documents by their path in the repository."""
    return {"docs/cli.md": cli_page(), "docs/errors.md": errors_page()}


def commands(group: click.Group | None = None, path: str = "mire") -> Iterator[tuple[str, click.Command]]:
    """Every command that does something, with the words that call it."""
    group = group or mire
    context = click.Context(group, info_name=path)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, f"{path} {name}")
        elif command is not None:
            yield f"{path} {name}", command


def cli_page() -> str:
    """The command line reference."""
    common = _options(mire)
    shared = {option.opts[0] for option in common}
    every = list(commands())
    lines = [
        "# The command line",
        "",
        _NOTE,
        "",
        "Every command takes the [common options](#common-options), before or after its name.",
        "Results go to standard output and errors to standard error. [Errors](errors.md) lists the exit codes.",
        "With `--json`, standard output holds exactly one JSON document, whose `schema` member is given below;",
        "an error is one JSON document on standard error with `kind`, `message` and `exit`.",
        "",
        *_table(
            ["command", "what it does"],
            [[f"[`{path}`](#{path.replace(' ', '-')})", _summary(command)] for path, command in every],
        ),
        "",
        "## Common options",
        "",
        *_option_table(common),
        "",
        "`mire --version` (`-V`) prints the version, `--help` (`-h`) the help of any command.",
    ]
    for path, command in every:
        context = click.Context(command, info_name=path)
        usage = " ".join([path, *command.collect_usage_pieces(context)])
        lines += ["", f"## {path}", "", "```text", usage, "```", "", *_paragraphs(command.help or "")]
        own = [option for option in _options(command) if option.opts[0] not in shared]
        if own:
            lines += ["", *_option_table(own)]
        lines += ["", f"JSON schema: `mire.{'.'.join(path.split()[1:])}/1`"]
    return "\n".join(lines) + "\n"


def _options(command: click.Command) -> list[click.Option]:
    # `params`, not `get_params`: the option for help is the same everywhere and is named once.
    shown = [each for each in command.params if isinstance(each, click.Option) and not each.hidden]
    return [each for each in shown if command is not mire or "-V" not in each.opts]


def _option_table(options: list[click.Option]) -> list[str]:
    return _table(["option", "meaning"], [[_spelling(option), _meaning(option)] for option in options])


def _spelling(option: click.Option) -> str:
    metavar = "N" if isinstance(option.type, click.IntRange) else option.make_metavar(click.Context(mire))
    value = "" if option.is_flag else f" {metavar}"
    return f"`{', '.join([*option.opts, *option.secondary_opts])}{value}`"


def _meaning(option: click.Option) -> str:
    text = option.help or ""
    return f"{text} Default: `{option.default}`." if option.show_default else text


def _summary(command: click.Command) -> str:
    return " ".join((command.help or "").split("\n\n")[0].split())


def _paragraphs(text: str) -> list[str]:
    lines: list[str] = []
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        if paragraph.startswith("\b"):
            lines += ["```text", *paragraph.splitlines()[1:], "```", ""]
        else:
            lines += [" ".join(paragraph.split()), ""]
    return lines[:-1]


def _table(columns: list[str], rows: list[list[str]]) -> list[str]:
    def line(cells: list[str]) -> str:
        return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"

    return [line(columns), line(["---"] * len(columns)), *map(line, rows)]


def errors_page() -> str:
    """The errors with their exit codes, and every kind a program may meet."""
    tree = [[_indented(error, depth), f"`{error.kind}`", str(error.exit_code), _doc(error)] for error, depth in _tree()]
    lines = [
        "# Errors and exit codes",
        "",
        _NOTE,
        "",
        "Every error mire raises on purpose is a `mire.MireError`. It has a `kind` (for programs), a one-line",
        "`message` (for people) and an `exit_code`, which the command line exits with. In Python, catch the class.",
        "In a script, look at the exit code, or at `kind` with `--json`.",
        "",
        *_table(["error", "kind", "exit", "meaning"], tree),
        "",
        "The dots show the class tree: an error is also everything above it with fewer dots. `InputError` is also a",
        "`ValueError`, `NotFoundError` a `LookupError`. The names are importable from `mire`.",
        "",
        "Besides these, the command line exits with 0 for success, with 2 and the kind `usage` for a command line it",
        "cannot read, with 130 when interrupted (Ctrl-C), with 141 when the reader of its output went away, and with",
        "143 when it was told to end (SIGTERM). It gives its locks back in all of these cases. `MIRE_DEBUG=1` in the",
        "environment shows the traceback of an `internal` error.",
        "",
        "## Kinds",
        "",
        "Where one error has several causes that a program may want to tell apart, `kind` says which.",
        "",
        *_table(["kind", "error", "exit"], _kinds()),
    ]
    return "\n".join(lines) + "\n"


def _tree(
    error: type[errors.MireError] = errors.MireError, depth: int = 0
) -> Iterator[tuple[type[errors.MireError], int]]:
    yield error, depth
    for child in error.__subclasses__():
        if child.__module__ == errors.__name__:
            yield from _tree(child, depth + 1)


def _indented(error: type, depth: int) -> str:
    return f"{'· ' * depth}`{error.__name__}`"


def _doc(error: type) -> str:
    return " ".join((inspect.getdoc(error) or "").split())


def _kinds() -> list[list[str]]:
    """The kinds that are given where an error is made, found in the source."""
    exits = {error.__name__: error.exit_code for error, _ in _tree()}
    found = set()
    for path in sorted(_SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id not in exits:
                continue
            for keyword in node.keywords:
                if keyword.arg == "kind" and isinstance(keyword.value, ast.Constant):
                    found.add((str(keyword.value.value), node.func.id))
    return [[f"`{kind}`", f"`{error}`", str(exits[error])] for kind, error in sorted(found)]


if __name__ == "__main__":
    for name, text in pages().items():
        (ROOT / name).write_text(text, encoding="utf-8")
        print(f"{name}: {len(text.splitlines())} lines")
