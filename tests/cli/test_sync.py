"""Push, pull, sync, hydrate and the life of a change at the command line, against our S3 server and a directory."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mire.testing.faults import Fail
from mire.testing.gcsserver import GcsServer
from mire.testing.s3server import Credentials, S3Server

Run = Callable[..., Any]
KEY, SECRET = "mire-access", "mire-secret"
STATE = "data/aws/ec2/vpc/vpc-1/state"
NAME = ("aws/ec2/vpc", "vpc-1", "state")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    """Our S3 server with a bucket, and the credentials it wants in the environment."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    with S3Server(["bucket"], credentials=Credentials(access_key=KEY, secret_key=SECRET)) as running:
        yield running


@dataclass(frozen=True)
class Repository:
    """A repository whose commands are run by name."""

    run: Run
    path: Path
    home: Path

    def __call__(self, *arguments: str, stdin: bytes = b"") -> Any:
        """Run a command in it."""
        return self.run("--repo", str(self.path), *arguments, stdin=stdin)

    def put(self, text: str, *arguments: str) -> Any:
        """Write the next version of the one name."""
        return self("put", *NAME, *arguments, stdin=text.encode())

    def get(self, *arguments: str) -> Any:
        """Read the one name."""
        return self("get", *NAME, *arguments)

    @property
    def cache(self) -> Path:
        """The directory that mirrors the remote."""
        return Path(self("status", "--json").document["cache"]["path"])


@pytest.fixture
def joined(run: Run, home: Path, tmp_path: Path) -> Callable[..., Repository]:
    """Make a repository that syncs with a store."""

    def make(name: str, url: str, *options: str) -> Repository:
        repository = Repository(run, tmp_path / name, home)
        assert repository("init").code == 0
        done = repository("setup", url, "--yes", *options)
        assert done.code == 0, done.err
        return repository

    return make


@pytest.fixture
def url(server: S3Server) -> str:
    """The address of the bucket."""
    return f"s3://bucket/prod?endpoint={server.url}"


@pytest.fixture
def pair(joined: Callable[..., Repository], url: str) -> tuple[Repository, Repository]:
    """Two repositories that share the bucket; the server counts from here on."""
    return joined("one", url), joined("two", url)


Pair = tuple[Repository, Repository]


def test_what_one_writes_the_other_pulls(pair: Pair) -> None:
    """A put is published by itself; a pull brings what tells of it, and reading brings the content."""
    one, two = pair
    assert one.put("1").code == 0
    assert two.get().code == 3
    document = two("pull", "--json").document
    assert (len(document["brought"]), document["leftOut"], document["conflicts"]) == (2, 1, [])
    assert two.get().out == b"1"
    assert two("pull").out == b"nothing to pull\n"
    assert one("push").out == b"nothing to push\n"


def test_reading_asks_the_remote_nothing(pair: Pair, server: S3Server) -> None:
    """No read command makes a request, unless --max-age says how old the answer may be."""
    one, two = pair
    one.put("1")
    two("pull", "--full")
    server.reset()
    reads = (
        ["get", *NAME],
        ["show", *NAME],
        ["ls"],
        ["versions", *NAME],
        ["diff", *NAME, "1", "1"],
        ["query", 'name == "state"'],
        ["search", "state"],
        ["usage"],
        ["log"],
        ["status"],
        ["kept"],
        ["verify", "--local"],
    )
    for line in reads:
        assert two(*line).code == 0, line
        assert server.counts() == {}, line
    for line in reads[:-2]:
        assert two(*line, "--max-age", "3600").code == 0, line
    assert server.counts() == {}
    one.put("2")
    assert two.get("--max-age", "0").out == b"2"


@pytest.mark.parametrize(
    "line",
    [
        ["append", "svc", "web", "log"],
        ["mv", "svc", "web", "state", "status"],
        ["rm", "svc", "web", "state"],
        ["rm", "svc", "web", "state", "--version", "1"],
        ["rm", "svc", "web", "state", "--mark"],
        ["hold", "svc", "web", "state"],
    ],
    ids=" ".join,
)
def test_a_write_knows_what_others_wrote(pair: Pair, line: list[str]) -> None:
    """Nobody has to pull before changing what another repository wrote; it is pulled under the lock."""
    one, two = pair
    one("put", "svc", "web", "state", "--content-type", "application/json", stdin=b"{}")
    one("put", "svc", "web", "log", "--streaming", stdin=b"1")
    done = two(*line, stdin=b"2")
    assert done.code == 0, done.err
    assert one("sync").code == 0


def test_a_write_costs_the_other_models_nothing(pair: Pair, server: S3Server) -> None:
    """Only the paths that changed are uploaded."""
    one, _ = pair
    for number in range(3):
        one("put", "svc", f"web-{number}", "state", stdin=b"x")
    server.reset()
    one.put("1")
    stored = {entry.key for entry in server.log() if entry.operation == "PutObject"}
    assert not any("svc" in key for key in stored)
    assert f"prod/{STATE}/1/raw" in stored


def test_offline_work_waits_and_is_published_later(pair: Pair, server: S3Server) -> None:
    """With the server gone a put works on the cache and says so; the next push publishes it."""
    one, two = pair
    one.put("1")
    server.stop()
    put = one.put("2")
    assert put.code == 0
    assert b"mire: note: the remote could not be reached" in put.err
    assert b"'mire push' publishes it" in put.err
    assert one.get().out == b"2"
    waiting = one("status", "--json").document["cache"]["dirty"]
    assert [path.removeprefix(STATE) for path in waiting] == ["/2", "/latest"]
    failed = one("push", "--json")
    assert (failed.code, failed.error["exit"]) == (5, 5)
    assert "stays marked" in failed.error["message"]
    stale = one.get("--max-age", "0")
    assert (stale.code, stale.out) == (0, b"2")
    assert b"so this answer is" in stale.err
    server.start()
    assert [path.removeprefix(STATE) for path in one("push", "--dry-run", "--json").document["sent"]] == [
        "/2/metadata.yaml",
        "/2/raw",
        "/latest",
    ]
    sent = one("push", "--json").document["sent"]
    assert len(sent) == 3
    assert one("status", "--json").document["cache"]["dirty"] == []
    assert two.get("--max-age", "0").out == b"2"


def test_a_notice_is_part_of_an_error_document(pair: Pair, server: S3Server) -> None:
    """With --json an error stays one document, and what else there is to say is inside."""
    one, _ = pair
    server.stop()
    error = one.get("--max-age", "0", "--json").error
    assert error["kind"] == "not_found"
    assert "could not be reached" in error["notices"][0]


@pytest.fixture
def split(pair: Pair, server: S3Server) -> Pair:
    """Both wrote version 2 of one name, one of them without the server."""
    one, two = pair
    one.put("1")
    two("pull", "--full")
    server.stop()
    one.put("ours")
    server.start()
    assert two.put("theirs").code == 0
    return pair


def test_a_conflict_is_listed_with_both_versions(split: Pair) -> None:
    """Neither a push nor a pull overwrites anything; both say where the two versions are, with exit 4."""
    one, two = split
    pushed = one("push", "--json")
    assert pushed.code == 4
    conflicts = pushed.document["conflicts"]
    assert [item["path"].removeprefix(STATE) for item in conflicts] == ["/2/metadata.yaml", "/2/raw"]
    assert Path(conflicts[1]["ours"]).read_text() == "ours"
    assert conflicts[1]["theirs"] == f"s3://bucket/prod/{STATE}/2/raw"
    pulled = one("pull", "--json")
    assert pulled.code == 4
    assert Path(pulled.document["conflicts"][1]["theirs"]).read_text() == "theirs"
    assert (one.get().out, two.get().out) == (b"ours", b"theirs")
    status = one("status", "--remote", "--json").document
    assert (status["cache"]["conflicts"], len(status["cache"]["kept"])) == (2, 2)
    text = one("sync")
    assert text.code == 4
    assert text.out.count(b"conflict: ") == 2
    assert b"2 of the conflicts above not sent" in text.out


def test_ours_wins_when_we_say_so(split: Pair) -> None:
    """After push --ours the other one pulls our version."""
    one, two = split
    assert len(one("push", "--ours", "--dry-run", "--json").document["sent"]) == 2
    done = one("push", "--ours")
    assert (done.code, done.out.count(b"ours won: ")) == (0, 2)
    kept = one("kept", "--json").document["kept"]
    assert [item["path"].removeprefix(STATE) for item in kept] == ["/2/metadata.yaml", "/2/raw"]
    assert Path(kept[1]["file"]).read_text() == "theirs"
    assert f"theirs is kept in  {kept[1]['file']}" in done.out.decode()
    assert two.get("--max-age", "0").out == b"ours"


def test_theirs_wins_when_we_say_so(split: Pair) -> None:
    """After pull --theirs we have their version, and ours is kept beside the cache."""
    one, _ = split
    document = one("pull", "--theirs", "--json").document
    kept = {Path(item["ours"]).read_text() for item in document["resolved"] if item["path"].endswith("raw")}
    assert kept == {"ours"}
    assert one.get().out == b"theirs"
    assert one("push").out == b"nothing to push\n"
    files = one("status", "--json").document["cache"]["files"]
    assert files == one("verify", "--local", "--json").document["here"]


def test_kept_versions_are_listed_and_removed(split: Pair) -> None:
    """A version that is in its place by now goes by itself; others go when somebody says so, with their directories."""
    one, _ = split
    one("pull")
    assert {Path(item["file"]).read_text() for item in one("kept", "--json").document["kept"][1:]} == {"theirs"}
    one("pull", "--theirs")
    kept = one("kept", "--json").document["kept"]
    assert [Path(item["file"]).read_text() for item in kept if item["path"].endswith("raw")] == ["ours"]
    assert b"mire kept" in one("status").out
    raw = f"{STATE}/2/raw"
    assert one("kept", "--remove", raw, "--dry-run").out.startswith(b"would remove ")
    assert [item["path"] for item in one("kept", "--remove", raw, "--json").document["removed"]] == [raw]
    assert one("kept", "--remove", raw).code == 3
    assert len(one("kept", "--remove", "data", "--json").document["removed"]) == 1
    assert one("kept").out == b"nothing is kept\n"
    cache = Path(one("status", "--json").document["cache"]["path"])
    assert list((cache / "_index/mire-conflicts").iterdir()) == []
    for line in (["--remove"], ["--remove", "x", "--all"], ["x"], ["--dry-run"]):
        assert one("kept", *line).code == 2


def test_one_model_is_pulled_alone(pair: Pair) -> None:
    """--model brings that model and no other; sync pushes whatever is marked."""
    one, two = pair
    for number in range(2):
        one("put", "svc", f"web-{number}", "state", stdin=b"x")
    brought = two("pull", "--model", "svc/web-1", "--json").document["brought"]
    assert brought
    assert all(path.startswith("data/svc/web-1/") for path in brought)
    assert two("get", "svc", "web-0", "state").code == 3
    document = two("sync", "--model", "svc/web-0", "--json").document
    assert len(document["pull"]["brought"]) == 2
    assert document["push"]["sent"] == []


def test_a_dry_run_has_the_numbers_of_the_real_one(pair: Pair) -> None:
    """What a dry run lists is what the real run then does, for a push and for a pull."""
    one, two = pair
    one.put("1")
    before = two("pull", "--dry-run", "--json").document
    after = two("pull", "--json").document
    assert {**before, "dryRun": False} == after
    cache = one.cache
    (cache / "audit").mkdir()
    (cache / "audit" / "commands-2026-01-01.jsonl").write_text("{}\n")
    planned = one("push", "--full", "--dry-run", "--json").document
    assert planned["sent"] == ["audit/commands-2026-01-01.jsonl"]
    assert {**planned, "dryRun": False} == one("push", "--full", "--json").document


def test_content_comes_when_it_is_asked_for(pair: Pair, server: S3Server) -> None:
    """Hydrating brings one version, a model or everything, once, and says how much that was."""
    one, two = pair
    for text in ("1", "22", "333"):
        one.put(text)
    one("put", "svc", "web", "state", stdin=b"4444")
    two("pull")
    assert two("status", "--json").document["cache"]["unhydrated"] == 4
    planned = two("hydrate", "--all", "--dry-run", "--json").document
    assert (len(planned["brought"]), planned["bytes"]) == (4, 10)
    assert two("hydrate", *NAME, "--version", "2", "--json").document["brought"] == [f"{STATE}/2/raw"]
    assert two("hydrate", *NAME).out == b"brought 1 file, 3 B\n"
    assert two("hydrate", "--model", "svc/web", "--json").document["bytes"] == 4
    assert len(two("hydrate", "--all", "--json").document["brought"]) == 1
    server.reset()
    assert two("hydrate", "--all").out == b"everything is here\n"
    assert server.counts() == {}


def test_a_lost_file_comes_back(pair: Pair) -> None:
    """A file that went away in the cache is brought again by hydrate, whatever it was."""
    one, _ = pair
    one.put("1")
    cache = one.cache
    (cache / STATE / "latest").unlink()
    (cache / STATE / "1/raw").unlink()
    assert len(one("hydrate", "--all", "--json").document["brought"]) == 2
    assert one.get().out == b"1"


def test_what_cannot_be_brought_is_told(pair: Pair, server: S3Server) -> None:
    """An entry without its object is a finding with exit 5, and the rest is brought."""
    one, two = pair
    one.put("1")
    one("put", "svc", "web", "state", stdin=b"2")
    server.delete("bucket", f"prod/{STATE}/1/metadata.yaml")
    done = two("pull", "--full", "--json")
    assert done.code == 5
    assert any("its object is not there" in finding for finding in done.document["findings"])
    assert two("get", "svc", "web", "state").out == b"2"


def test_wrong_credentials_are_one_line(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit 6 and what to do; the work stays marked, and reading goes on."""
    one, _ = pair
    one.put("1")
    (one.cache / STATE / "1/raw").write_text("changed")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    for line in (["pull"], ["push", "--full"], ["status", "--remote"]):
        result = one(*line)
        assert result.code in (5, 6), line
        assert b"credentials" in result.err + result.out
    result = one.put("2")
    assert (result.code, b"credentials" in result.err) == (6, True)
    assert one("ls").code == 0


def test_a_newer_format_is_neither_pulled_nor_pushed(pair: Pair, server: S3Server) -> None:
    """The marker is obeyed before anything is asked or written."""
    one, two = pair
    one.put("1")
    (one.cache / STATE / "1/raw").write_text("x")
    server.put("bucket", "prod/_control/datastore-format", b'{"format": 9}')
    keys = server.keys("bucket")
    for repository, line in ((one, ["push", "--full"]), (two, ["pull"]), (two, ["ls", "--max-age", "0"])):
        error = repository(*line, "--json").error
        assert (error["kind"], error["exit"]) == ("datastore_format_unsupported", 7)
    assert server.keys("bucket") == keys


def test_a_marker_that_cannot_be_read_forbids_a_push(pair: Pair, server: S3Server) -> None:
    """Reading goes on, writing does not, and the marks wait."""
    one, two = pair
    one.put("1")
    (one.cache / STATE / "1/raw").write_text("x")
    server.inject(Fail(403, "AccessDenied"), key="prod/_control/datastore-format", times=None)
    error = one("push", "--full", "--json").error
    assert (error["kind"], error["exit"]) == ("read_only", 6)
    assert two("pull").code == 0


def test_a_sync_that_takes_too_long_says_what_to_do(
    pair: Pair, server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the timeout no request is made, and the message names the ways out; the marks wait."""
    one, _ = pair
    server.stop()
    one.put("1")
    server.start()
    now = iter(range(0, 10**9, 2_000))
    with monkeypatch.context() as patch:
        patch.setattr("mire.edge.timed.Timed.__init__.__kwdefaults__", {"now_ms": lambda: float(next(now))})
        error = one("push", "--timeout", "5", "--json").error
    assert (error["kind"], error["exit"]) == ("sync_timeout", 5)
    for word in ("5 s", "stays marked", "--timeout", "--model", "mire doctor"):
        assert word in error["message"]
    assert len(one("status", "--json").document["cache"]["dirty"]) == 2


def test_a_cache_that_was_never_filled_says_so(joined: Callable[..., Repository], url: str, run: Run) -> None:
    """A lookup that finds nothing and an empty list tell to pull."""
    joined("one", url).put("1")
    assert run("init", "--datastore", url).code == 0
    assert "was never filled: run 'mire pull'" in run("get", *NAME, "--json").error["message"]
    assert b"was never filled: run 'mire pull'" in run("ls").out
    assert run("pull").code == 0
    assert run("get", *NAME).out == b"1"
    assert b"never filled" not in run("get", *NAME, "--version", "9").err


def test_status_tells_ahead_and_behind(pair: Pair, server: S3Server) -> None:
    """Asked for, the remote says how many files a push and a pull would move, and which locks there are."""
    one, two = pair
    one.put("1")
    document = two("status", "--remote", "--json").document
    assert document["healthy"] is True
    assert (document["cache"]["ahead"], document["cache"]["behind"], document["locks"]) == (0, 3, 0)
    two("pull")
    server.stop()
    two.put("2")
    server.start()
    document = two("status", "--remote", "--json").document
    assert (document["cache"]["ahead"], document["cache"]["behind"]) == (3, 0)
    assert document["cache"]["generation"] == 1


def test_a_push_holds_the_global_lock_only_to_commit(pair: Pair, server: S3Server) -> None:
    """Objects are stored before the lock is taken, the index is written under it, and then it is gone."""
    one, _ = pair
    server.stop()
    one.put("1")
    server.start()
    server.reset()
    assert one("push").code == 0
    written = [entry.key.removeprefix("prod/") for entry in server.log() if entry.operation == "PutObject"]
    lock = written.index(".datastore.lock")
    assert all(key.startswith("data/") for key in written[:lock])
    assert ".datastore-index.json" in written[lock:]
    assert "prod/.datastore.lock" not in server.keys("bucket")


def test_commands_for_remotes_refuse_a_directory(run: Run) -> None:
    """Without a remote there is nothing to push, and the line says what to do."""
    run("init")
    for line in (["push"], ["pull"], ["sync"], ["index", "status"], ["hydrate", "--all"]):
        error = run(*line, "--json").error
        assert (error["kind"], error["exit"]) == ("no_remote", 2)
        assert "mire setup URL" in error["message"]


@pytest.mark.parametrize("line", [["hydrate"], ["hydrate", "t", "i"], ["hydrate", "--all", "--model", "t/i"]])
def test_hydrate_wants_one_thing(run: Run, line: list[str]) -> None:
    """What is to be brought is named in exactly one way."""
    assert run(*line, "--json").error["kind"] == "input"


def test_a_directory_is_a_remote_too(joined: Callable[..., Repository], tmp_path: Path) -> None:
    """Two repositories sync through a mounted directory; unmounted, they work on their caches."""
    share = tmp_path / "share"
    share.mkdir()
    one, two = joined("one", f"file://{share}", "--cached"), joined("two", f"cached:{share}")
    one.put("1")
    assert two.get("--max-age", "0").out == b"1"
    share.rename(tmp_path / "away")
    assert b"could not be reached" in one.put("2").err
    share.mkdir()  # the empty place it was mounted on
    assert one("push").code == 5
    assert two("pull").code == 5
    assert list(share.iterdir()) == []
    share.rmdir()
    (tmp_path / "away").rename(share)
    assert one("push").code == 0
    assert two.get("--max-age", "0").out == b"2"


def test_the_other_cloud_is_a_remote_too(joined: Callable[..., Repository]) -> None:
    """The same commands with Google's API, where every write has a new generation."""
    with GcsServer(["bucket"]) as server:
        url = f"gs://bucket/p?apiEndpoint={server.url}"
        one, two = joined("one", url), joined("two", url, "--hydrate", "full")
        one.put("1")
        assert two.get("--max-age", "0").out == b"1"
        two.put("2")
        assert one("sync").code == 0
        assert one.get().out == b"2"
        assert one("index", "migrate").code == 0
        one.put("3")
        assert two.get("--max-age", "0").out == b"3"
        assert two("verify", "--deep").code == 0


def test_another_directory_is_not_taken_for_the_store(joined: Callable[..., Repository], tmp_path: Path) -> None:
    """A directory with the witness of another store is out of reach, and nothing is written to it."""
    first, second = tmp_path / "first", tmp_path / "second"
    for path in (first, second):
        path.mkdir()
    one = joined("one", f"cached:{first}")
    joined("two", f"cached:{second}")
    first.rename(tmp_path / "away")
    second.rename(first)
    result = one.put("1")
    assert (result.code, b"another one than was set up" in result.err) == (0, True)
    assert not (first / STATE).exists()


def test_commands_are_imported_without_what_they_use() -> None:
    """The modules of commands that sync bring neither a client of object stores nor SQLite with them."""
    names = ("push", "pull", "sync", "hydrate", "setup", "verify", "index", "status")
    imports = ", ".join(f"mire.cli.{name}" for name in names)
    code = f"import sys, {imports}; print([name for name in ('obstore', 'boto3', 'sqlite3') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
