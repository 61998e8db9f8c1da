"""Failures of object stores: which of ours they become, what they say, and that nothing secret is in them."""

import http.server
import ipaddress
import json
import logging
import ssl
import threading
import traceback
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from mire.edge.foreign import Failure, Place, Trouble, answered, error_of, failure_of, place_endpoint
from mire.edge.objectstore import open_gcs, open_s3
from mire.edge.remote import Absent, Matches, Refused, Remote, Removed, Unknown
from mire.edge.traced import Traced
from mire.errors import (
    ConfigError,
    DeniedError,
    MireError,
    MissingBucketError,
    NotFoundError,
    RemoteError,
    ThrottledError,
)
from mire.model.backend import GcsSettings, S3Settings
from mire.testing import faults
from mire.testing.gcsauth import ServiceAccount
from mire.testing.gcsserver import GcsServer
from mire.testing.s3server import S3Server

SECRETS = ("AKIAVERYSECRETID0000", "very-secret-key", "very-secret-session-token")

CALLS: dict[str, Callable[[Remote], object]] = {
    "get": lambda remote: remote.get("k"),
    "get_if_changed": lambda remote: remote.get_if_changed("k", "0" * 32),
    "get_stream": lambda remote: list(remote.get_stream("k").chunks),
    "head": lambda remote: remote.head("k"),
    "put": lambda remote: remote.put("k", b"x"),
    "put_stream": lambda remote: remote.put_stream("k", lambda: [b"x"]),
    "delete": lambda remote: remote.delete("k"),
    "list": lambda remote: list(remote.list()),
    "list_level": lambda remote: remote.list_level(),
    "copy": lambda remote: remote.copy("k", "l"),
}
CONDITIONAL: dict[str, Callable[[Remote], object]] = {
    "create": lambda remote: remote.put_if("k", b"x", Absent()),
    "update": lambda remote: remote.put_if("k", b"x", Matches("1" * 32)),
    "delete_if": lambda remote: remote.delete_if("k", "1" * 32),
}

ANSWERS = [
    (404, "NoSuchBucket", MissingBucketError, "missing_bucket"),
    (403, "AccessDenied", DeniedError, "denied"),
    (403, "InvalidAccessKeyId", DeniedError, "credentials"),
    (403, "SignatureDoesNotMatch", DeniedError, "credentials"),
    (400, "ExpiredToken", DeniedError, "expired_token"),
    (403, "RequestTimeTooSkewed", DeniedError, "clock_skew"),
    (400, "AuthorizationHeaderMalformed", RemoteError, "region"),
    (301, "PermanentRedirect", RemoteError, "region"),
    (429, "", ThrottledError, "throttled"),
    (503, "SlowDown", ThrottledError, "throttled"),
    (503, "ServiceUnavailable", RemoteError, "server"),
    (500, "InternalError", RemoteError, "server"),
    (409, "OperationAborted", RemoteError, "busy"),
    (408, "", RemoteError, "timeout"),
    (501, "NotImplemented", RemoteError, "unsupported"),
]
HEADLESS = {(503, "ServiceUnavailable"), (400, "AuthorizationHeaderMalformed")}
"""What a HEAD, which has no body, cannot tell from something else."""


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in zip(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"), SECRETS, strict=True):
        monkeypatch.setenv(name, value)


def s3_at(url: str, **options: Any) -> Remote:
    """A remote for the bucket `b` of a server."""
    return open_s3(S3Settings(bucket="b", endpoint=url, **options))


def error_from(call: Callable[..., object], *arguments: object) -> MireError:
    """What a call raises, which must be ours and one clean line."""
    with pytest.raises(MireError) as caught:
        call(*arguments)
    error = caught.value
    assert error.message == " ".join(error.message.split())
    assert len(error.message) < 500
    assert error.__cause__ is None
    assert error.__context__ is None
    assert "Debug source" not in error.message
    return error


@pytest.mark.parametrize(("status", "code", "kind_of_error", "kind"), ANSWERS)
def test_an_answer_of_s3_is_one_error_for_every_call(
    s3_server: S3Server, status: int, code: str, kind_of_error: type[RemoteError], kind: str
) -> None:
    """Each refusal is the same error whichever library asked, transient only if trying again may help."""
    remote = s3_at(s3_server.url)
    s3_server.put("b", "k", b"x")
    s3_server.inject(faults.Fail(status, code), times=None)
    for name, call in CALLS.items():
        if name == "head" and (status, code) in HEADLESS:
            continue
        error = error_from(call, remote)
        assert (type(error), error.kind) == (kind_of_error, kind), name
        assert isinstance(error, RemoteError)
        assert error.transient == (status in (408, 409, 429, 500, 503)), name
        assert s3_server.url in error.message or kind == "expired_token"


@pytest.mark.parametrize(("status", "code", "kind_of_error", "kind"), ANSWERS)
def test_a_conditional_write_is_unknown_only_when_it_may_have_happened(
    s3_server: S3Server, status: int, code: str, kind_of_error: type[RemoteError], kind: str
) -> None:
    """What may pass is an unknown outcome, what is final is raised."""
    remote = s3_at(s3_server.url)
    s3_server.inject(faults.Fail(status, code), times=None)
    for name, call in CONDITIONAL.items():
        if status in (408, 409, 429, 500, 503):
            outcome = call(remote)
            assert isinstance(outcome, Unknown), name
            assert (type(outcome.error), outcome.error.kind) == (kind_of_error, kind), name
            assert outcome.error.transient
        else:
            error = error_from(call, remote)
            assert (type(error), error.kind) == (kind_of_error, kind), name


def test_a_precondition_that_fails_is_a_refusal(s3_server: S3Server) -> None:
    """412 is an answer, not an error."""
    remote = s3_at(s3_server.url)
    s3_server.put("b", "k", b"x")
    s3_server.inject(faults.Fail(412), times=None, operation="[PD]*")
    assert [call(remote) for call in CONDITIONAL.values()] == [Refused(), Refused(), Refused()]


@pytest.mark.parametrize("action", [faults.Drop(), faults.ApplyThenDrop(), faults.ApplyThenFail(500)])
def test_a_lost_answer_is_unknown(s3_server: S3Server, action: faults.Action) -> None:
    """Whether or not the write was applied, a client that got no answer does not know."""
    remote = s3_at(s3_server.url)
    fingerprint = s3_server.put("b", "k", b"x")
    for name, call in {
        "create": lambda: remote.put_if("new", b"x", Absent()),
        "update": lambda: remote.put_if("k", b"y", Matches(fingerprint)),
        "delete_if": lambda: remote.delete_if("k", s3_server.put("b", "k", b"z")),
    }.items():
        s3_server.inject(action)
        outcome = call()
        assert isinstance(outcome, Unknown), name
        assert outcome.error.transient


def test_a_bucket_that_is_missing_is_not_a_missing_object(s3_server: S3Server, gcs_server: GcsServer) -> None:
    """Every call tells a missing bucket from a missing object, also those whose answer has no body."""
    for remote in (
        open_s3(S3Settings(bucket="nowhere", endpoint=s3_server.url)),
        open_gcs(GcsSettings(bucket="nowhere", api_endpoint=gcs_server.url, auth="none")),
    ):
        for name, call in (CALLS | CONDITIONAL).items():
            error = error_from(call, remote)
            assert isinstance(error, MissingBucketError), name
            assert "'nowhere'" in error.message


def test_a_missing_object_costs_one_more_request_only_once(s3_server: S3Server) -> None:
    """A HEAD that finds nothing asks whether the bucket is there; after that it is known."""
    remote = s3_at(s3_server.url)
    for _ in range(3):
        assert isinstance(error_from(lambda: remote.head("nothing")), NotFoundError)
    assert s3_server.counts() == {"HeadObject": 3, "GetObject": 1}


def test_nobody_at_the_address(s3_server: S3Server) -> None:
    """A port that nobody listens on is an unreachable store, for every call and the clock, and nothing is unknown."""
    s3_server.stop()
    remote = s3_at(s3_server.url)
    for name, call in (CALLS | CONDITIONAL | {"time": lambda remote: remote.server_time_ms()}).items():
        error = error_from(call, remote)
        assert error.kind == "unreachable", name
        assert "check the endpoint" in error.message
    s3_server.start()


def test_a_server_that_never_answers(s3_server: S3Server) -> None:
    """After the configured time a call ends, says how long it waited, and a conditional write is unknown."""
    remote = s3_at(s3_server.url, request_timeout_ms=300)
    s3_server.put("b", "k", b"x")
    s3_server.hold(times=None)
    for name, call in CALLS.items():
        error = error_from(call, remote)
        assert error.kind == "timeout", name
        assert "300 ms" in error.message
    for name, call in CONDITIONAL.items():
        assert isinstance(call(remote), Unknown), name


def test_a_body_that_breaks_off(s3_server: S3Server) -> None:
    """Half an object is never taken for a whole one."""
    remote = s3_at(s3_server.url)
    s3_server.put("b", "k", bytes(100_000))
    s3_server.inject(faults.Truncate(50_000), operation="GetObject", times=None)
    for call in (CALLS["get"], CALLS["get_stream"]):
        assert error_from(call, remote).kind == "lost"
    s3_server.inject(faults.Truncate(40), operation="ListObjectsV2", times=None)
    error = error_from(CALLS["list"], remote)
    assert isinstance(error, RemoteError)
    assert error.transient


class _Quiet(http.server.BaseHTTPRequestHandler):
    """Answers every request with all that was sent, as a refusal."""

    protocol_version = "HTTP/1.1"
    status = 403
    listing = b""

    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        echo = "".join(f"<Header>{name}: {value}</Header>" for name, value in self.headers.items())
        body = self.listing or f"<Error><Code>Surprise</Code><Message>{echo}</Message></Error>".encode()
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _answer  # noqa: N815 - names that http.server looks for

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def serve() -> Iterator[Callable[..., str]]:
    """Starts small servers; their addresses."""
    running: list[http.server.ThreadingHTTPServer] = []

    def start(*, tls: ssl.SSLContext | None = None, **members: Any) -> str:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Quiet,), members))
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        running.append(server)
        return f"{'https' if tls else 'http'}://127.0.0.1:{server.server_address[1]}"

    yield start
    for server in running:
        server.shutdown()
        server.server_close()


@pytest.fixture
def spans() -> tuple[InMemorySpanExporter, TracerProvider]:
    """Where spans of a test end up."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return exporter, provider


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 500, 503])
def test_nothing_secret_is_told(
    serve: Callable[..., str],
    spans: tuple[InMemorySpanExporter, TracerProvider],
    caplog: pytest.LogCaptureFixture,
    status: int,
) -> None:
    """A server that sends everything back puts no key, token or signature into an error, a log or a span."""
    caplog.set_level(logging.DEBUG)
    url = serve(status=status)
    gcs = open_gcs(GcsSettings(bucket="b", api_endpoint=url, auth="none"))
    told: list[str] = []
    for inner in (s3_at(url), gcs):
        remote = Traced(inner, provider=spans[1])
        for name, call in (CALLS | CONDITIONAL).items():
            try:
                outcome = call(remote)
            except MireError as error:
                told += [repr(error), json.dumps(error.document(), default=repr), *traceback.format_exception(error)]
            else:
                told.append(repr(outcome))
                assert isinstance(outcome, Unknown | Refused | Removed) or name == "delete"
    finished = spans[0].get_finished_spans()
    assert len(finished) >= len(CALLS | CONDITIONAL)
    told += [span.to_json() for span in finished]
    text = "\n".join([*told, caplog.text])
    for secret in (*SECRETS, "Signature=", "AWS4-HMAC", "Bearer"):
        assert secret not in text
    assert not any("Surprise</Code>" in each for each in told)


def certificate(directory: Path) -> tuple[ssl.SSLContext, Path]:
    """A server's TLS for the loopback address, and the file of the authority that vouches for it."""
    authority, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "mire tests")])
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "loopback")])
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    is_ca = x509.BasicConstraints(ca=True, path_length=None)
    root = _unsigned(issuer, issuer, authority).add_extension(is_ca, critical=True).sign(authority, hashes.SHA256())
    leaf = _unsigned(subject, issuer, key).add_extension(address, critical=False).sign(authority, hashes.SHA256())
    ca_file, chain = directory / "ca.pem", directory / "server.pem"
    ca_file.write_bytes(root.public_bytes(serialization.Encoding.PEM))
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    chain.write_bytes(leaf.public_bytes(serialization.Encoding.PEM) + private)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain)
    return context, ca_file


def _unsigned(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    day, now = timedelta(days=1), datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
    return builder.serial_number(x509.random_serial_number()).not_valid_before(now - day).not_valid_after(now + day)


def test_tls_that_is_not_trusted(serve: Callable[..., str], tmp_path: Path) -> None:
    """An unknown authority is a TLS error for every library; naming its file makes the store reachable."""
    context, ca_file = certificate(tmp_path)
    url = serve(tls=context, status=404, listing=b"<Error><Code>NoSuchKey</Code></Error>")
    asks = {name: CALLS[name] for name in ("get", "head", "list", "get_stream")}
    asks["time"] = lambda remote: remote.server_time_ms()
    for open_it in (
        lambda **options: s3_at(url, **options),
        lambda **options: open_gcs(GcsSettings(bucket="b", api_endpoint=url, auth="none", **options)),
    ):
        for name, call in asks.items():
            error = error_from(call, open_it())
            assert error.kind == "tls", name
            assert "CA certificate" in error.message
        trusting = open_it(ca_file=str(ca_file))
        assert isinstance(error_from(CALLS["get"], trusting), NotFoundError)
        assert isinstance(error_from(CALLS["list"], trusting), NotFoundError | MissingBucketError)
        assert trusting.server_time_ms() > 0


def test_the_clock_of_a_server_without_tls(serve: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no TLS, nobody reads who could be trusted: that takes longer than asking."""

    def read(**_: object) -> None:
        raise AssertionError("the authorities were read")

    monkeypatch.setattr("ssl.create_default_context", read)
    assert s3_at(serve()).server_time_ms() > 0


def test_tls_to_a_server_that_has_none(serve: Callable[..., str]) -> None:
    """Speaking TLS to a plain server is a TLS error."""
    remote = s3_at(serve().replace("http://", "https://"))
    for name in ("get", "head", "list"):
        assert error_from(CALLS[name], remote).kind == "tls"


@pytest.mark.parametrize("text", [None, "no certificate at all"])
def test_a_ca_file_without_certificate(s3_server: S3Server, tmp_path: Path, text: str | None) -> None:
    """A file of authorities that is missing or empty is a mistake in the settings, which names it."""
    path = tmp_path / "ca.pem"
    if text is not None:
        path.write_text(text)
    error = error_from(lambda: s3_at(s3_server.url, ca_file=str(path)).get("k"))
    assert isinstance(error, ConfigError)
    assert str(path) in error.message


def test_no_credentials(s3_server: S3Server, gcs_server: GcsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there are none, every call says so and how to get some, and no store is asked."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", "/nonexistent")
    s3, gcs = s3_at(s3_server.url), open_gcs(GcsSettings(bucket="b", api_endpoint=gcs_server.url))
    for remote, advice in ((s3, "aws sso login"), (gcs, "gcloud auth application-default login")):
        for name, call in (CALLS | CONDITIONAL).items():
            error = error_from(call, remote)
            assert (type(error), error.kind) == (DeniedError, "credentials"), name
            assert advice in error.message
    assert s3_server.counts() == gcs_server.counts() == {}


SSO = """
[profile work]
sso_session = s
sso_account_id = 1
sso_role_name = r
region = eu-west-1
[sso-session s]
sso_start_url = http://127.0.0.1:1/
sso_region = eu-west-1
[profile broken]
credential_process = /nonexistent/program
"""


@pytest.mark.parametrize(
    ("profile", "kind_of_error", "kind", "advice"),
    [
        ("work", DeniedError, "expired_token", "aws sso login --profile work"),
        ("broken", DeniedError, "credentials", "AWS_PROFILE"),
        ("missing", ConfigError, "profile", "list-profiles"),
    ],
)
def test_a_profile_without_credentials(
    s3_server: S3Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    profile: str,
    kind_of_error: type[MireError],
    kind: str,
    advice: str,
) -> None:
    """A login that has ended, a program that fails and a profile that is not there are told apart."""
    config = tmp_path / "config"
    config.write_text(SSO)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    monkeypatch.setenv("HOME", str(tmp_path))
    remote = s3_at(s3_server.url, profile=profile)
    for name in ("get", "head", "list"):
        error = error_from(CALLS[name], remote)
        assert (type(error), error.kind) == (kind_of_error, kind), name
        assert advice in error.message


def test_a_profile_is_used(s3_server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Endpoint, region and credentials of a profile are used by both libraries."""
    config = tmp_path / "config"
    config.write_text(
        f"[profile p]\naws_access_key_id = a\naws_secret_access_key = b\nendpoint_url = {s3_server.url}\n"
    )
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    remote = open_s3(S3Settings(bucket="b", profile="p", force_path_style=True))
    remote.put("k", b"x")
    assert [stat.key for stat in remote.list()] == ["k"]


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[GcsServer, Path]]:
    """A GCS server that lets one service account in, and the file of that account, where it is looked for."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    known = ServiceAccount(email="mire@example.invalid", modulus=key.public_key().public_numbers().n)
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    with GcsServer(buckets=["b"], service_account=known) as server:
        path = tmp_path / "account.json"
        document = {
            "type": "service_account",
            "project_id": "p",
            "private_key_id": "1",
            "private_key": pem.decode(),
            "client_email": known.email,
            "token_uri": f"{server.url}/token",
        }
        path.write_text(json.dumps(document))
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(path))
        yield server, path


def test_gcs_authenticates_at_any_endpoint(account: tuple[GcsServer, Path]) -> None:
    """With the usual credentials a server of one's own lets us in, and without them it does not."""
    server, _ = account
    remote = open_gcs(GcsSettings(bucket="b", api_endpoint=server.url))
    fingerprint = remote.put("k", b"x").fingerprint
    assert [stat.key for stat in remote.list()] == ["k"]
    assert remote.delete_if("k", fingerprint) == Removed()
    anonymous = open_gcs(GcsSettings(bucket="b", api_endpoint=server.url, auth="none"))
    for name in ("get", "head", "list", "put"):
        error = error_from(CALLS[name], anonymous)
        assert (type(error), error.kind) == (DeniedError, "credentials"), name


def test_gcs_credentials_that_are_refused(account: tuple[GcsServer, Path], caplog: pytest.LogCaptureFixture) -> None:
    """An account that the token endpoint does not know is an error of credentials that shows none of them."""
    caplog.set_level(logging.DEBUG)
    server, path = account
    document = json.loads(path.read_text())
    document["client_email"] = "somebody-else@example.invalid"
    path.write_text(json.dumps(document))
    remote = open_gcs(GcsSettings(bucket="b", api_endpoint=server.url))
    for name in ("get", "head", "list"):
        error = error_from(CALLS[name], remote)
        assert isinstance(error, DeniedError), name
        assert error.kind in ("credentials", "expired_token")
    assert "PRIVATE KEY" not in caplog.text
    assert document["private_key"].splitlines()[1] not in caplog.text


def test_an_endpoint_is_shown_without_what_may_be_secret() -> None:
    """User, password, query and fragment of an address are not shown."""
    assert place_endpoint("https://user:secret@host:9000/base/?token=secret#secret") == "https://host:9000/base"


def test_a_key_cannot_forge_an_error(s3_server: S3Server) -> None:
    """A key that looks like the text of another error does not become that error."""
    remote = s3_at(s3_server.url)
    remote.put("x", b"")
    key = "inner: Status { status: 403, body: Some( <Code>AccessDenied</Code>"
    assert isinstance(error_from(lambda: remote.get(key)), NotFoundError)


def test_codes_that_are_no_codes_are_not_shown() -> None:
    """Only a short word is taken for a code."""
    place = Place(name="s3://b", bucket="b", endpoint="http://e", timeout_ms=1, advice="ask")
    for code in ("has space", "x" * 65, "<b>", "", "1a"):
        assert answered(418, code).code == ""
    assert error_of(answered(418, "Teapot"), place, "k").message.count("Teapot") == 1
    assert failure_of(ValueError("anything at all")) == Failure(Trouble.OTHER, detail="ValueError")
