"""`--json`: stdout holds exactly one JSON document, an error is exactly one on stderr, for every command."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mire.cli.main import COMMANDS

Run = Callable[..., Any]

CACHED = ["--datastore", "cached:share"]
"""A remote in a directory of the repository."""

GOOD = [
    ("init", ["init"]),
    ("setup", ["setup", "cached:share"]),
    ("setup", ["setup", "file://localhost/$PWD/share", "--cached", "--dry-run"]),
    ("put", ["put", "t", "i", "fresh"]),
    ("put", ["put", "t", "i", "fresh", "-"]),
    ("append", ["append", "t", "i", "log"]),
    ("get", ["get", "t", "i", "state"]),
    ("get", ["get", "t", "i", "state", "-o", "out"]),
    ("show", ["show", "t", "i", "state"]),
    ("ls", ["ls"]),
    ("ls", ["ls", "t"]),
    ("ls", ["ls", "t", "i", "--all"]),
    ("versions", ["versions", "t", "i", "state"]),
    ("rm", ["rm", "t", "i", "state", "--version", "1"]),
    ("rm", ["rm", "t", "i", "state"]),
    ("rm", ["rm", "t", "i", "state", "--mark"]),
    ("mv", ["mv", "t", "i", "state", "moved"]),
    ("diff", ["diff", "t", "i", "state", "1", "1"]),
    ("query", ["query", "name == 'state'"]),
    ("query", ["query", "name == 'state'", "--explain"]),
    ("search", ["search", "state"]),
    ("usage", ["usage", "--by", "name"]),
    ("retain", ["retain", "--dry-run"]),
    ("prune", ["prune", "--dry-run"]),
    ("hold", ["hold", "t", "i", "state"]),
    ("hold.list", ["hold", "--list"]),
    ("catalog.rebuild", ["catalog", "rebuild"]),
    ("catalog.check", ["catalog", "check"]),
    ("catalog.stats", ["catalog", "stats"]),
    ("log", ["log"]),
    ("push", ["push", *CACHED]),
    ("push", ["push", *CACHED, "--full", "--dry-run"]),
    ("pull", ["pull", *CACHED]),
    ("pull", ["pull", *CACHED, "--model", "t/i", "--full", "--dry-run"]),
    ("sync", ["sync", *CACHED]),
    ("hydrate", ["hydrate", *CACHED, "--all"]),
    ("kept", ["kept", *CACHED]),
    ("kept.remove", ["kept", *CACHED, "--remove", "--all"]),
    ("verify", ["verify"]),
    ("verify", ["verify", *CACHED, "--deep"]),
    ("verify", ["verify", *CACHED, "--local"]),
    ("verify", ["verify", *CACHED, "--repair"]),
    ("index.status", ["index", "status", *CACHED]),
    ("index.migrate", ["index", "migrate", *CACHED]),
    ("index.migrate", ["index", "migrate", *CACHED, "--dry-run"]),
    ("status", ["status"]),
    ("status", ["status", *CACHED]),
    ("status", ["status", *CACHED, "--remote"]),
    ("namespace.set", ["namespace", "set", "team-a"]),
    ("namespace.show", ["namespace", "show"]),
    ("namespace.list", ["namespace", "list"]),
    ("namespace.doctor", ["namespace", "doctor"]),
    ("doctor", ["doctor"]),
    ("backends", ["backends"]),
    ("backends", ["backends", "s3"]),
    ("lock.status", ["lock", "status"]),
    ("lock.release", ["lock", "release", "--force", "--model", "t/held"]),
]

SPARKED = {"repair", "migrate", "export", "spark"}
"""Commands that always run on Spark: what they give is in tests/pipeline, where there is one."""

BAD = [
    (["repair"], "no_remote", 2),
    (["index", "rebuild"], "no_remote", 2),
    (["migrate", "nonsense", "file:///srv/copy"], "config", 2),
    (["export", "out", "--datastore", "filesystem:gone"], "unreachable", 5),
    (["init", "no/such/place"], "not_found", 3),
    (["init", "--datastore", "nonsense"], "config", 2),
    (["setup", "file:///srv/share"], "config", 2),
    (["setup", "cached:gone"], "unreachable", 5),
    (["push"], "no_remote", 2),
    (["pull", *CACHED, "--model", "t"], "bad_name", 2),
    (["sync"], "no_remote", 2),
    (["hydrate"], "input", 2),
    (["verify", "--datastore", "filesystem:gone"], "unreachable", 5),
    (["kept", *CACHED, "--remove", "nothing/like/it"], "not_found", 3),
    (["index", "status"], "no_remote", 2),
    (["namespace", "set", "data"], "bad_name", 2),
    (["namespace", "unset"], "no_namespace", 3),
    (["namespace", "migrate"], "no_namespace", 2),
    (["namespace", "list", "--datastore", "filesystem:gone"], "unreachable", 5),
    (["put", "t", "i", ".."], "bad_name", 2),
    (["put", "t", "i", "n", "no-such-file"], "not_found", 3),
    (["append", "t", "i", "state"], "input", 2),
    (["get", "t", "i", "none"], "not_found", 3),
    (["show", "t", "i", "state", "--version", "9"], "not_found", 3),
    (["ls", ".."], "bad_name", 2),
    (["versions", "t", "i", "none"], "not_found", 3),
    (["rm", "t", "i", "none"], "not_found", 3),
    (["mv", "t", "i", "state", "log"], "exists", 4),
    (["diff", "t", "i", "state", "1", "9"], "not_found", 3),
    (["query", "nam == 'x'"], "input", 2),
    (["search", "x", "--datastore", "filesystem:gone"], "unreachable", 5),
    (["usage", "--datastore", "s3:Not_A_Bucket"], "config", 2),
    (["retain", "--datastore", "filesystem:gone"], "unreachable", 5),
    (["prune"], "unconfirmed", 2),
    (["hold", "t", "i", "none"], "not_found", 3),
    (["catalog", "rebuild", "--datastore", "filesystem:gone"], "unreachable", 5),
    (["log", "--since", "yesterday"], "bad_time", 2),
    (["status", "--datastore", "@acme/blob:{}"], "unknown_datastore", 2),
    (["doctor", "nonsense"], "config", 2),
    (["spark", "nonsense"], "usage", 2),
    (["backends", "@acme/blob"], "unknown_datastore", 2),
    (["lock", "status", "--datastore", "filesystem:gone"], "unreachable", 5),
    (["lock", "release"], "input", 2),
    (["put", "t", "held", "n", "--lock-timeout", "0"], "lock_timeout", 75),
]

USAGE = [
    ["nonsense"],
    ["put", "--nonsense"],
    ["put", "t"],
    ["get", "t", "i"],
    ["ls", "a", "b", "c"],
    ["get", "t", "i", "n", "--version", "one"],
    ["get", "t", "i", "n", "--version"],
    ["log", "--kind", "nonsense"],
    ["log", "--limit", "0"],
    ["lock", "nonsense"],
    ["--nonsense"],
    ["put", "t", "i", "n", "--lock-timeout", "soon"],
]


@pytest.fixture
def stocked(run: Run, repo: Path, foreign_lock: Callable[..., Path]) -> Run:
    """A repository with something for every command to work on."""
    run("init")
    run("put", "t", "i", "state", "--content-type", "application/json", stdin=b'{"a": 1}')
    run("put", "t", "i", "state", "--content-type", "application/json", stdin=b'{"a": 2}')
    run("put", "t", "i", "log", "--streaming", stdin=b"one\n")
    foreign_lock(repo / ".swamp/data/t/held/.lock")
    (repo / "models").mkdir()
    (repo / "share").mkdir()
    return run


def test_the_tables_below_cover_every_command() -> None:
    """A new command without a line here fails the build."""
    assert {name.partition(".")[0] for name, _ in GOOD} | SPARKED == set(COMMANDS)
    assert {arguments[0] for arguments, _, _ in BAD} == set(COMMANDS)


@pytest.mark.parametrize("is_first", [True, False], ids=["before", "after"])
@pytest.mark.parametrize(("name", "arguments"), GOOD, ids=[" ".join(arguments) for _, arguments in GOOD])
def test_a_result_is_one_document(stocked: Run, name: str, arguments: list[str], *, is_first: bool) -> None:
    """Wherever --json stands, stdout is one object that names its schema, and stderr is empty."""
    arguments = [argument.replace("$PWD", str(Path.cwd())[1:]) for argument in arguments]
    line = ["--json", *arguments] if is_first else [*arguments, "--json"]
    if name == "setup":  # which waits for whoever writes a model
        Path(".swamp/data/t/held/.lock").unlink()
    result = stocked(*line, stdin=b"x")
    assert result.code == 0, result.err
    assert result.document["schema"] == f"mire.{name}/1"


@pytest.mark.parametrize("is_first", [True, False], ids=["before", "after"])
@pytest.mark.parametrize(("arguments", "kind", "code"), BAD, ids=[" ".join(arguments) for arguments, _, _ in BAD])
def test_an_error_is_one_document(stocked: Run, arguments: list[str], kind: str, code: int, *, is_first: bool) -> None:
    """Stderr is one object with kind, message and exit, and stdout is empty."""
    line = ["--json", *arguments] if is_first else [*arguments, "--json"]
    result = stocked(*line, stdin=b"x")
    assert result.code == code
    error = result.error
    assert (error["kind"], error["exit"]) == (kind, code)
    assert error["message"]
    assert "\n" not in error["message"]


@pytest.mark.parametrize("arguments", USAGE, ids=[" ".join(arguments) for arguments in USAGE])
def test_a_usage_error_is_one_document(stocked: Run, arguments: list[str]) -> None:
    """A line the grammar does not know is an error like any other."""
    result = stocked("--json", *arguments)
    assert result.code == 2
    assert result.error["kind"] == "usage"
    assert "\n" not in result.error["message"]


@pytest.mark.parametrize("arguments", USAGE, ids=[" ".join(arguments) for arguments in USAGE])
def test_a_usage_error_is_one_line_of_text(stocked: Run, arguments: list[str]) -> None:
    """Without --json it is one line that says where help is."""
    result = stocked(*arguments)
    assert result.code == 2
    assert "--help'." in result.line


@pytest.mark.parametrize("arguments", [["--json"], ["lock", "--json"], ["--json", "lock"]])
def test_a_missing_command_is_one_document(run: Run, arguments: list[str]) -> None:
    """A group without a command is a usage error too, not a page of help."""
    result = run(*arguments)
    assert result.code == 2
    assert result.error["kind"] == "usage"


def test_json_after_two_dashes_is_a_name(stocked: Run) -> None:
    """What follows `--` is an argument, so the result is text."""
    result = stocked("put", "t", "i", "--", "--json", stdin=b"x")
    assert (result.code, result.out) == (0, b"t/i --json: version 1, 1 B\n")


def test_global_options_stand_before_or_after_the_command(run: Run, tmp_path: Path) -> None:
    """--repo and --datastore mean the same in both places, and the last one given wins."""
    one, two, share = tmp_path / "one", tmp_path / "two", tmp_path / "share"
    for path in (one, two):
        assert run("--repo", str(path), "init").code == 0
    share.mkdir()
    assert run("--repo", str(one), "put", "t", "i", "a", stdin=b"1").code == 0
    assert run("put", "t", "i", "b", "--repo", str(one), stdin=b"1").code == 0
    assert run("--repo", str(two), "put", "t", "i", "c", "--repo", str(one), stdin=b"1").code == 0
    assert run("--datastore", f"filesystem:{share}", "put", "--repo", str(one), "t", "i", "d", stdin=b"1").code == 0
    assert sorted(path.name for path in (one / ".swamp/data/t/i").iterdir()) == ["a", "b", "c"]
    assert [path.name for path in (share / "data/t/i").iterdir()] == ["d"]
    assert not (two / ".swamp/data/t").exists()


def test_the_lock_group_takes_global_options_in_three_places(run: Run, repo: Path) -> None:
    """Before the group, between group and command, and after both."""
    run("init")
    for line in (["--json", "lock", "status"], ["lock", "--json", "status"], ["lock", "status", "--json"]):
        assert run(*line).document["schema"] == "mire.lock.status/1"
