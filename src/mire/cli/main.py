"""The `mire` command: finds the subcommand, runs it, turns errors into one line and an exit code.

Must not know: what any subcommand does.
Keeps: a subcommand's module is imported only when it is asked for, or for its line of help.
"""

import importlib
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click

from mire import __version__
from mire.cli.face import Settings, common_options, json_text, notices, plain
from mire.errors import InternalError, MireError

COMMANDS = (
    "init",
    "setup",
    "put",
    "append",
    "get",
    "show",
    "ls",
    "versions",
    "diff",
    "rm",
    "mv",
    "query",
    "search",
    "usage",
    "log",
    "push",
    "pull",
    "sync",
    "hydrate",
    "kept",
    "retain",
    "prune",
    "hold",
    "catalog",
    "status",
    "verify",
    "repair",
    "index",
    "migrate",
    "export",
    "namespace",
    "doctor",
    "spark",
    "backends",
    "lock",
)


class LazyGroup(click.Group):
    """A group whose commands live in modules of the same name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order a new user meets them."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"mire.cli.{cmd_name}").command
        return command


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    no_args_is_help=True,
)
@click.version_option(__version__, "-V", "--version", message="mire %(version)s")
@common_options
def mire() -> None:
    """A datastore for the runtime artifacts of automation.

    Model data is versioned under TYPE ID NAME, for example 'aws/ec2/vpc vpc-1 state'. Method
    outputs, workflow runs and audit events are kept beside it. The layout on disk is shared with
    the program Swamp.

    \b
    First steps:
      mire init
      echo '{"cidr": "10.0.0.0/16"}' | mire put aws/ec2/vpc vpc-1 state --content-type application/json
      mire get aws/ec2/vpc vpc-1 state
    """  # noqa: D301 - \b is how click keeps lines as they are


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    is_json = "--json" in arguments[: arguments.index("--")] if "--" in arguments else "--json" in arguments
    signal.signal(signal.SIGTERM, _terminate)
    sys.exit(_run(arguments, is_json=is_json))


def _run(arguments: list[str], *, is_json: bool) -> int:
    given = Settings()
    try:
        # Without its own exit handling click hands back the code a command asked for.
        code = mire.main(args=arguments, prog_name="mire", standalone_mode=False, obj=given)
    except MireError as error:
        return _report(_with_notices(error.document(), given, is_json=is_json), is_json=is_json)
    except click.exceptions.NoArgsIsHelpError as error:
        if is_json:
            return _report(
                {"kind": "usage", "message": f"Missing command. {_see_help(error)}", "exit": 2}, is_json=True
            )
        click.echo(error.format_message(), err=True)
        return 2
    except click.ClickException as error:
        message = f"{' '.join(error.format_message().split())} {_see_help(error)}"
        return _report({"kind": "usage", "message": message, "exit": 2}, is_json=is_json)
    except (click.Abort, KeyboardInterrupt):
        return 130
    except Exception as error:
        if os.environ.get("MIRE_DEBUG"):
            raise
        found = InternalError(
            f"a bug in mire: {type(error).__name__}: {error}; run again with MIRE_DEBUG=1 and report it"
        )
        return _report(found.document(), is_json=is_json)
    notices(given.take_notices())
    return code if isinstance(code, int) else 0


def _with_notices(document: dict[str, object], given: Settings, *, is_json: bool) -> dict[str, object]:
    """An error with what else there is to say: inside its one document, or in lines before it."""
    said = given.take_notices()
    if is_json:
        return {**document, "notices": said} if said else document
    notices(said)
    return document


def _see_help(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    return f"See '{context.command_path if context else 'mire'} --help'."


def _report(document: Mapping[str, Any], *, is_json: bool) -> int:
    if is_json:
        click.echo(json_text(document), err=True)
    else:
        click.echo(f"mire: {plain(document['message'])}", err=True)
    return int(document["exit"])


def _terminate(signum: int, _frame: object) -> None:
    # Unwinding releases our locks; the default would leave them to expire.
    raise SystemExit(128 + signum)
