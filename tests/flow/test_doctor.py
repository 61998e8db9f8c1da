"""The doctor on every kind of store: what it proves, what it refuses, and that it leaves nothing behind."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mire.edge.memory import MemoryRemote
from mire.edge.objectstore import open_local
from mire.errors import DeniedError, MissingBucketError, RemoteError
from mire.flow.doctor import diagnose, examine
from mire.model.config import Extension, Filesystem
from mire.model.doctor import Report
from mire.plan.address import parse_target
from mire.testing.faults import ApplyThenDrop, Delay, Drop, Fail, ShortListing
from mire.testing.gcsserver import GcsServer
from mire.testing.misbehaving import MisbehavingRemote
from mire.testing.s3server import Dialect, S3Server
from servers import GcsEndpoint, S3Endpoint

Diagnose = Callable[..., Report]


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Credentials that a server of ours accepts."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "any")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "any")
    monkeypatch.setenv("AWS_REGION", "us-east-1")


@pytest.fixture
def server() -> Iterator[S3Server]:
    """Our S3 server with a bucket whose name is one."""
    with S3Server(["bucket"]) as running:
        yield running


def told(url: str, **options: bool) -> Report:
    """What the doctor says about an address."""
    target = parse_target(url, repo_dir="/", environ={}, what="here")
    return diagnose(target, repo_dir="/", origin="here", **options)


def s3(server: S3Server, **options: bool) -> Report:
    """What the doctor says about our server."""
    return told(f"s3://bucket/p?endpoint={server.url}", **options)


def results(report: Report) -> dict[str, str]:
    """The result of each check."""
    return {check.name: check.result for check in report.checks}


def test_a_store_like_aws_is_safe(server: S3Server) -> None:
    """Every check is good, with few requests, and the bucket is as empty as before."""
    report = s3(server)
    assert report.is_healthy, report.checks
    assert report.details["conditionalWrites"] == "supported"
    assert report.details["probeCleanup"] == "ok"
    assert (report.name, report.datastore_type) == ("s3://bucket/p", "@swamp/s3-datastore")
    assert {name for name, result in results(report).items() if result != "ok"} == {"paging"}
    assert server.keys("bucket") == []
    assert sum(server.counts().values()) <= 40
    assert {key.split("/")[1].split("-")[0] for _, _, key, _ in server.log() if "/" in key} <= {"_control"}


def test_every_probe_is_below_the_control_prefix(server: S3Server) -> None:
    """Nothing is written under a key that any program could use."""
    s3(server, paging=True)
    written = {key for operation, _, key, _ in server.log() if operation in ("PutObject", "DeleteObject")}
    assert written
    for key in written:
        assert key.startswith(("p/_control/conditional-write-probe-", "p/_control/mire-probe-")), key


def test_paging_is_proved_when_asked_for(server: S3Server) -> None:
    """More than one page is written, listed and removed."""
    report = s3(server, paging=True)
    assert report.is_healthy
    assert report.message == "safe to share"
    assert results(report)["paging"] == "ok"
    assert server.keys("bucket") == []


def test_pages_that_go_missing_are_noticed(server: S3Server) -> None:
    """A listing that ends after its first page, and calls itself complete, is refused."""
    server.inject(ShortListing(keep=1000), operation="ListObjectsV2", times=None)
    report = s3(server, paging=True)
    assert not report.is_healthy
    assert results(report)["paging"] == "fail"
    assert server.keys("bucket") == []


@pytest.mark.parametrize(
    ("dialect", "verdict", "bad"),
    [
        (Dialect(etag_dialect="quoted"), "supported", set()),
        (Dialect(etag_dialect="unquoted"), "if-match-unquoted", set()),
        (Dialect(missing_if_match=412), "supported", set()),
        (
            Dialect(ignore_conditions=True),
            "ignored",
            {"create only once", "replace if unchanged", "remove if unchanged"},
        ),
        (Dialect(conditional_delete=False), "supported", {"remove if unchanged"}),
        (Dialect(listing_delay_s=60), "supported", {"listing"}),
    ],
    ids=["quoted", "unquoted", "missing-412", "ignored", "delete-ignored", "listing-late"],
)
def test_dialects(server: S3Server, dialect: Dialect, verdict: str, bad: set[str]) -> None:
    """Each way in which stores differ is found, by name, and cleaned up after."""
    server.dialect = dialect
    report = s3(server)
    assert report.details["conditionalWrites"] == verdict
    assert {name for name, result in results(report).items() if result == "fail"} == bad
    assert report.is_healthy == (not bad)
    assert report.details["probeCleanup"] == "ok"
    assert server.keys("bucket") == []


def test_an_untrusted_store_can_be_allowed(server: S3Server) -> None:
    """Who says so may use it alone; the report says what that means."""
    server.dialect = Dialect(ignore_conditions=True)
    report = s3(server, allow_untrusted=True)
    assert report.is_healthy
    assert report.details["conditionalWrites"] == "ignored"
    assert "one writer" in report.message


def test_removals_without_conditions_are_fine_when_declared(server: S3Server) -> None:
    """With the setting that the report asks for the store is healthy."""
    server.dialect = Dialect(conditional_delete=False)
    assert s3(server).remedy == {"conditionalDelete": False}
    assert told(f"s3://bucket?endpoint={server.url}&conditionalDelete=false").is_healthy


def test_a_store_that_knows_no_if_match(server: S3Server) -> None:
    """A store that answers 501 to conditional replacements honours creation only, which is not enough for locks."""
    server.inject(
        Fail(501, "NotImplemented"), operation="PutObject", key="*conditional-write-probe*", skip=2, times=None
    )
    report = s3(server)
    assert report.details["conditionalWrites"] == "if-match-unsupported"
    assert not report.is_healthy
    assert server.keys("bucket") == []


def test_a_read_only_credential_is_told(server: S3Server) -> None:
    """Every write is denied: the verdict says so, nothing is left to clean up, and the exit code is that of rights."""
    for operation in ("PutObject", "DeleteObject"):
        server.inject(Fail(403, "AccessDenied"), operation=operation, times=None)
    report = s3(server)
    assert report.details["conditionalWrites"] == "write-denied"
    assert report.details["probeCleanup"] == "ok"
    assert isinstance(report.error, DeniedError)
    assert "ask for the right" in report.message
    assert results(report)["access"] == "ok"


def test_missing_rights_to_remove_are_told_with_what_stays(server: S3Server) -> None:
    """Who may write but not remove is told, and where the probes are."""
    server.inject(Fail(403, "AccessDenied"), operation="DeleteObject", times=None)
    report = s3(server)
    assert not report.is_healthy
    assert report.details["probeCleanup"] == "failed"
    assert sorted(report.details["leftBehind"]) == [key.removeprefix("p/") for key in server.keys("bucket")]
    assert len(server.keys("bucket")) == 6


@pytest.mark.parametrize(
    ("action", "kind"),
    [
        (Fail(403, "InvalidAccessKeyId"), "credentials"),
        (Fail(403, "SignatureDoesNotMatch"), "credentials"),
        (Fail(400, "ExpiredToken"), "expired_token"),
        (Fail(403, "AccessDenied"), "denied"),
        (Fail(404, "NoSuchBucket"), "missing_bucket"),
        (Fail(503, "SlowDown"), "throttled"),
        (Drop(), "lost"),
    ],
    ids=str,
)
def test_without_access_one_line_is_all(server: S3Server, action: Fail | Drop, kind: str) -> None:
    """The first request decides; nothing is written after it fails."""
    server.inject(action, times=None)
    report = s3(server)
    assert report.error is not None
    assert report.error.kind == kind
    assert [check.name for check in report.checks] == ["access"]
    assert "PutObject" not in server.counts()


def test_whoever_answers_404_to_everything_is_no_store(server: S3Server) -> None:
    """An endpoint that is some other web server is told as such."""
    server.inject(Fail(404, "Whatever"), times=None)
    report = s3(server)
    assert isinstance(report.error, MissingBucketError)
    assert "check the endpoint" in report.message


@pytest.mark.parametrize("marker", [b'{"format": 3}', b"garbage"])
def test_a_format_marker_is_obeyed(server: S3Server, marker: bytes) -> None:
    """A store from the future is refused."""
    server.put("bucket", "p/_control/datastore-format", marker)
    report = s3(server)
    assert results(report)["format"] == "fail"
    assert report.error is not None
    assert report.error.exit_code == 7
    assert server.keys("bucket") == ["p/_control/datastore-format"]


def test_a_marker_that_cannot_be_read_forbids_writing(server: S3Server) -> None:
    """Not knowing the format is a failure."""
    server.inject(Fail(403, "AccessDenied"), operation="GetObject", key="*datastore-format", times=None)
    report = s3(server)
    assert results(report)["format"] == "fail"
    assert "could not be read" in report.message


def test_a_lost_answer_is_inconclusive(server: S3Server) -> None:
    """What may have happened is not called proved, and is cleaned up all the same."""
    server.inject(ApplyThenDrop(), operation="PutObject")
    report = s3(server)
    assert report.details["conditionalWrites"] == "inconclusive"
    assert not report.is_healthy
    assert server.keys("bucket") == []


def test_a_clock_far_off_is_noted(server: S3Server) -> None:
    """The difference is told within a second or so."""
    server.clock_offset_s = 100.0
    report = s3(server)
    assert 97_000 < report.details["clockDifferenceMs"] < 103_000
    assert results(report)["clock"] == "warn"


def test_a_slow_store_does_not_take_for_ever() -> None:
    """After its budget nothing new is tried; what was written is removed."""
    remote = MisbehavingRemote(MemoryRemote())
    evidence = examine(remote, budget_ms=-1)
    assert evidence.contact.error is not None
    assert evidence.contact.error.kind == "timeout"
    assert remote.calls["put_if"] == 0


def test_requests_of_the_doctor_are_short(server: S3Server) -> None:
    """A store that takes longer for a request than the doctor waits is told so, whatever the settings allow."""
    server.inject(Delay(30), operation="ListObjectsV2", times=None)
    report = told(f"s3://bucket?endpoint={server.url}&requestTimeoutMs=600000")
    assert report.error is not None
    assert report.error.kind == "timeout"
    assert "3000 ms" in report.message


@pytest.mark.parametrize("content_fingerprint", [True, False])
def test_memory_is_safe(*, content_fingerprint: bool) -> None:
    """The remote of tests is as good as a store, with fingerprints of either kind."""
    remote = MemoryRemote(content_fingerprint=content_fingerprint)
    evidence = examine(remote, paging=True)
    assert evidence.replace_right.outcome == evidence.listed.outcome == evidence.paged.outcome == "yes"
    assert list(remote.list()) == []


def test_a_local_directory_as_a_remote_is_safe(tmp_path: Path) -> None:
    """So is a directory, seen as a remote."""
    evidence = examine(open_local(str(tmp_path / "x")), paging=True)
    assert evidence.replace_right.outcome == evidence.listed.outcome == evidence.paged.outcome == "yes"
    assert [path for path in (tmp_path / "x").rglob("*") if path.is_file() and "_control" in path.parts] == []


@pytest.mark.parametrize("call", ["put_if", "get", "put", "list", "list_level", "delete_if", "head", "server_time_ms"])
def test_any_failing_request_is_cleaned_up_after(call: str) -> None:
    """Whichever request fails, at whatever time, the store is left as it was."""
    for skip in range(6):
        remote = MisbehavingRemote(inside := MemoryRemote())
        remote.fail(call, RemoteError("told to fail"), skip=skip, times=1)
        examine(remote)
        assert list(inside.list()) == [], skip


@pytest.mark.parametrize("call", ["put_if", "delete_if"])
def test_any_lost_answer_is_cleaned_up_after(call: str) -> None:
    """Whichever answer is lost, the store is left as it was."""
    for skip in range(4):
        remote = MisbehavingRemote(inside := MemoryRemote())
        remote.lose(call, skip=skip, times=1)
        examine(remote)
        assert list(inside.list()) == [], skip


class StoppedError(BaseException):
    """What Ctrl-C and SIGTERM are: not an error of ours."""


@pytest.mark.parametrize("call", ["put_if", "get", "put", "list", "delete_if"])
def test_an_interruption_is_cleaned_up_after(call: str) -> None:
    """Being stopped in the middle removes the probes, and the interruption goes on."""

    def stop() -> None:
        raise StoppedError

    for skip in range(2):
        remote = MisbehavingRemote(inside := MemoryRemote())
        remote.run(call, stop, skip=skip, times=1)
        with pytest.raises(StoppedError):
            examine(remote)
        assert list(inside.list()) == [], skip


def test_gcs_is_safe(monkeypatch: pytest.MonkeyPatch) -> None:
    """Generations in place of ETags: the same checks."""
    with GcsServer(["bucket"]) as server:
        report = told(f"gs://bucket/p?apiEndpoint={server.url}", paging=True)
        assert report.is_healthy, report.checks
        assert report.details["conditionalWrites"] == "supported"
        assert (report.name, report.datastore_type) == ("gs://bucket/p", "@swamp/gcs-datastore")
        assert server.keys("bucket") == []


def test_seaweedfs_is_safe(seaweedfs: S3Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    """A real server that honours conditions passes, paging included, and is left empty."""
    report = _real(seaweedfs, monkeypatch, paging=True)
    assert report.is_healthy, report.checks
    assert report.details["conditionalWrites"] == "supported"


def test_ministack_is_safe(ministack: S3Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another real server that honours conditions passes."""
    report = _real(ministack, monkeypatch)
    assert report.is_healthy, report.checks


def test_rclone_is_refused(rclone_s3: S3Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    """A real server that silently ignores conditions is found out."""
    report = _real(rclone_s3, monkeypatch)
    assert report.details["conditionalWrites"] == "ignored"
    assert report.error is not None
    assert report.error.kind == "untrusted"


def _real(endpoint: S3Endpoint, monkeypatch: pytest.MonkeyPatch, **options: bool) -> Report:
    """What the doctor says about a new bucket of a real server, which must be empty afterwards."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", endpoint.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", endpoint.secret_key)
    bucket = endpoint.bucket()
    report = told(f"s3://{bucket}/p?endpoint={endpoint.url}&forcePathStyle=true", **options)
    client = endpoint.client()
    assert client.list_objects_v2(Bucket=bucket).get("KeyCount", 0) == 0
    client.close()
    return report


def test_a_gcs_emulator_that_ignores_conditions_is_refused(fake_gcs: GcsEndpoint) -> None:
    """Whatever a server cannot do, it is not called safe."""
    report = told(f"gs://{fake_gcs.bucket()}?apiEndpoint={fake_gcs.url}")
    assert not report.is_healthy


def test_a_directory_is_examined(tmp_path: Path, snapshot: Callable[[Path], dict[str, object]]) -> None:
    """Files, locks, renames and the clock are tried, and the directory is as before."""
    (tmp_path / "data").mkdir()
    before = snapshot(tmp_path)
    report = diagnose(Filesystem(path=str(tmp_path)), repo_dir="/", origin="here")
    assert report.is_healthy, report.checks
    assert report.details == {
        "path": str(tmp_path),
        "probeCleanup": "ok",
        "leftBehind": [],
        "clockDifferenceMs": report.details["clockDifferenceMs"],
    }
    assert abs(report.details["clockDifferenceMs"]) < 1000
    assert snapshot(tmp_path) == before


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    """A mount that is gone is told, and not created."""
    report = diagnose(Filesystem(path=str(tmp_path / "gone")), repo_dir="/", origin="here")
    assert report.error is not None
    assert report.error.kind == "unreachable"
    assert not (tmp_path / "gone").exists()


def test_a_directory_of_the_future(tmp_path: Path) -> None:
    """Its format marker is obeyed."""
    (tmp_path / "datastore-format.json").write_text('{"format": 3}')
    report = diagnose(Filesystem(path=str(tmp_path)), repo_dir="/", origin="here")
    assert report.error is not None
    assert report.error.exit_code == 7


def test_a_directory_that_cannot_be_written(tmp_path: Path) -> None:
    """What is in the way of a write is told."""
    (tmp_path / "_control").write_text("I am a file")
    report = diagnose(Filesystem(path=str(tmp_path)), repo_dir="/", origin="here")
    assert results(report)["write"] == "fail"
    assert "is in the way" in report.message
    assert [path.name for path in tmp_path.iterdir()] == ["_control"]


def test_other_threads_may_use_the_store_meanwhile(server: S3Server) -> None:
    """Two doctors at the same time do not disturb each other."""
    found: list[Report] = []
    threads = [threading.Thread(target=lambda: found.append(s3(server))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [report.is_healthy for report in found] == [True] * 4
    assert server.keys("bucket") == []


def test_a_bad_target_is_refused_before_anything_is_asked() -> None:
    """Configuration errors come first."""
    with pytest.raises(ValueError, match="did you mean"):
        diagnose(Extension(type="s3", config={"bucket": "bucket", "endpont": "x"}), repo_dir="/", origin="here")
