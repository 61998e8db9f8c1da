"""Moving a repository to a remote: what is carried over, what is refused, and that it can be interrupted anywhere."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

import mire
from mire.errors import ConflictError, DeniedError, FormatError, InputError, LockTimeoutError, RemoteError
from mire.flow.mark import mark
from mire.flow.prospect import Wish, examine
from mire.flow.pull import pull
from mire.flow.push import push
from mire.flow.setup_remote import SetUp, set_up
from mire.testing.faults import Fail
from mire.testing.s3server import Dialect, S3Server

SCRIPT = Path(__file__).with_name("setup_crash.py")
BUCKET = "bucket"
STATE = "data/svc/web-1/state"
Snapshot = Callable[[Path], dict[str, bytes | str | None]]


@pytest.fixture
def s3_server() -> Iterator[S3Server]:
    """Our S3 server with a bucket whose name is long enough for a configuration."""
    with S3Server([BUCKET]) as server:
        yield server


@pytest.fixture
def url(s3_server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of an empty bucket, with credentials and a home directory in the environment."""
    home = tmp_path / "home"
    home.mkdir()
    environ = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "s", "AWS_REGION": "us-east-1", "HOME": str(home)}
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    return f"s3://{BUCKET}/p?endpoint={s3_server.url}"


@pytest.fixture
def filled(repo: Path, url: str) -> Path:
    """A repository with data of every kind."""
    with mire.open(repo) as store:
        for text in ("one", "two"):
            store.model("svc", "web-1").put("state", text)
        store.model("aws/ec2/vpc", "vpc-1").put("state", {"cidr": "10.0.0.0/16"})
        store.audit.command("deploy", exit_code=0)
    (repo / ".swamp/secrets").mkdir(exist_ok=True)
    (repo / ".swamp/secrets/key").write_text("hidden")
    return repo


def run(repo: Path, url: str, *, ours: bool = False, theirs: bool = False, **wish: Any) -> SetUp:
    """Examine a store and move a repository to it."""
    return set_up(examine(str(repo), Wish(url=url, **wish)), ours=ours, theirs=theirs)


def published(server: S3Server) -> dict[str, bytes | None]:
    """The files at the remote, by path."""
    keys = [key for key in server.keys(BUCKET) if key.startswith("p/")]
    return {
        key[2:]: server.get(BUCKET, key) for key in keys if key[2:].partition("/")[0] in ("data", "audit", "outputs")
    }


def carried(root: Path) -> dict[str, bytes]:
    """The files of a datastore that belong to it, by path."""
    found = (path for top in ("data", "audit", "outputs") for path in (root / top).rglob("*") if path.is_file())
    return {str(path.relative_to(root)): path.read_bytes() for path in found if "_catalog.db" not in path.name}


def test_everything_is_carried_over(filled: Path, url: str, s3_server: S3Server, snapshot: Snapshot) -> None:
    """Cache and remote have the same bytes as before, the originals are untouched, secrets stay."""
    before = snapshot(filled / ".swamp")
    done = run(filled, url)
    assert done.is_switched
    assert snapshot(filled / ".swamp") == before
    assert carried(Path(done.ds.base)) == carried(filled / ".swamp") == published(s3_server)
    assert (done.carried.copied, len(done.pushed.uploaded)) == (len(published(s3_server)),) * 2
    assert b"hidden" not in [s3_server.get(BUCKET, key) for key in s3_server.keys(BUCKET)]
    with mire.open(filled) as store:
        assert store.datastore.remote is not None
        assert store.model("svc", "web-1").get("state").text() == "two"
        assert len(store.audit.list()) == 1


def test_a_copy_has_the_time_of_its_original(filled: Path, url: str) -> None:
    """The index says when content was written, not when it was carried over."""
    done = run(filled, url)
    for rel in (f"{STATE}/1/raw", f"{STATE}/latest"):
        assert (Path(done.ds.base) / rel).stat().st_mtime_ns == (filled / ".swamp" / rel).stat().st_mtime_ns


def test_the_settings_say_what_was_asked_for(filled: Path, url: str, s3_server: S3Server) -> None:
    """The block is the reference's, with the strategy beside its configuration; other lines keep their bytes."""
    path = filled / ".swamp.yaml"
    path.write_text(f"# ours\n{path.read_text()}tools: [claude]  # kept\n")
    lines = path.read_text().splitlines()
    run(filled, url, index="sharded", hydrate="full", namespace="green")
    assert [line for line in path.read_text().splitlines() if line in lines] == lines
    assert yaml.safe_load(path.read_text())["datastore"] == {
        "type": "@swamp/s3-datastore",
        "config": {"bucket": BUCKET, "prefix": "p", "endpoint": s3_server.url, "index": "sharded"},
        "hydrationStrategy": "full",
        "namespace": "green",
    }
    with mire.open(filled) as store:
        assert (store.datastore.sync.is_lazy, store.datastore.sync.is_sharded) == (False, True)
        assert store.datastore.config.namespace == "green"
        assert store.model("svc", "web-1").get("state").text() == "two"
    assert "p/green/_index/_meta.json" in s3_server.keys(BUCKET)
    assert "p/green/.datastore-index.json" not in s3_server.keys(BUCKET)


def test_a_store_with_data_is_joined(filled: Path, tmp_path: Path, url: str) -> None:
    """What was there is fetched, lazily or whole, and what we had is published."""
    run(filled, url)
    for name, strategy, unhydrated in (("lazy", None, 3), ("full", "full", 0)):
        other = tmp_path / name
        other.mkdir()
        with mire.open(other) as store:
            store.model("svc", name).put("state", name)
        prospect = examine(str(other), Wish(url=url, hydrate=strategy))
        assert prospect.is_joining
        assert (prospect.index.form, prospect.files_here) == ("dual", 3)
        done = set_up(prospect)
        assert done.is_switched
        assert done.pulled.left_out == unhydrated
        with mire.open(other) as store:
            assert store.model("svc", "web-1").get("state").text() == "two"


def conflicting(tmp_path: Path) -> Path:
    """A repository with another version 1 of a name that the store has."""
    other = tmp_path / "other"
    other.mkdir()
    with mire.open(other) as store:
        store.model("svc", "web-1").put("state", "ours")
        store.model("svc", "web-2").put("state", "only ours")
    return other


def test_what_both_have_is_a_conflict(filled: Path, tmp_path: Path, url: str, s3_server: S3Server) -> None:
    """It is listed, nothing at all is published, and the repository is not switched."""
    run(filled, url)
    other = conflicting(tmp_path)
    before, settings = published(s3_server), (other / ".swamp.yaml").read_bytes()
    done = run(other, url)
    assert not done.is_switched
    assert sorted(item.rel for item in done.conflicts) == [
        f"{STATE}/1/metadata.yaml",
        f"{STATE}/1/raw",
        f"{STATE}/latest",
    ]
    assert published(s3_server) == before
    assert (other / ".swamp.yaml").read_bytes() == settings


@pytest.mark.parametrize(("side", "text"), [("ours", "ours"), ("theirs", "two")])
def test_somebody_decides_a_conflict(
    filled: Path, tmp_path: Path, url: str, s3_server: S3Server, side: str, text: str
) -> None:
    """Run again with a side, the setup is finished and both agree."""
    run(filled, url)
    other = conflicting(tmp_path)
    run(other, url)
    done = run(other, url, **{side: True})
    assert done.is_switched
    assert s3_server.get(BUCKET, f"p/{STATE}/latest") == {"ours": b"1", "theirs": b"2"}[side]
    with mire.open(other) as store:
        assert store.model("svc", "web-1").get("state").text() == text
        assert store.model("svc", "web-2").get("state").text() == "only ours"


def test_both_sides_cannot_win(filled: Path, url: str) -> None:
    """Ours and theirs together are refused before anything is done."""
    with pytest.raises(InputError, match="contradict"):
        run(filled, url, ours=True, theirs=True)


def test_an_untrusted_store_is_refused(filled: Path, url: str, s3_server: S3Server, tmp_path: Path) -> None:
    """A store that ignores conditions gets nothing, unless somebody allows it."""
    s3_server.dialect = Dialect(ignore_conditions=True)
    with pytest.raises(RemoteError) as refused:
        run(filled, url)
    assert refused.value.kind == "untrusted"
    assert s3_server.keys(BUCKET) == []
    assert not (tmp_path / "home/.swamp").exists()
    assert examine(str(filled), Wish(url=url, allow_untrusted=True)).notes


def test_a_newer_format_is_refused(filled: Path, url: str, s3_server: S3Server) -> None:
    """The marker counts before anything is copied."""
    s3_server.put(BUCKET, "p/_control/datastore-format", b'{"format": 3}')
    with pytest.raises(FormatError):
        run(filled, url)
    assert published(s3_server) == {}


def test_a_namespace_belongs_to_one_repository(filled: Path, tmp_path: Path, url: str, s3_server: S3Server) -> None:
    """The first one has it, and may come again; another one is refused before anything is written."""
    assert run(filled, url, namespace="green").is_switched
    assert run(filled, url, namespace="green").is_switched
    other = conflicting(tmp_path)
    keys = s3_server.keys(BUCKET)
    with pytest.raises(ConflictError) as refused:
        run(other, url, namespace="green")
    assert (refused.value.kind, refused.value.exit_code) == ("namespace_taken", 4)
    assert s3_server.keys(BUCKET) == keys
    assert run(other, url, namespace="red").is_switched


@pytest.mark.parametrize("slug", ["data", "Green", "-x", "a_b", "x" * 65])
def test_a_namespace_is_a_slug(filled: Path, url: str, slug: str) -> None:
    """Names of directories and what is no slug are refused."""
    with pytest.raises(InputError):
        run(filled, url, namespace=slug)


def test_a_cache_of_another_remote_is_refused(filled: Path, url: str) -> None:
    """Files of one remote are not published in another because they are in the same cache."""
    run(filled, url)
    path = filled / ".swamp.yaml"
    path.write_text(path.read_text().partition("datastore:")[0])
    with pytest.raises(ConflictError) as refused:
        run(filled, url.replace("/p?", "/q?"))
    assert refused.value.kind == "cache_in_use"


def test_a_remote_named_for_once_has_a_cache_of_its_own(filled: Path, url: str, tmp_path: Path) -> None:
    """Using another store by option publishes nothing of the usual one there, and forgets no mark."""
    run(filled, url)
    share = tmp_path / "share"
    share.mkdir()
    with mire.open(filled, datastore=f"cached:{share}") as store:
        store.model("svc", "web-9").put("state", "elsewhere")
    assert {path.name for path in (share / "data/svc").iterdir()} == {"web-9"}
    with mire.open(filled) as store:
        assert not (Path(store.datastore.tier) / "data/svc/web-9").exists()
        assert store.model("svc", "web-1").get("state").text() == "two"


def test_what_waits_in_the_cache_of_a_new_repository_is_found_again(tmp_path: Path, url: str, share: Path) -> None:
    """The cache has the name of the repository from the beginning, so that a change made offline is not left behind."""
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    store = mire.open(fresh, datastore=f"cached:{share}")
    share.rename(tmp_path / "away")
    store.model("svc", "web-1").put("state", "offline")
    (tmp_path / "away").rename(share)
    with mire.open(fresh, datastore=f"cached:{share}") as again:
        assert again.model("svc", "web-1").get("state").text() == "offline"
        assert push(again.datastore).count > 0
    assert (share / STATE / "1/raw").read_text() == "offline"


def test_a_repository_without_an_id_is_only_read(filled: Path, url: str, share: Path) -> None:
    """It would share a cache with all others that have none; the error says which line to add."""
    run(filled, f"cached:{share}")
    path = filled / ".swamp.yaml"
    path.write_text("\n".join(line for line in path.read_text().splitlines() if not line.startswith("repoId")))
    with mire.open(filled) as store:
        pull(store.datastore)
        assert store.model("svc", "web-1").get("state").text() == "two"
        with pytest.raises(DeniedError, match="add a line repoId"):
            store.model("svc", "web-1").put("state", "three")


def test_pointing_a_repository_elsewhere_does_not_take_its_cache_along(filled: Path, url: str) -> None:
    """Settings changed by hand or by init find the cache of the former remote, and refuse it."""
    run(filled, url)
    path = filled / ".swamp.yaml"
    path.write_text(path.read_text().replace('prefix: "p"', 'prefix: "q"'))
    with pytest.raises(ConflictError) as refused:
        mire.open(filled)
    assert refused.value.kind == "cache_in_use"


def test_the_same_store_again_only_changes_settings(filled: Path, url: str) -> None:
    """Nothing is carried, and the cache stays where it is."""
    run(filled, url)
    done = run(filled, url, hydrate="full")
    assert (done.is_switched, done.carried.copied, done.old_cache) == (True, 0, None)
    assert "hydrationStrategy" in (filled / ".swamp.yaml").read_text()


@pytest.fixture
def peer(tmp_path: Path) -> Path:
    """Another repository."""
    path = tmp_path / "peer"
    path.mkdir()
    with mire.open(path) as store:
        store.model("svc", "web-3").put("state", "x")
    return path


@pytest.fixture
def share(tmp_path: Path) -> Path:
    """A directory to move to."""
    path = tmp_path / "share"
    path.mkdir()
    return path


@pytest.mark.parametrize("died", [False, True])
def test_a_repository_moves_from_one_remote_to_another(
    filled: Path,
    peer: Path,
    url: str,
    s3_server: S3Server,
    share: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    died: bool,
) -> None:
    """Everything is there, content that was never read and changes that were not pushed too; the old store stays."""
    run(filled, url)
    run(peer, url)
    with mire.open(peer) as store:
        store.model("svc", "web-2").put("state", "from a peer")
    with mire.open(filled) as store:
        mark(store.datastore, str(Path(store.datastore.tier) / STATE / "2/raw"))
    before = published(s3_server)
    if died:
        monkeypatch.setattr("mire.flow.setup_remote.finish_move", lambda *_: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            run(filled, f"cached:{share}")
    else:
        done = run(filled, f"cached:{share}")
        assert (done.is_switched, Path(done.old_cache or "").is_dir()) == (True, True)
    assert carried(share) == before == published(s3_server)
    with mire.open(filled) as store:
        cache = Path(store.datastore.base)
        assert store.model("svc", "web-2").get("state").text() == "from a peer"
        store.model("svc", "web-1").put("state", "three")
    assert (share / STATE / "3/raw").read_text() == "three"
    assert published(s3_server) == before
    assert sorted(path.name.partition(".")[2][:4] for path in cache.parent.glob(f"{cache.name}*")) == ["", "was-"]


def test_a_move_to_another_remote_can_be_interrupted(
    filled: Path, url: str, share: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until the settings are switched the repository syncs with the remote it had; the second run goes on."""
    run(filled, url)
    with monkeypatch.context() as patch:
        patch.setattr("mire.flow.setup_remote._switch", lambda *_: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            run(filled, f"cached:{share}")
    with mire.open(filled) as store:
        assert str(store.datastore.remote and store.datastore.remote.properties.name).startswith("s3://")
        store.model("svc", "web-1").put("state", "three")
    prospect = examine(str(filled), Wish(url=f"cached:{share}"))
    assert (prospect.is_moving, prospect.is_resumed) == (True, True)
    assert set_up(prospect).is_switched
    with mire.open(filled) as store:
        assert store.model("svc", "web-1").get("state").text() == "three"
        assert carried(Path(store.datastore.base)) == carried(share)


def test_a_repository_that_is_not_in_step_does_not_move(
    filled: Path, peer: Path, url: str, s3_server: S3Server, share: Path
) -> None:
    """What the old remote lists and does not have is told, and nothing is switched."""
    run(filled, url, hydrate="lazy")
    key = f"p/{STATE}/1/raw"
    run(peer, url)
    s3_server.delete(BUCKET, key)
    done = run(peer, f"cached:{share}")
    assert (done.is_switched, "object is not there" in done.findings[0]) == (False, True)
    assert carried(share) == {}
    with mire.open(peer) as store:
        assert store.model("svc", "web-1").get("state").text() == "two"


def test_a_run_that_failed_goes_on(filled: Path, url: str, s3_server: S3Server) -> None:
    """What was written to the old datastore since, and what was deleted there, arrives with the second run."""
    s3_server.inject(Fail(403, "AccessDenied"), operation="PutObject", key="p/.datastore-index.json", times=None)
    with pytest.raises(RemoteError):
        run(filled, url)
    with mire.open(filled) as store:
        assert store.datastore.remote is None
        store.model("svc", "web-1").put("state", "three")
        store.model("svc", "web-1").delete("state", 1)
        store.model("aws/ec2/vpc", "vpc-1").delete("state")
    s3_server.faults.clear()
    prospect = examine(str(filled), Wish(url=url))
    assert prospect.is_resumed
    done = set_up(prospect)
    assert done.is_switched
    assert done.carried.removed > 0
    assert carried(Path(done.ds.base)) == carried(filled / ".swamp")
    listed = {rel for rel in published(s3_server) if rel in carried(filled / ".swamp")}
    assert listed == set(carried(filled / ".swamp"))
    with mire.open(filled) as store:
        assert store.model("svc", "web-1").versions("state") == [2, 3]


def test_a_strange_file_in_the_cache_is_not_replaced(filled: Path, url: str, s3_server: S3Server) -> None:
    """A file that no setup put there is a conflict, and stays."""
    with mire.open(filled) as store:
        repo_id = store.datastore.config.repo_id
    cache = Path(os.environ["HOME"]) / ".swamp/repos" / str(repo_id)
    (cache / STATE).mkdir(parents=True)
    (cache / STATE / "latest").write_text("7")
    done = run(filled, url)
    assert not done.is_switched
    assert [item.rel for item in done.conflicts] == [f"{STATE}/latest"]
    assert (cache / STATE / "latest").read_text() == "7"
    assert published(s3_server) == {}


def test_writers_of_the_old_datastore_are_waited_for(filled: Path, url: str, s3_server: S3Server) -> None:
    """While a model is being written nothing is carried over: what is written would be left behind."""
    prospect = examine(str(filled), Wish(url=url))
    lock = filled / ".swamp/data/svc/web-1/.lock"
    lock.write_text('{"holder": "ada@elsewhere", "hostname": "elsewhere", "pid": 4711, "ttlMs": 30000, "nonce": "n"}')
    with pytest.raises(LockTimeoutError, match="elsewhere"):
        set_up(replace(prospect, former=replace(prospect.former, lock_timeout_ms=50)))
    assert published(s3_server) == {}
    lock.unlink()
    assert set_up(prospect).is_switched


def test_a_marker_that_is_a_link_becomes_a_file(filled: Path, url: str, s3_server: S3Server) -> None:
    """Old versions of the reference kept the number as the target of a link, which no client syncs."""
    latest = filled / ".swamp" / STATE / "latest"
    latest.unlink()
    latest.symlink_to("2")
    assert run(filled, url).is_switched
    assert s3_server.get(BUCKET, f"p/{STATE}/latest") == b"2"


def test_what_cannot_be_carried_keeps_the_old_datastore(filled: Path, url: str) -> None:
    """A file in no place that an index lists is told, and the repository is not switched."""
    (filled / ".swamp/data/stray").write_text("x")
    done = run(filled, url)
    assert not done.is_switched
    assert any("stray" in finding for finding in done.findings)
    (filled / ".swamp/data/stray").unlink()
    assert run(filled, url).is_switched


def test_directories_that_are_not_shared_stay(filled: Path, url: str, s3_server: S3Server) -> None:
    """Only what belongs to the datastore is carried over."""
    path = filled / ".swamp.yaml"
    path.write_text(f"{path.read_text()}datastore:\n  type: filesystem\n  directories: [data]\n")
    run(filled, url)
    assert {rel.partition("/")[0] for rel in published(s3_server)} == {"data"}


def test_a_repository_without_an_id_is_refused(repo: Path, url: str) -> None:
    """Its cache would be that of every other repository without one."""
    (repo / ".swamp.yaml").write_text("swampVersion: '1'\n")
    with pytest.raises(InputError, match="repoId"):
        run(repo, url)


def test_a_variable_that_counts_first_is_told(filled: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """SWAMP_DATASTORE neither changes what is carried over nor goes unmentioned."""
    monkeypatch.setenv("SWAMP_DATASTORE", "filesystem:/nonexistent")
    prospect = examine(str(filled), Wish(url=url))
    assert prospect.files_here > 0
    assert any("SWAMP_DATASTORE" in note for note in prospect.notes)


def test_an_index_that_is_there_keeps_its_form(filled: Path, tmp_path: Path, url: str) -> None:
    """Asking for another form is answered with the way to it."""
    run(filled, url)
    other = conflicting(tmp_path)
    assert any("mire index migrate" in note for note in examine(str(other), Wish(url=url, index="sharded")).notes)


@pytest.fixture
def fast_directory() -> Iterator[Path]:
    """A directory in memory where there is one: a killed process loses nothing that the kernel has."""
    shared = Path("/dev/shm")  # noqa: S108 - only a parent for a directory with a random name
    with tempfile.TemporaryDirectory(dir=shared if os.access(shared, os.W_OK) else None) as name:
        yield Path(name)


def test_dying_anywhere(fast_directory: Path) -> None:
    """Before any file operation of a setup: the old datastore is untouched and in use, and the next run finishes."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(fast_directory)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 100
