"""`mire doctor`, `mire backends` and object stores at the command line: as a user meets them."""

import contextlib
import datetime as dt
import http.server
import ipaddress
import json
import signal
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from mire.testing.faults import Fail
from mire.testing.gcsserver import GcsServer
from mire.testing.s3server import Credentials, Dialect, S3Server
from servers import S3Endpoint, free_ports

Run = Callable[..., Any]

KEY_ID, HIDDEN, SESSION = "AKIAHIDDENKEYID", "wJalrXUtnFEMIK7MDENG", "FwoGZXIvYXdzEHIDDEN"
AWS = {
    "AWS_ACCESS_KEY_ID": KEY_ID,
    "AWS_SECRET_ACCESS_KEY": HIDDEN,
    "AWS_SESSION_TOKEN": SESSION,
    "AWS_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
    "NO_GCE_CHECK": "true",
}


@pytest.fixture
def server() -> Iterator[S3Server]:
    """Our S3 server with a bucket."""
    with S3Server(["bucket"]) as running:
        yield running


@pytest.fixture
def url(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of that bucket, with credentials in the environment."""
    for name, value in AWS.items():
        monkeypatch.setenv(name, value)
    return f"s3://bucket/team/prod?endpoint={server.url}"


def has_secret(*texts: bytes) -> bool:
    """Whether a secret is in any output."""
    return any(word.encode() in text for text in texts for word in (HIDDEN, SESSION))


def test_a_good_store_is_a_table_and_exit_0(run: Run, url: str, server: S3Server) -> None:
    """One line for each check, and the answer last."""
    result = run("doctor", url)
    assert (result.code, result.err) == (0, b"")
    lines = result.out.decode().splitlines()
    assert lines[0].split() == ["CHECK", "RESULT", "MEANING"]
    assert lines[-1] == "s3://bucket/team/prod: safe to share; not proved: paging"
    assert server.keys("bucket") == []


def test_the_document_is_that_of_a_verifier(run: Run, url: str, server: S3Server) -> None:
    """healthy, message, latencyMs, datastoreType and details are there, whether it is good or not."""
    for dialect, code in ((Dialect(), 0), (Dialect(ignore_conditions=True), 5)):
        server.dialect = dialect
        result = run("doctor", url, "--json")
        assert result.code == code
        document = result.document
        assert document["schema"] == "mire.doctor/1"
        assert document["healthy"] is (code == 0)
        assert isinstance(document["message"], str)
        assert document["latencyMs"] >= 0
        assert document["datastoreType"] == "@swamp/s3-datastore"
        assert document["details"]["conditionalWrites"] == ("supported" if code == 0 else "ignored")
        assert document["details"]["probeCleanup"] == "ok"
        assert {check["result"] for check in document["checks"]} <= {"ok", "warn", "fail", "skip"}


def test_a_store_that_ignores_conditions_is_refused_unless_allowed(run: Run, url: str, server: S3Server) -> None:
    """The table says what failed; who allows it gets notes and exit 0."""
    server.dialect = Dialect(ignore_conditions=True)
    refused = run("doctor", url)
    assert refused.code == 5
    assert b"FAIL" in refused.out
    assert b"NOT SAFE" in refused.out
    allowed = run("doctor", url, "--allow-untrusted")
    assert allowed.code == 0
    assert b"FAIL" not in allowed.out
    assert b"one writer" in allowed.out


def test_paging_is_proved_on_demand(run: Run, url: str, server: S3Server) -> None:
    """With --paging nothing is left unproved."""
    result = run("doctor", url, "--paging", "--json")
    assert result.document["message"] == "safe to share"
    assert server.keys("bucket") == []


def test_a_read_only_credential_is_exit_6(run: Run, url: str, server: S3Server) -> None:
    """The verdict is write-denied, and the line says which right to ask for."""
    server.inject(Fail(403, "AccessDenied"), operation="PutObject", times=None)
    result = run("doctor", url, "--json")
    assert result.code == 6
    assert result.document["details"]["conditionalWrites"] == "write-denied"
    assert "ask for the right to read, write and list" in result.document["message"]


def test_without_an_address_the_repository_s_datastore_is_examined(run: Run, url: str, repo: Path) -> None:
    """Variable, flag, file and default: the doctor looks where the other commands would."""
    run("init")
    assert run("doctor", "--json").document["datastore"] == str(repo / ".swamp")
    assert run("doctor", "--json", "--datastore", url).document["datastore"] == "s3://bucket/team/prod"
    assert run("init", "--datastore", url).code == 0
    assert run("doctor", "--json").document["datastore"] == "s3://bucket/team/prod"


def test_a_directory_is_examined_too(run: Run, tmp_path: Path) -> None:
    """By address or by the older form, and without any repository."""
    (tmp_path / "share").mkdir()
    for text in (f"file://{tmp_path}/share", f"filesystem:{tmp_path}/share", "filesystem:../share"):
        document = run("doctor", text, "--json").document
        assert (document["healthy"], document["datastoreType"]) == (True, "filesystem")
    assert list((tmp_path / "share").iterdir()) == []
    gone = run("doctor", f"file://{tmp_path}/gone")
    assert gone.code == 5
    assert "is not there" in gone.line


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("nonsense", "write s3://bucket/prefix"),
        ("s3://Bucket", "'bucket' is 'Bucket'"),
        ("s3://bucket?endpont=x", "did you mean 'endpoint'?"),
        ("s3://bucket?pullConcurrency=0", "from 1 to 1000"),
        ("s3:bucket/a//b", "'prefix' is 'a//b'"),
        ("gs://google", "'bucket' is 'google'"),
        ("gs://bucket?auth=maybe", "default, none"),
        ("@acme/nothing:{}", "'@acme/nothing' (from URL) is not known"),
        (f"s3://{KEY_ID}:{HIDDEN}@bucket", "credentials come from the AWS chain"),
        (f"s3://bucket?secretAccessKey={HIDDEN}", "credentials come from the AWS chain"),
        (f's3:{{"bucket": "bucket", "sessionToken": "{SESSION}"}}', "credentials come from the AWS chain"),
        (f'gcs:{{"bucket": "bucket", "key": "{HIDDEN}"}}', "credentials come from Google's default chain"),
        (f's3:{{"bucket": "bucket", "secretAccessKey": "{HIDDEN}"', "is not JSON"),
    ],
)
def test_bad_addresses_are_one_line_without_secrets(
    run: Run, monkeypatch: pytest.MonkeyPatch, text: str, says: str
) -> None:
    """Exit 2, the value or, where it may be secret, only its kind; the same for every place that names a datastore."""
    (Path.cwd() / ".swamp.yaml").write_text("{}")
    for line in (["doctor", text], ["init", "--datastore", text]):
        result = run(*line)
        assert result.code == 2
        assert says in result.line.replace("(from --datastore)", "(from URL)")
        assert not has_secret(result.out, result.err)
    monkeypatch.setenv("SWAMP_DATASTORE", text)
    for command in ("status", "ls"):
        result = run(command)
        assert result.code == 2
        assert not has_secret(result.out, result.err)


def secret_settings(repo: Path) -> None:
    """A settings file with a secret in it."""
    (repo / ".swamp.yaml").write_text(
        f"datastore:\n  type: '@swamp/s3-datastore'\n  config: {{bucket: bucket, secretAccessKey: {HIDDEN}}}\n"
    )


@pytest.mark.parametrize("command", ["status", "doctor", "ls", "usage"])
def test_a_secret_in_the_settings_is_refused_unseen(run: Run, repo: Path, command: str) -> None:
    """Whichever command reads the file, the secret does not come out of it."""
    secret_settings(repo)
    for line in ([command], [command, "--json"]):
        result = run(*line)
        assert result.code == 2
        assert b"secretAccessKey" in result.err
        assert not has_secret(result.out, result.err)


def test_a_kind_nobody_knows_is_told_by_every_command(run: Run) -> None:
    """Commands for data refuse an unknown type as the doctor does."""
    run("init")
    for line in (["put", "t", "i", "n"], ["ls"], ["status"], ["doctor"]):
        error = run(*line, "--datastore", "@acme/x:{}", "--json", stdin=b"x").error
        assert (error["kind"], error["exit"]) == ("unknown_datastore", 2)


def test_status_looks_at_an_object_store(run: Run, url: str, server: S3Server, repo: Path) -> None:
    """Reachable or not is told without writing anything."""
    assert run("init", "--datastore", url).code == 0
    server.reset()
    result = run("status", "--remote", "--json")
    assert result.code == 0
    assert result.document["datastore"] == {
        "type": "@swamp/s3-datastore",
        "name": "s3://bucket/team/prod",
        "from": ".swamp.yaml",
        "namespace": "",
    }
    assert {"ListObjectsV2", "GetObject"} <= set(server.counts())
    assert not {"PutObject", "DeleteObject"} & set(server.counts())
    server.inject(Fail(403, "InvalidAccessKeyId"), times=None)
    result = run("status", "--remote")
    assert result.code == 5
    assert b"NOT OK: " in result.out
    server.faults.clear()
    server.put("bucket", "team/prod/_control/datastore-format", b'{"format": 9}')
    assert "format 9" in run("status", "--remote", "--json").document["message"]


BEFORE = """# ours
swampVersion: "2026.08.12.1"
repoId: "5b0c8a52-7d1e-4c39-9f44-2a6be01d7c15"  # keep
datastore:
  type: filesystem
  path: ../share
  namespace: green
  config: {syncTimeoutMs: 7000}
tools: [claude]
"""
AFTER = """# ours
swampVersion: "2026.08.12.1"
repoId: "5b0c8a52-7d1e-4c39-9f44-2a6be01d7c15"  # keep
datastore:
  type: "@swamp/s3-datastore"
  config:
    syncTimeoutMs: 7000
    bucket: "bucket"
    prefix: "team/prod"
    endpoint: "URL"
  namespace: "green"
tools: [claude]
"""


def test_init_writes_what_the_reference_reads(run: Run, url: str, repo: Path, server: S3Server) -> None:
    """The block has the reference's type and configuration; every other byte and the repository's settings stay."""
    (repo / ".swamp.yaml").write_text(BEFORE)
    result = run("init", "--datastore", url)
    assert result.code == 0, result.err
    assert (repo / ".swamp.yaml").read_text() == AFTER.replace("URL", server.url)
    assert server.keys("bucket") == []
    status = run("status", "--json").document
    assert (status["syncTimeoutMs"], status["datastore"]["namespace"]) == (7000, "green")


def test_init_tells_of_data_that_stays_where_it_was(run: Run, url: str, repo: Path) -> None:
    """Pointing a repository with data at a bucket moves nothing, and says so."""
    run("init")
    assert run("put", "t", "i", "n", stdin=b"x").code == 0
    assert run("init", "--datastore", url, "--json").document["leftBehind"] == str(repo / ".swamp")


@pytest.mark.parametrize("existing", [True, False])
def test_init_refuses_a_store_that_ignores_conditions(
    run: Run, url: str, repo: Path, server: S3Server, snapshot: Callable[[Path], Any], *, existing: bool
) -> None:
    """Nothing is written, here or there; allowing it writes the block and notes what it means."""
    if existing:
        run("init")
    server.dialect = Dialect(ignore_conditions=True)
    before = snapshot(repo)
    error = run("init", "--datastore", url, "--json").error
    assert (error["kind"], error["exit"]) == ("untrusted", 5)
    assert snapshot(repo) == before
    allowed = run("init", "--datastore", url, "--allow-untrusted", "--json")
    assert allowed.code == 0
    assert any("two writers would overwrite each other" in note for note in allowed.document["notes"])
    assert "@swamp/s3-datastore" in (repo / ".swamp.yaml").read_text()


def test_init_refuses_a_store_of_a_newer_format(run: Run, url: str, repo: Path, server: S3Server) -> None:
    """The marker is obeyed before anything is set up, whatever is allowed."""
    server.put("bucket", "team/prod/_control/datastore-format", b'{"format": 3}')
    error = run("init", "--datastore", url, "--allow-untrusted", "--json").error
    assert (error["kind"], error["exit"]) == ("datastore_format_unsupported", 7)
    assert list(repo.iterdir()) == []


def test_init_sets_what_a_store_needs(run: Run, url: str, repo: Path, server: S3Server) -> None:
    """A store that ignores conditions of removals is taken with the setting that makes it safe."""
    server.dialect = Dialect(conditional_delete=False)
    result = run("init", "--datastore", url)
    assert result.code == 0, result.err
    assert b"conditionalDelete: false was set" in result.out
    assert "conditionalDelete: false" in (repo / ".swamp.yaml").read_text()
    assert run("doctor").code == 0


def test_gcs_at_the_command_line(run: Run, repo: Path) -> None:
    """The same commands for the other cloud, with its type in the settings."""
    with GcsServer(["bucket"]) as server:
        assert run("init", "--datastore", f"gs://bucket/p?apiEndpoint={server.url}").code == 0
        text = (repo / ".swamp.yaml").read_text()
        assert 'type: "@swamp/gcs-datastore"' in text
        assert f'apiEndpoint: "{server.url}"' in text
        assert run("status", "--remote").code == 0
        assert run("doctor", "--json").document["details"]["conditionalWrites"] == "supported"


def test_rclone_is_refused_at_the_command_line(
    run: Run, rclone_s3: S3Endpoint, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real store that ignores conditions is neither healthy nor set up."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", rclone_s3.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", rclone_s3.secret_key)
    url = f"s3://{rclone_s3.bucket()}?endpoint={rclone_s3.url}&region=us-east-1"
    result = run("doctor", url, "--json")
    assert (result.code, result.document["details"]["conditionalWrites"]) == (5, "ignored")
    assert run("init", "--datastore", url).code == 5
    assert list(repo.iterdir()) == []


def test_backends_are_listed(run: Run) -> None:
    """The built-in kinds with their aliases; one by name with its options; with --json the whole schema."""
    text = run("backends").out.decode()
    for word in ("filesystem", "@swamp/s3-datastore", "@swamp/gcs-datastore", " gcs "):
        assert word in text
    text = run("backends", "s3").out.decode()
    for word in ("bucket", "required", "forcePathStyle", "false", "requestTimeoutMs", "30000", "AWS chain"):
        assert word in text
    listed = {one["type"]: one for one in run("backends", "--json").document["backends"]}
    bucket = listed["@swamp/s3-datastore"]["config"]["properties"]["bucket"]
    assert bucket["type"] == "string"
    assert listed["@swamp/s3-datastore"]["aliases"] == ["s3"]


class Refusing(http.server.BaseHTTPRequestHandler):
    """A plain web server, which answers 400 to what it cannot read."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def plain_port() -> Iterator[int]:
    """A port where a plain web server listens."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield running.server_address[1]
        running.shutdown()


def certificates(directory: Path) -> tuple[Path, Path, Path]:
    """A certificate authority that nobody knows, and a certificate for 127.0.0.1 from it with its key."""
    now, day = dt.datetime.now(dt.UTC), dt.timedelta(days=1)
    keys = [ec.generate_private_key(ec.SECP256R1()) for _ in range(2)]
    names = [x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]) for name in ("an authority", "127.0.0.1")]
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = [
        x509.CertificateBuilder(names[0], names[number], key.public_key(), number + 1, now - day, now + day)
        .add_extension(x509.BasicConstraints(ca=number == 0, path_length=None), critical=True)
        .add_extension(address, critical=False)
        .sign(keys[0], hashes.SHA256())
        for number, key in enumerate(keys)
    ]
    paths = directory / "ca.pem", directory / "cert.pem", directory / "key.pem"
    for path, certificate in zip(paths, made, strict=False):
        path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    form = serialization.PrivateFormat.PKCS8
    paths[2].write_bytes(keys[1].private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))
    return paths


@contextlib.contextmanager
def tls_front(port: int, certificate: Path, key: Path) -> Iterator[int]:
    """A port that speaks TLS with a certificate and passes everything on to a plain one."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    listener = socket.create_server(("127.0.0.1", 0))

    def pump(source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65_536):
                sink.sendall(data)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_RDWR)

    def serve(raw: socket.socket) -> None:
        try:
            front = context.wrap_socket(raw, server_side=True)
        except OSError:  # a client that does not trust us
            raw.close()
            return
        with front, socket.create_connection(("127.0.0.1", port)) as back:
            other = threading.Thread(target=pump, args=(back, front), daemon=True)
            other.start()
            pump(front, back)
            other.join()

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def refusals(server: S3Server, plain_port: int, tls_port: int) -> list[tuple[str, int, str]]:
    """Addresses of stores that cannot be used, with the exit code and what the line says to do."""
    (closed,) = free_ports(1)
    return [
        (f"s3://bucket?endpoint={server.url}", 6, "does not accept our credentials"),
        (f"s3://nothing?endpoint=http://127.0.0.1:{server.port}", 6, "set AWS_PROFILE or AWS_ACCESS_KEY_ID"),
        (f"s3://bucket?endpoint=http://127.0.0.1:{closed}", 5, "check the endpoint and the network"),
        (f"s3://bucket?endpoint=https://127.0.0.1:{plain_port}", 5, "check that it speaks TLS"),
        (f"s3://bucket?endpoint=https://127.0.0.1:{tls_port}", 5, "name its CA certificate"),
        (f"gs://bucket?apiEndpoint=http://127.0.0.1:{closed}", 5, "check the endpoint and the network"),
        (f"gs://bucket?apiEndpoint=https://127.0.0.1:{tls_port}", 5, "name its CA certificate"),
    ]


def test_stores_that_cannot_be_used_are_one_line_that_says_what_to_do(
    process: Run, repo: Path, tmp_path: Path, plain_port: int
) -> None:
    """Wrong credentials, a closed port, no TLS, an unknown certificate: as real processes, without any secret."""
    credentials = Credentials(access_key="somebody", secret_key="else")  # noqa: S106 - a test server's
    with (
        S3Server(["bucket"], credentials=credentials) as server,
        tls_front(server.port, *certificates(tmp_path)[1:]) as tls,
    ):
        for url, code, says in refusals(server, plain_port, tls):
            result = process("doctor", url, env=AWS)
            assert result.code == code, (url, result)
            assert says in result.line, (url, result)
            assert not has_secret(result.out, result.err)
            result = process("init", "--datastore", url, "--json", env=AWS)
            assert result.code == code
            assert says in result.error["message"]
            assert not has_secret(result.out, result.err)
        assert list(repo.iterdir()) == []


@pytest.mark.parametrize(
    ("action", "code", "says"),
    [
        (Fail(404, "NoSuchBucket"), 5, "create it or correct its name"),
        (Fail(400, "ExpiredToken"), 6, "have expired"),
        (Fail(403, "ExpiredToken"), 6, "run 'aws sso login'"),
        (Fail(403, "SignatureDoesNotMatch"), 6, "set AWS_PROFILE"),
        (Fail(403, "RequestTimeTooSkewed"), 6, "clock of this machine is wrong"),
        (Fail(301, "PermanentRedirect"), 5, "set the region"),
        (Fail(503, "SlowDown"), 5, "slow down"),
        (Fail(500, "InternalError"), 5, "try again later"),
    ],
    ids=str,
)
def test_refusing_answers_are_one_line_that_says_what_to_do(
    run: Run, url: str, server: S3Server, action: Fail, code: int, says: str
) -> None:
    """What a store answers is told in our words, for doctor and init alike, and as the verifier's document."""
    server.inject(action, times=None)
    for line in (["doctor", url], ["init", "--datastore", url]):
        result = run(*line)
        assert result.code == code
        assert says in result.line
        assert not has_secret(result.out, result.err)
    result = run("doctor", url, "--json")
    assert (result.code, result.document["healthy"]) == (code, False)
    assert says in result.document["message"]
    assert not has_secret(result.out, result.err)


def test_missing_credentials_are_told(process: Run, server: S3Server) -> None:
    """Without any credentials the line says how to get some."""
    env = {"AWS_EC2_METADATA_DISABLED": "true", "AWS_REGION": "us-east-1"}
    result = process("doctor", f"s3://bucket?endpoint={server.url}", env=env)
    assert result.code == 6
    assert "no credentials for s3://bucket" in result.line
    assert "set AWS_PROFILE" in result.line


def test_a_certificate_authority_of_one_s_own(process: Run, server: S3Server, tmp_path: Path, repo: Path) -> None:
    """With caFile the connection is trusted, for every request of the doctor; a file that is none is told."""
    authority, certificate, key = certificates(tmp_path)
    with tls_front(server.port, certificate, key) as port:
        url = f"s3://bucket?endpoint=https://127.0.0.1:{port}"
        result = process("doctor", f"{url}&caFile=../{authority.name}", "--json", env=AWS)
        assert result.code == 0, result
        assert result.document["details"]["conditionalWrites"] == "supported"
        for bad in ("nothing.pem", "../key.pem"):
            refused = process("doctor", f"{url}&caFile={bad}", env=AWS)
            assert refused.code in (2, 3, 5)
            assert "pem" in refused.line or "CA certificate" in refused.line


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("key", ["*conditional-write-probe*", "*mire-probe*"])
def test_an_interrupted_doctor_cleans_up(
    server: S3Server, repo: Path, environ: dict[str, str], number: signal.Signals, code: int, key: str
) -> None:
    """A signal in the middle of the trials leaves the bucket as it was."""
    hold = server.hold(operation="PutObject", key=key, skip=1, after=True)
    child = subprocess.Popen(
        [str(Path(sys.executable).with_name("mire")), "doctor", f"s3://bucket?endpoint={server.url}"],
        cwd=repo,
        env={**environ, **AWS},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        assert hold.arrived.wait(60)
        child.send_signal(number)
        hold.release()
        out, err = child.communicate(timeout=60)
    finally:
        child.kill()
        child.wait()
    # An interrupted terminal line is ended.
    assert (child.returncode, out, err.strip()) == (code, b"", b"")
    assert server.keys("bucket") == []


def test_profiles_are_used(process: Run, tmp_path: Path, home: Path) -> None:
    """`profile` names the credentials in the AWS files of the home directory."""
    (home / ".aws").mkdir()
    (home / ".aws/credentials").write_text(f"[ops]\naws_access_key_id = ops\naws_secret_access_key = {HIDDEN}\n")
    credentials = Credentials(access_key="ops", secret_key=HIDDEN)
    with S3Server(["bucket"], credentials=credentials) as server:
        url = f"s3://bucket?endpoint={server.url}&region=us-east-1"
        env = {"AWS_EC2_METADATA_DISABLED": "true"}
        assert process("doctor", f"{url}&profile=ops", env=env).code == 0
        missing = process("doctor", f"{url}&profile=nobody", env=env)
        assert missing.code in (2, 6)
        assert "nobody" in missing.line


def test_the_document_says_the_same_when_piped(process: Run, server: S3Server) -> None:
    """Text and JSON of a real process: nothing on stderr, UTF-8, one document."""
    result = process("doctor", f"s3://bucket?endpoint={server.url}", "--json", env=AWS)
    assert json.loads(result.out)["healthy"] is True
    assert result.err == b""
