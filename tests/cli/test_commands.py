"""Each command, and what it says to a person: one section per command."""

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import mire
from mire.model.names import Uuid
from mire.model.record import Output, Run

Run_ = Callable[..., Any]
Snapshot = Callable[[Path], dict[str, Any]]

DEFINITION = "31f6d0aa-8c47-4b0e-a5d9-e47c2b19f603"
WORKFLOW = "9d7f3c10-2b6a-4e88-8c31-6f5a0e9b4d21"


def test_init_makes_a_repository_the_reference_recognises(run: Run_, repo: Path) -> None:
    """A new repository has the marker with its version, time and id, and the reference's directories."""
    result = run("init")
    assert (result.code, result.err) == (0, b"")
    assert result.out.decode() == f"Created a repository: {repo}\n"
    marker = yaml.safe_load((repo / ".swamp.yaml").read_text())
    assert set(marker) == {"swampVersion", "initializedAt", "repoId"}
    assert {entry.name for entry in (repo / ".swamp").iterdir()} == {
        "data",
        "outputs",
        "workflow-runs",
        "workflows-evaluated",
        "definitions-evaluated",
        "secrets",
        "audit",
        ".gitignore",
    }
    assert (repo / ".swamp/.gitignore").read_text() == "*\n"


def test_init_again_changes_nothing(run: Run_, repo: Path, snapshot: Snapshot) -> None:
    """A repository that exists stays as it is, and the command says so."""
    assert run("init", "--json").document["created"] is True
    before = snapshot(repo)
    result = run("init")
    assert (result.code, result.out.decode()) == (0, f"Already a repository: {repo}\n")
    assert run("init", "--json").document["created"] is False
    assert snapshot(repo) == before


def test_init_of_a_named_directory_creates_it(run: Run_, repo: Path) -> None:
    """The directory of the argument becomes the repository, not the current one."""
    assert run("init", "inner").code == 0
    assert (repo / "inner" / ".swamp.yaml").is_file()
    assert not (repo / ".swamp.yaml").exists()


def test_init_below_a_missing_directory_is_refused(run: Run_, repo: Path, snapshot: Snapshot) -> None:
    """Only one level is created: a mistyped path is not."""
    result = run("init", "no/such")
    assert result.code == 3
    assert "'no/such'" in result.line
    assert snapshot(repo) == {}


def test_init_with_a_datastore_elsewhere_uses_it(run: Run_, repo: Path, tmp_path: Path) -> None:
    """The named directory is created, remembered, and is where data goes from then on."""
    share = tmp_path / "share"
    assert run("init", "--datastore", f"filesystem:{share}").code == 0
    assert yaml.safe_load((repo / ".swamp.yaml").read_text())["datastore"] == {
        "type": "filesystem",
        "path": str(share),
    }
    assert run("put", "t", "i", "n", stdin=b"x").code == 0
    assert (share / "data/t/i/n/1/raw").read_bytes() == b"x"
    assert not (repo / ".swamp/data/t").exists()


def test_init_remembers_a_path_below_home_portably(run: Run_, repo: Path, home: Path) -> None:
    """A path below the home directory is written as $HOME, so that it means everybody's own."""
    assert run("init", "--datastore", f"filesystem:{home}/store").code == 0
    assert yaml.safe_load((repo / ".swamp.yaml").read_text())["datastore"]["path"] == "$HOME/store"
    assert (home / "store").is_dir()
    assert run("put", "t", "i", "n", stdin=b"x").code == 0
    assert (home / "store/data/t/i/n/1/raw").read_bytes() == b"x"


SETTINGS = """\
# our lab
swampVersion: "2026.08.12.1"
repoId: 5b0c8a52-7d1e-4c39-9f44-2a6be01d7c15   # never change

futureSetting:
  - one # first
  - 7e10932
{block}# about retention
autoGc: true
"""


@pytest.mark.parametrize("block", ["", "datastore:\n  type: filesystem\n  path: old\n"])
def test_init_keeps_settings_and_comments(run: Run_, repo: Path, tmp_path: Path, block: str) -> None:
    """Pointing an existing repository elsewhere changes the datastore block and not one other byte."""
    (repo / ".swamp.yaml").write_text(SETTINGS.format(block=block))
    assert run("init", "--datastore", f"filesystem:{tmp_path}/share").code == 0
    new_block = f'datastore:\n  type: "filesystem"\n  path: "{tmp_path}/share"\n'
    text = (repo / ".swamp.yaml").read_text()
    assert text.count(new_block) == 1
    assert text.replace(new_block, "") == SETTINGS.format(block="")


def test_init_keeps_namespace_directories_and_exclude(run: Run_, repo: Path, tmp_path: Path) -> None:
    """They belong to the repository: losing the namespace would write into a neighbour's root."""
    (repo / ".swamp.yaml").write_text(
        "datastore:\n  type: filesystem\n  path: old\n  namespace: team-a\n  exclude: [logs]\n"
        "  directories: [data, outputs, logs]\n  futureSetting: 1\n"
    )
    assert run("init", "--datastore", f"filesystem:{tmp_path}/share").code == 0
    assert yaml.safe_load((repo / ".swamp.yaml").read_text())["datastore"] == {
        "type": "filesystem",
        "path": f"{tmp_path}/share",
        "namespace": "team-a",
        "exclude": ["logs"],
        "directories": ["data", "outputs", "logs"],
        "futureSetting": 1,
    }


@pytest.mark.parametrize("text", ["a: 1\n...\n", "---\na: 1\n", "a: 1", "", "# only a comment\n", "a: 1\r\nb: 2\r\n"])
def test_init_leaves_a_settings_file_that_can_be_read(run: Run_, repo: Path, tmp_path: Path, text: str) -> None:
    """Whatever the form of the file, the datastore named is the one in force afterwards."""
    (repo / ".swamp.yaml").write_bytes(text.encode())
    assert run("init", "--datastore", f"filesystem:{tmp_path}/share").code == 0
    assert run("status", "--json").document["datastore"]["path"] == f"{tmp_path}/share"


def test_init_refuses_unreadable_settings_before_it_writes(
    run: Run_, repo: Path, tmp_path: Path, snapshot: Snapshot
) -> None:
    """Settings that cannot be read stop the command before any directory exists."""
    (repo / ".swamp.yaml").write_text("a: [\n")
    before = snapshot(tmp_path)
    result = run("init", "--datastore", f"filesystem:{tmp_path}/share")
    assert result.code == 2
    assert ".swamp.yaml is not valid YAML" in result.line
    assert snapshot(tmp_path) == before


def test_put_takes_a_file(run: Run_, repo: Path) -> None:
    """A FILE argument is stored byte for byte, and the answer names model, version and size."""
    run("init")
    (repo / "state.bin").write_bytes(bytes(range(256)))
    result = run("put", "AWS::EC2::VPC", "vpc-1", "state", "state.bin")
    assert (result.code, result.out.decode()) == (0, "aws/ec2/vpc/vpc-1 state: version 1, 256 B\n")
    assert (repo / ".swamp/data/aws/ec2/vpc/vpc-1/state/1/raw").read_bytes() == bytes(range(256))
    assert (repo / ".swamp/data/aws/ec2/vpc/vpc-1/state/latest").read_bytes() == b"1"


@pytest.mark.parametrize("argument", [["-"], []])
@pytest.mark.parametrize("content", [b"", b"\x00\xff\r\n", b"text\n", bytes(3_000_000)])
def test_put_takes_standard_input(run: Run_, repo: Path, argument: list[str], content: bytes) -> None:
    """`-` and no FILE both mean standard input, whatever the bytes."""
    run("init")
    document = run("put", "t", "i", "n", *argument, "--json", stdin=content).document
    assert document["metadata"]["size"] == len(content)
    assert (repo / ".swamp/data/t/i/n/1/raw").read_bytes() == content


@pytest.mark.parametrize(
    ("file", "content_type", "kind"),
    [
        ("a.json", "application/json", "resource"),
        ("a.txt", "text/plain", "file"),
        ("a.csv", "text/csv", "file"),
        ("a.png", "image/png", "file"),
        ("a.unheard-of", "application/octet-stream", "file"),
        ("plain", "application/octet-stream", "file"),
        ("-", "application/octet-stream", "file"),
    ],
)
def test_put_guesses_the_content_type(run: Run_, repo: Path, file: str, content_type: str, kind: str) -> None:
    """The type comes from the file's name, and JSON is tagged as a resource."""
    run("init")
    (repo / file).write_bytes(b"{}")
    metadata = run("put", "t", "i", "n", file, "--json").document["metadata"]
    assert (metadata["contentType"], metadata["tags"]["type"]) == (content_type, kind)


def test_put_records_what_it_is_told(run: Run_, repo: Path) -> None:
    """Tags, content type, lifetime, version policy, owner and streaming all reach the metadata on disk."""
    run("init")
    options = ["--tag", "env=prod", "--tag", "equation=a=b", "--tag", "empty=", "--tag", "type=report"]
    options += ["--content-type", "text/markdown", "--lifetime", "90d", "--gc", "12", "--streaming"]
    document = run("put", "t", "i", "n", *options, "--owner", "workflow-step:build", "--json", stdin=b"x").document
    on_disk = yaml.safe_load((repo / ".swamp/data/t/i/n/1/metadata.yaml").read_text())
    assert on_disk == document["metadata"]
    assert on_disk["tags"] == {
        "type": "report",
        "specName": "n",
        "modelName": "i",
        "env": "prod",
        "equation": "a=b",
        "empty": "",
    }
    assert on_disk["contentType"] == "text/markdown"
    assert on_disk["lifetime"] == "90d"
    assert on_disk["garbageCollection"] == 12
    assert on_disk["streaming"] is True
    assert on_disk["ownerDefinition"] == {"ownerType": "workflow-step", "ownerRef": "build"}


@pytest.mark.parametrize(("gc", "stored"), [("1", 1), ("30d", "30d"), ("2mo", "2mo"), ("007", 7)])
def test_put_takes_a_number_or_an_age_to_keep(run: Run_, gc: str, stored: int | str) -> None:
    """A version policy is a number of versions or an age."""
    run("init")
    assert run("put", "t", "i", "n", "--gc", gc, "--json").document["metadata"]["garbageCollection"] == stored


@pytest.mark.parametrize(
    ("lifetime", "stored"), [("ephemeral", "ephemeral"), ("job", "job"), ("0d", "workflow"), ("00w", "workflow")]
)
def test_put_takes_a_lifetime(run: Run_, lifetime: str, stored: str) -> None:
    """Lifetimes are words or durations, and none at all means the workflow's."""
    run("init")
    assert run("put", "t", "i", "n", "--lifetime", lifetime, "--json").document["metadata"]["lifetime"] == stored


@pytest.mark.parametrize(
    "options",
    [
        ["--tag", "novalue"],
        ["--tag", "=v"],
        ["--lifetime", "forever"],
        ["--lifetime", "5x"],
        ["--gc", "0"],
        ["--gc", "-1"],
        ["--gc", "0d"],
        ["--gc", "infinite"],
        ["--gc", "1.5"],
        ["--gc", "٣"],
        ["--gc", "9" * 5_000],
        ["--owner", "nobody"],
        ["--owner", "robot:x"],
        ["--owner", "manual:"],
        ["--content-type", " "],
    ],
)
def test_put_refuses_bad_options(run: Run_, repo: Path, snapshot: Snapshot, options: list[str]) -> None:
    """A bad value is one line that shows it, and nothing is written."""
    run("init")
    before = snapshot(repo)
    result = run("put", "t", "i", "n", *options, stdin=b"x")
    assert result.code == 2
    assert options[1][:40] in result.line
    assert snapshot(repo) == before


def test_put_under_a_renamed_name_needs_revive(run: Run_) -> None:
    """A write under an old name would undo its forwarding, so it has to be asked for."""
    run("init")
    run("put", "t", "i", "old", stdin=b"1")
    run("mv", "t", "i", "old", "new")
    refused = run("put", "t", "i", "old", stdin=b"2")
    assert refused.code == 4
    assert "was renamed to 'new'" in refused.line
    assert run("put", "t", "i", "old", "--revive", "--json", stdin=b"3").document["metadata"]["version"] == 3
    assert run("get", "t", "i", "old").out == b"3"
    assert run("get", "t", "i", "new").out == b"1"


def test_append_grows_streaming_data(run: Run_, repo: Path) -> None:
    """The latest version grows from standard input or a file, and no new version appears."""
    run("init")
    run("put", "t", "i", "log", "--streaming", stdin=b"one\n")
    (repo / "more").write_bytes(b"three\n")
    result = run("append", "t", "i", "log", stdin=b"two\n")
    assert (result.code, result.out.decode()) == (0, "t/i log: version 1 is now 8 B\n")
    assert run("append", "t", "i", "log", "more").code == 0
    assert run("get", "t", "i", "log").out == b"one\ntwo\nthree\n"
    assert [item["version"] for item in run("versions", "t", "i", "log", "--json").document["versions"]] == [1]


def test_append_refuses_what_cannot_grow(run: Run_) -> None:
    """Ordinary data is refused as bad input, missing data as not found."""
    run("init")
    run("put", "t", "i", "state", stdin=b"1")
    assert run("append", "t", "i", "state", stdin=b"2").code == 2
    assert run("append", "t", "i", "nothing", stdin=b"2").code == 3
    assert run("get", "t", "i", "state").out == b"1"


@pytest.mark.parametrize("content", [b"", b"no newline", b"\x00\xff\xfe\r\n\n", "käse 🐊\n".encode()])
def test_get_prints_exactly_the_bytes(run: Run_, content: bytes) -> None:
    """Nothing is added, decoded or translated."""
    run("init")
    run("put", "t", "i", "n", stdin=content)
    result = run("get", "t", "i", "n")
    assert (result.code, result.out, result.err) == (0, content, b"")
    assert run("get", "t", "i", "n", "-o", "-").out == content


def test_get_takes_a_version(run: Run_) -> None:
    """An older version is had by its number, the latest without."""
    run("init")
    for text in (b"one", b"two", b"three"):
        run("put", "t", "i", "n", stdin=text)
    assert run("get", "t", "i", "n", "--version", "2").out == b"two"
    assert run("get", "t", "i", "n").out == b"three"
    assert run("get", "t", "i", "n", "--version", "4").code == 3


def test_get_follows_a_rename_but_not_by_number(run: Run_) -> None:
    """The old name answers with the content under the new one; its own history stays its own."""
    run("init")
    run("put", "t", "i", "old", stdin=b"1")
    run("mv", "t", "i", "old", "new")
    run("put", "t", "i", "new", stdin=b"2")
    assert run("get", "t", "i", "old").out == b"2"
    assert run("get", "t", "i", "old", "--version", "1").out == b"1"
    assert json.loads(run("get", "t", "i", "old", "--version", "2").out)["renamedTo"] == "new"


def test_get_writes_a_file_as_a_whole(run: Run_, repo: Path) -> None:
    """An existing longer file is replaced, and nothing else is left beside it."""
    run("init")
    run("put", "t", "i", "n", stdin=b"\x00new\xff")
    (repo / "out").mkdir()
    (repo / "out/file").write_bytes(b"something much longer than the new content")
    result = run("get", "t", "i", "n", "-o", "out/file")
    assert (result.code, result.out.decode()) == (0, "out/file: 5 B\n")
    assert (repo / "out/file").read_bytes() == b"\x00new\xff"
    assert os.listdir(repo / "out") == ["file"]


def test_get_keeps_the_old_file_when_content_is_damaged(run: Run_, repo: Path) -> None:
    """A file that exists is only replaced by verified content."""
    run("init")
    run("put", "t", "i", "n", stdin=b"good")
    (repo / ".swamp/data/t/i/n/1/raw").write_bytes(b"evil")
    (repo / "out").mkdir()
    (repo / "out/file").write_bytes(b"old")
    result = run("get", "t", "i", "n", "-o", "out/file")
    assert result.code == 7
    assert "damaged" in result.line
    assert {entry.name: entry.read_bytes() for entry in (repo / "out").iterdir()} == {"file": b"old"}


def test_get_does_not_replace_a_device_or_pipe(run: Run_, repo: Path) -> None:
    """Something that is not a regular file (think of /dev/null, as root) is never replaced by one."""
    run("init")
    run("put", "t", "i", "n", stdin=b"x")
    os.mkfifo(repo / "pipe")
    reader = os.open(repo / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        run("get", "t", "i", "n", "-o", "pipe")
        assert stat.S_ISFIFO((repo / "pipe").lstat().st_mode)
    finally:
        os.close(reader)


def test_get_to_an_impossible_place_is_refused(run: Run_, repo: Path, snapshot: Snapshot) -> None:
    """A directory in the place of the file, or a missing one above it, is a typed error that names it."""
    run("init")
    run("put", "t", "i", "n", stdin=b"x")
    (repo / "directory").mkdir()
    before = snapshot(repo)
    missing = run("get", "t", "i", "n", "-o", "no/such/file")
    assert missing.code == 3
    assert "no/such/file" in missing.line
    taken = run("get", "t", "i", "n", "-o", "directory")
    assert taken.code == 2
    assert "directory" in taken.line
    assert snapshot(repo) == before


@pytest.mark.parametrize(
    ("content", "content_type", "encoding", "shown"),
    [
        (b'{"a": [1, null]}', "application/json", "json", {"a": [1, None]}),
        (b"not json", "application/json", "utf-8", "not json"),
        ("käse\n".encode(), "text/plain", "utf-8", "käse\n"),
        (b"\x00\xff", "application/octet-stream", "base64", "AP8="),
        (b"", "text/plain", "utf-8", ""),
        (b"NaN", "application/json", "utf-8", "NaN"),
        (b"[1e999]", "application/json", "utf-8", "[1e999]"),
        (b'"\\ud800"', "application/json", "utf-8", '"\\ud800"'),
        (b"[" * 100_000 + b"]" * 100_000, "application/json", "utf-8", "[" * 100_000 + "]" * 100_000),
    ],
    ids=["json", "broken-json", "text", "binary", "empty", "nan", "infinity", "surrogate", "deep"],
)
def test_get_with_json_carries_the_content(
    run: Run_, content: bytes, content_type: str, encoding: str, shown: object
) -> None:
    """The document holds the content parsed, as text or in base64, and says which."""
    run("init")
    run("put", "t", "i", "n", "--content-type", content_type, stdin=content)
    document = run("get", "t", "i", "n", "--json").document
    assert (document["encoding"], document["content"]) == (encoding, shown)


def test_show_tells_what_is_known(run: Run_, repo: Path) -> None:
    """Metadata is shown to people line by line, and to programs under the names of the file."""
    run("init")
    run("put", "t", "i", "n", "--tag", "env=prod", "--lifetime", "30d", stdin=b"abc")
    run("put", "t", "i", "n", stdin=b"later")
    text = run("show", "t", "i", "n", "--version", "1").out.decode()
    facts = dict(line.split("  ", 1) for line in text.splitlines())
    assert facts["lifetime"].strip() == "30d"
    assert facts["size"].strip() == "3 B"
    assert "env=prod" in facts["tags"]
    document = run("show", "t", "i", "n", "--json").document
    assert document["path"] == str(repo / ".swamp/data/t/i/n/2/raw")
    assert document["metadata"] == yaml.safe_load((repo / ".swamp/data/t/i/n/2/metadata.yaml").read_text())


def test_show_says_that_a_name_was_renamed(run: Run_) -> None:
    """Asking by the old name answers with the new one, and says so."""
    run("init")
    run("put", "t", "i", "old", stdin=b"1")
    run("mv", "t", "i", "old", "new")
    assert "new (renamed from old)" in run("show", "t", "i", "old").out.decode()
    assert run("show", "t", "i", "old", "--version", "2", "--json").document["metadata"]["renamedTo"] == "new"


def test_ls_lists_models_then_names(run: Run_) -> None:
    """Without arguments every model, with a type its models, with an id its names."""
    run("init")
    assert run("ls").out == b"no models yet\n"
    run("put", "aws/vpc", "one", "state", stdin=b"1")
    run("put", "aws/vpc", "one", "log", stdin=b"1")
    run("put", "docker", "two", "state", stdin=b"1")
    lines = run("ls").out.decode().splitlines()
    assert [line.split() for line in lines] == [
        ["TYPE", "ID", "NAMES"],
        ["aws/vpc", "one", "2"],
        ["docker", "two", "1"],
    ]
    assert [m["modelId"] for m in run("ls", "Docker", "--json").document["models"]] == ["two"]
    assert run("ls", "nothing", "--json").document["models"] == []
    names = run("ls", "AWS::VPC", "one", "--json").document
    assert [(item["name"], item["version"], item["size"]) for item in names["items"]] == [
        ("log", 1, 1),
        ("state", 1, 1),
    ]
    assert run("ls", "aws/vpc", "none").out == b"aws/vpc/none has no data\n"


def test_ls_hides_what_is_gone_unless_asked(run: Run_) -> None:
    """Deleted and renamed names appear with --all only, and say where they went."""
    run("init")
    for name in ("kept", "gone", "old"):
        run("put", "t", "i", name, stdin=b"1")
    run("rm", "t", "i", "gone", "--mark")
    run("mv", "t", "i", "old", "new")
    listed = {item["name"]: item for item in run("ls", "t", "i", "--json").document["items"]}
    assert set(listed) == {"kept", "new"}
    everything = {item["name"]: item for item in run("ls", "t", "i", "--all", "--json").document["items"]}
    assert {name: item["lifecycle"] for name, item in everything.items()} == {
        "gone": "deleted",
        "kept": "active",
        "new": "active",
        "old": "deleted",
    }
    assert everything["old"]["renamedTo"] == "new"
    assert "renamed to new" in run("ls", "t", "i", "--all").out.decode()


def test_ls_shows_damage_instead_of_hiding_it(run: Run_, repo: Path) -> None:
    """A name whose metadata cannot be read is listed with what is wrong; the others are listed as always."""
    run("init")
    run("put", "t", "i", "bad", stdin=b"1")
    run("put", "t", "i", "good", stdin=b"1")
    (repo / ".swamp/data/t/i/bad/1/metadata.yaml").write_text("id: [\n")
    items = {item["name"]: item for item in run("ls", "t", "i", "--json").document["items"]}
    assert items["good"]["version"] == 1
    assert "not valid YAML" in items["bad"]["error"]
    assert "damaged: " in run("ls", "t", "i").out.decode()


def test_ls_shows_names_that_are_not_utf8(run: Run_, repo: Path) -> None:
    """A directory whose name is no text is listed as damaged, in valid UTF-8."""
    run("init")
    run("put", "t", "i", "good", stdin=b"1")
    os.makedirs(os.fsencode(repo) + b"/.swamp/data/t/i/\xff/1")
    Path(os.fsdecode(os.fsencode(repo) + b"/.swamp/data/t/i/\xff/1/metadata.yaml")).write_text("id: x\n")
    items = run("ls", "t", "i", "--json").document["items"]
    assert [item["name"] for item in items if "error" not in item] == ["good"]
    assert len(items) == 2


def test_versions_lists_the_newest_first(run: Run_) -> None:
    """Each version has size, time and checksum, and one is the latest."""
    run("init")
    for text in (b"1", b"22", b"333"):
        run("put", "t", "i", "n", stdin=text)
    run("rm", "t", "i", "n", "--version", "2")
    items = run("versions", "t", "i", "n", "--json").document["versions"]
    assert [(item["version"], item["size"], item["isLatest"]) for item in items] == [(3, 3, True), (1, 1, False)]
    lines = run("versions", "t", "i", "n").out.decode().splitlines()
    assert lines[0].split() == ["VERSION", "SIZE", "CREATED", "STATE"]
    assert lines[1].split()[0] == "3"
    assert lines[1].split()[-1] == "latest"
    assert run("versions", "t", "i", "none").code == 3


def test_versions_shows_a_damaged_one(run: Run_, repo: Path) -> None:
    """One unreadable version does not hide the others."""
    run("init")
    run("put", "t", "i", "n", stdin=b"1")
    run("put", "t", "i", "n", stdin=b"2")
    (repo / ".swamp/data/t/i/n/1/metadata.yaml").write_text("name: n\n")
    items = run("versions", "t", "i", "n", "--json").document["versions"]
    assert [(item["version"], "error" in item) for item in items] == [(2, False), (1, True)]


def test_rm_removes_a_version(run: Run_) -> None:
    """The named version goes, the rest stays, and its number is not given out again."""
    run("init")
    run("put", "t", "i", "n", stdin=b"1")
    run("put", "t", "i", "n", stdin=b"2")
    result = run("rm", "t", "i", "n", "--version", "2")
    assert (result.code, result.out.decode()) == (0, "t/i n: version 2 deleted\n")
    assert run("get", "t", "i", "n").out == b"1"
    assert run("rm", "t", "i", "n", "--version", "2").code == 3
    assert run("put", "t", "i", "n", "--json", stdin=b"3").document["metadata"]["version"] == 3


def test_rm_removes_a_name(run: Run_, repo: Path) -> None:
    """All versions go, and the numbers stay used."""
    run("init")
    run("put", "t", "i", "n", stdin=b"1")
    run("put", "t", "i", "n", stdin=b"2")
    document = run("rm", "t", "i", "n", "--json").document
    assert (document["versions"], document["wholeName"]) == ([1, 2], True)
    assert run("get", "t", "i", "n").code == 3
    assert run("rm", "t", "i", "n").code == 3
    assert run("ls", "t", "i", "--all", "--json").document["items"] == []
    assert not (repo / ".swamp/data/t/i/n/1").exists()
    assert run("put", "t", "i", "n", "--json", stdin=b"3").document["metadata"]["version"] == 3


def test_rm_mark_ends_a_name_and_keeps_its_history(run: Run_) -> None:
    """The latest version says it is gone, with the last attributes; earlier ones can still be read."""
    run("init")
    run("put", "t", "i", "n", "--content-type", "application/json", stdin=b'{"cidr": "10/8"}')
    result = run("rm", "t", "i", "n", "--mark")
    assert (result.code, result.out.decode()) == (0, "t/i n: marked deleted by version 2\n")
    gone = run("get", "t", "i", "n")
    assert gone.code == 3
    assert "was deleted" in gone.line
    assert run("get", "t", "i", "n", "--version", "1").out == b'{"cidr": "10/8"}'
    marker = json.loads(run("get", "t", "i", "n", "--version", "2").out)
    assert marker["cidr"] == "10/8"
    assert set(marker) == {"cidr", "deletedAt", "deletedByMethod"}
    assert run("rm", "t", "i", "n", "--mark").code == 4
    assert run("rm", "t", "i", "n", "--mark", "--version", "1").code == 2


def test_mv_renames_and_forwards(run: Run_) -> None:
    """The new name has the content, the old one forwards, and both version numbers are told."""
    run("init")
    run("put", "t", "i", "old", stdin=b"1")
    run("put", "t", "i", "old", stdin=b"2")
    document = run("mv", "t", "i", "old", "new", "--json").document
    assert (document["copiedVersion"], document["newVersion"], document["tombstoneVersion"]) == (2, 1, 3)
    assert run("get", "t", "i", "new").out == b"2"
    assert run("get", "t", "i", "old").out == b"2"


def test_mv_refuses_what_it_cannot_do(run: Run_, repo: Path, snapshot: Snapshot) -> None:
    """Onto an active name, onto itself, or from nothing: refused, and nothing is written."""
    run("init")
    run("put", "t", "i", "one", stdin=b"1")
    run("put", "t", "i", "two", stdin=b"2")
    before = snapshot(repo)
    taken = run("mv", "t", "i", "one", "two")
    assert taken.code == 4
    assert "'two' already exists" in taken.line
    assert run("mv", "t", "i", "one", "one").code == 2
    assert run("mv", "t", "i", "none", "three").code == 3
    assert snapshot(repo) == before


@pytest.fixture
def recorded(repo: Path) -> mire.Store:
    """One record of each kind, at known times."""
    store = mire.open(repo)
    store.outputs.save(
        Output(
            model_type="svc",
            id="96762942-6798-4127-8342-e606a845380f",
            definition_id=DEFINITION,
            method_name="deploy",
            status="failed",
            started_at="2026-05-17T08:00:00.000Z",
            provenance={"definitionHash": "abc", "modelVersion": "1", "triggeredBy": "manual"},
        )
    )
    store.runs.save(
        Run(
            id=Uuid("871d6d04-daf1-45d7-8523-71915fe88478"),
            workflow_id=Uuid(WORKFLOW),
            workflow_name="sweep",
            status="succeeded",
            started_at="2026-05-17T09:00:00.000Z",
        )
    )
    store.audit.command("deploy web", exit_code=3, timestamp="2026-05-17T10:00:00.000Z")
    return store


def test_log_shows_everything_newest_first(run: Run_, recorded: mire.Store) -> None:
    """Outputs, runs and audit events stand in one list by time."""
    document = run("log", "--json").document
    assert [(event["kind"], event["what"], event["status"]) for event in document["events"]] == [
        ("audit", "deploy web", "exit 3"),
        ("run", "sweep", "succeeded"),
        ("output", "svc deploy", "failed"),
    ]
    assert (document["total"], document["damaged"]) == (3, [])
    lines = run("log").out.decode().splitlines()
    assert lines[0].split() == ["TIME", "KIND", "WHAT", "STATUS"]
    assert lines[1].split()[0] == "2026-05-17T10:00:00.000Z"


def test_log_can_be_narrowed(run: Run_, recorded: mire.Store) -> None:
    """By kind, by time (the time itself included) and by number, with the rest counted."""
    for kind in ("output", "run", "audit"):
        assert [event["kind"] for event in run("log", "--kind", kind, "--json").document["events"]] == [kind]
    since = run("log", "--since", "2026-05-17T09:00:00.000Z", "--json").document
    assert [event["kind"] for event in since["events"]] == ["audit", "run"]
    limited = run("log", "--limit", "1", "--json").document
    assert ([event["kind"] for event in limited["events"]], limited["total"]) == (["audit"], 3)
    assert "(2 more: raise --limit)" in run("log", "--limit", "1").out.decode()


@pytest.mark.parametrize("since", ["2026-05-17T10:00Z", "2026-05-17T10:00:00Z", "2026-05-17T10:00:00.0Z"])
def test_log_since_compares_times_not_texts(run: Run_, recorded: mire.Store, since: str) -> None:
    """An event at the very moment of --since is shown, however many digits either of them has."""
    assert [event["what"] for event in run("log", "--since", since, "--json").document["events"]] == ["deploy web"]


def test_log_reports_damaged_records(run: Run_, repo: Path, recorded: mire.Store) -> None:
    """What cannot be read is told with its place, in both forms, and the rest is shown."""
    bad = repo / f".swamp/workflow-runs/{WORKFLOW}/workflow-run-34e9aede-fffd-4f04-83cf-3f9e055ba714.yaml"
    bad.write_text("id: [\n")
    audit = repo / ".swamp/audit/commands-2026-05-17.jsonl"
    audit.write_bytes(audit.read_bytes() + b'{"timestamp":"2026-05')
    document = run("log", "--json").document
    assert {item["path"] for item in document["damaged"]} == {str(bad), f"{audit}:2"}
    assert document["total"] == 3
    assert sum(line.startswith("damaged: ") for line in run("log").out.decode().splitlines()) == 2


def test_log_of_nothing_says_so(run: Run_) -> None:
    """An empty repository has an empty log, which is not an error."""
    run("init")
    assert run("log").out == b"nothing recorded yet\n"
    assert run("log", "--json").document["events"] == []


def test_status_of_a_healthy_store(run: Run_, repo: Path, snapshot: Snapshot) -> None:
    """A usable datastore is healthy, exit 0, and the check leaves nothing behind."""
    run("init")
    before = snapshot(repo)
    result = run("status")
    assert result.code == 0
    assert "ok: readable and writable" in result.out.decode()
    document = run("status", "--json").document
    assert document["healthy"] is True
    assert document["datastore"] == {
        "type": "filesystem",
        "path": str(repo / ".swamp"),
        "from": "default",
        "namespace": "",
    }
    assert snapshot(repo) == before


def test_status_of_an_unusable_store(run: Run_, tmp_path: Path) -> None:
    """A datastore that is not there is reported in full, with exit 5."""
    run("init")
    result = run("status", "--datastore", f"filesystem:{tmp_path}/gone", "--json")
    assert result.document["healthy"] is False
    assert result.code == 5


def test_status_outside_a_repository(run: Run_, repo: Path, snapshot: Snapshot) -> None:
    """A directory that is no repository yet is not healthy, and does not become one."""
    result = run("status", "--json")
    assert "mire init" in result.document["message"]
    assert snapshot(repo) == {}
    assert result.code == 5


def test_status_counts_locks(run: Run_, repo: Path, foreign_lock: Callable[..., Path]) -> None:
    """The locks that exist are counted."""
    run("init")
    foreign_lock(repo / ".swamp/data/t/i/.lock")
    assert run("status", "--json").document["locks"] == 1


def test_lock_status_shows_who_holds_what(run: Run_, repo: Path, foreign_lock: Callable[..., Path]) -> None:
    """Held, expired and garbled locks are listed, the global one first."""
    run("init")
    assert run("lock", "status").out == b"no locks\n"
    foreign_lock(repo / ".swamp/.datastore.lock")
    old = foreign_lock(repo / ".swamp/data/t/expired/.lock")
    os.utime(old, (1_000_000_000, 1_000_000_000))
    garbled = foreign_lock(repo / ".swamp/data/t/garbled/.lock")
    garbled.write_bytes(b"{}")
    locks = run("lock", "status", "--json").document["locks"]
    assert [(lock["key"], lock["stale"], lock["lease"] is None) for lock in locks] == [
        (".datastore.lock", False, False),
        ("data/t/expired/.lock", True, False),
        ("data/t/garbled/.lock", False, True),
    ]
    assert locks[0]["lease"]["holder"] == "ada@elsewhere"
    assert 0 <= locks[0]["ageMs"] < 30_000
    text = run("lock", "status").out.decode()
    assert "ada@elsewhere" in text
    assert "unknown (its body is empty or garbled)" in text


def test_lock_release_removes_exactly_the_named_lock(run: Run_, repo: Path, foreign_lock: Callable[..., Path]) -> None:
    """A model's lock by TYPE/ID, the global one otherwise, and never without --force."""
    run("init")
    everything = foreign_lock(repo / ".swamp/.datastore.lock")
    model = foreign_lock(repo / ".swamp/data/aws/vpc/one/.lock")
    assert run("lock", "release").code == 2
    assert run("lock", "release", "--model", "aws/vpc/one").code == 2
    assert everything.exists()
    assert model.exists()
    result = run("lock", "release", "--model", "AWS::VPC/one", "--force")
    assert (result.code, result.out.decode()) == (0, "released data/aws/vpc/one/.lock, held by ada@elsewhere\n")
    assert (everything.exists(), model.exists()) == (True, False)
    assert run("lock", "release", "--force", "--json").document["released"][0]["key"] == ".datastore.lock"
    assert not everything.exists()
    assert run("lock", "release", "--force").code == 3
    assert run("lock", "release", "--force", "--model", "aws/vpc/one").code == 3
    assert run("lock", "release", "--force", "--model", "one").code == 2
    assert run("lock", "release", "--force", "--model", "aws/../one").code == 2


def test_lock_release_of_a_garbled_lock(run: Run_, repo: Path, foreign_lock: Callable[..., Path]) -> None:
    """A lock nobody can read can still be removed by force."""
    run("init")
    lock = foreign_lock(repo / ".swamp/data/t/i/.lock")
    lock.write_bytes(b"")
    assert run("lock", "release", "--force", "--model", "t/i").code == 0
    assert not lock.exists()


@pytest.mark.parametrize("name", ["red\x9b31m", "back\u202ewards", "line\u2028break", "isolate\u2066d"])
def test_control_characters_do_not_reach_the_terminal(run: Run_, name: str) -> None:
    """A name that holds control or direction characters is shown escaped by every command that prints it."""
    run("init")
    shown = [run("put", "t", "i", name, "--streaming", stdin=b"x"), run("append", "t", "i", name, stdin=b"y")]
    shown += [run("ls", "t", "i"), run("show", "t", "i", name), run("versions", "t", "i", name)]
    shown += [run("mv", "t", "i", name, f"{name}2"), run("rm", "t", "i", f"{name}2")]
    assert [result.code for result in shown] == [0] * 7
    control = next(char for char in name if not char.isprintable())
    assert not any(control in result.out.decode() for result in shown)


def test_help_names_every_command(run: Run_) -> None:
    """The overview lists the commands a user can run."""
    text = run("--help").out.decode()
    for command in ("init", "put", "append", "get", "show", "ls", "versions", "rm", "mv", "log", "status", "lock"):
        assert f"\n  {command} " in text
    assert run("--version").out.decode() == f"mire {mire.__version__}\n"
