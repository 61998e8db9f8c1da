"""The HTTP of the test servers, byte by byte."""

import re
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator

import pytest

from mire.testing.s3server import S3Server


@pytest.fixture
def wire(s3_server: S3Server) -> Iterator[socket.socket]:
    """A bare connection to the server."""
    with socket.create_connection(("127.0.0.1", s3_server.port), timeout=10) as connection:
        yield connection


def read_until(wire: socket.socket, end: bytes) -> bytes:
    """What comes up to and with some bytes."""
    data = b""
    while end not in data and (more := wire.recv(65536)):
        data += more
    return data


def head(method: str, target: str, *headers: str) -> bytes:
    """The head of a request."""
    return "\r\n".join([f"{method} {target} HTTP/1.1", "Host: x", *headers, "", ""]).encode()


def test_pipelining(wire: socket.socket, s3_server: S3Server) -> None:
    """Requests sent at once are answered in their order, also when the first one is held."""
    hold = s3_server.hold(operation="PutObject")
    wire.sendall(head("PUT", "/b/k", "Content-Length: 5") + b"hello" + head("GET", "/b/k") + head("GET", "/b/none"))
    assert hold.arrived.wait(10)
    hold.release()
    answer = read_until(wire, b"</Error>")
    assert re.findall(rb"HTTP/1.1 (\d+)", answer) == [b"200", b"200", b"404"]
    assert b"\r\n\r\nhelloHTTP/1.1 404" in answer


def test_bytes_one_by_one(wire: socket.socket, s3_server: S3Server) -> None:
    """It does not matter in what pieces a request arrives."""
    for byte in head("PUT", "/b/k", "Content-Length: 2") + b"hi":
        wire.sendall(bytes([byte]))
    assert read_until(wire, b"\r\n\r\n").startswith(b"HTTP/1.1 200 OK\r\n")
    assert s3_server.get("b", "k") == b"hi"


def test_chunked_body(wire: socket.socket, s3_server: S3Server) -> None:
    """A body in chunks is put together, with extensions and trailers or without; the connection goes on."""
    for key, end in (("k1", b"0\r\n\r\n"), ("k2", b"0\r\nTrailer: x\r\n\r\n")):
        chunks = b"5;ext=1\r\nhello\r\n6\r\n world\r\n" + end
        request = head("PUT", f"/b/{key}", "Transfer-Encoding: chunked") + chunks
        for part in (request[:-9], request[-9:-2], request[-2:]):
            wire.sendall(part)
        assert b"200 OK" in read_until(wire, b"\r\n\r\n")
        assert s3_server.get("b", key) == b"hello world"


def test_expect_continue(wire: socket.socket, s3_server: S3Server) -> None:
    """A client that waits before sending its body is told to go on."""
    wire.sendall(head("PUT", "/b/k", "Content-Length: 5", "Expect: 100-continue"))
    assert read_until(wire, b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
    wire.sendall(b"hello")
    assert b"200 OK" in read_until(wire, b"\r\n\r\n")
    assert s3_server.get("b", "k") == b"hello"


def test_aws_chunked(wire: socket.socket, s3_server: S3Server) -> None:
    """A body in the encoding of AWS is taken out of it, and its trailing checksum is checked."""
    headers = (
        "Content-Encoding: aws-chunked",
        "x-amz-content-sha256: STREAMING-UNSIGNED-PAYLOAD-TRAILER",
        "x-amz-decoded-content-length: 9",
        "x-amz-trailer: x-amz-checksum-crc32",
    )
    for crc, status in (("y/Q5Jg==", b"200"), ("AAAAAA==", b"400")):
        body = b"4\r\n1234\r\n5\r\n56789\r\n0\r\nx-amz-checksum-crc32:" + crc.encode() + b"\r\n\r\n"
        wire.sendall(head("PUT", f"/b/{status.decode()}", *headers, f"Content-Length: {len(body)}") + body)
        assert read_until(wire, b"\r\n\r\n").split()[1] == status
    assert (s3_server.keys("b"), s3_server.get("b", "200")) == (["200"], b"123456789")


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"nonsense\r\n\r\n",
        b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
        b"PUT /b/k HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"PUT /b/k HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET / HTTP/1.1\r\nX: " + b"x" * 200_000,
    ],
)
def test_what_is_not_http(wire: socket.socket, s3_server: S3Server, request_bytes: bytes) -> None:
    """What is not HTTP gets 400 and the connection is closed; nothing is counted."""
    wire.sendall(request_bytes)
    assert wire.recv(65536).startswith(b"HTTP/1.1 400 ")
    assert s3_server.counts() == {}


def test_connection_close(wire: socket.socket) -> None:
    """A client that asks for it has its connection closed."""
    wire.sendall(head("GET", "/", "Connection: close"))
    answer = b""
    while more := wire.recv(65536):
        answer += more
    assert b"Connection: close" in answer


def test_own_process() -> None:
    """The server runs as its own process, says where, and counts for others."""
    command = [sys.executable, "-m", "mire.testing.s3server", "--port", "0", "--bucket", "b"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        request = urllib.request.Request(f"{url}/b/k", data=b"hello", method="PUT")  # noqa: S310 - loopback
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310
            assert answer.status == 200
        with urllib.request.urlopen(f"{url}/-/counts", timeout=10) as answer:  # noqa: S310
            assert answer.read() == b'{"PutObject": {"requests": 1, "in_bytes": 5, "out_bytes": 0}}'
        process.terminate()
