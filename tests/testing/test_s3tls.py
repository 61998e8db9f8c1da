"""The test server over TLS, which is also where boto3 sends bodies in the encoding of AWS."""

from pathlib import Path

import obstore
import obstore.exceptions
import pytest
from botocore.exceptions import SSLError
from obstore.store import S3Store

from mire.testing.s3server import Credentials, S3Server
from servers import make_certificate, s3_client

ACCESS, SECRET = "access", "hidden"


def test_boto3_sends_trailing_checksums(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over TLS boto3 puts the checksum behind the body; the body is stored without its encoding, and verified."""
    tls, authority = make_certificate(tmp_path)
    monkeypatch.setenv("AWS_CA_BUNDLE", str(authority))
    credentials = Credentials(access_key=ACCESS, secret_key=SECRET)
    with S3Server(["b"], credentials=credentials, tls=tls) as server:
        client = s3_client(server.url, ACCESS, SECRET)
        client.put_object(Bucket="b", Key="k", Body=b"0123456789" * 100_000)
        assert server.get("b", "k") == b"0123456789" * 100_000
        assert server.traffic.tallies()["PutObject"].in_bytes > 1_000_000
        head = client.head_object(Bucket="b", Key="k", ChecksumMode="ENABLED")
        assert head["ChecksumCRC32"]
        assert client.get_object(Bucket="b", Key="k")["Body"].read() == b"0123456789" * 100_000
        client.close()


def test_a_stranger_is_not_trusted(tmp_path: Path) -> None:
    """A client that does not know the authority refuses to talk to the server."""
    tls, _ = make_certificate(tmp_path)
    with S3Server(["b"], tls=tls) as server:
        client = s3_client(server.url)
        with pytest.raises(SSLError):
            client.list_buckets()
        client.close()
        store = S3Store("b", endpoint=server.url, skip_signature=True, retry_config={"max_retries": 0})
        with pytest.raises(obstore.exceptions.GenericError, match=r"(?i)certificate|invalid peer|UnknownIssuer"):
            obstore.get(store, "k")
        assert server.counts() == {}
