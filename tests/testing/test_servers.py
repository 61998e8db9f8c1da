"""The servers that tests use come up and store things."""

import pytest

from mire.testing.s3server import S3Server
from servers import GcsEndpoint, S3Endpoint, s3_client


def test_the_fault_server_stores(s3_server: S3Server) -> None:
    """Our own server stores what it is given and counts it."""
    client = s3_client(s3_server.url)
    client.put_object(Bucket="b", Key="k", Body=b"hello")
    assert client.get_object(Bucket="b", Key="k")["Body"].read() == b"hello"
    assert s3_server.counts() == {"PutObject": 1, "GetObject": 1}
    client.close()


@pytest.mark.parametrize("name", ["seaweedfs", "ministack", "rclone_s3"])
def test_s3_servers_store(name: str, request: pytest.FixtureRequest) -> None:
    """Each S3 server stores objects in as many buckets as tests ask for."""
    server: S3Endpoint = request.getfixturevalue(name)
    client = server.client()
    for number in range(3):
        bucket = server.bucket()
        client.put_object(Bucket=bucket, Key="k", Body=b"%d" % number)
        assert client.get_object(Bucket=bucket, Key="k")["Body"].read() == b"%d" % number
    client.close()


def test_rclone_ignores_conditions(rclone_s3: S3Endpoint) -> None:
    """The S3 server of rclone takes a second create for a key that is there: what `doctor` has to find."""
    client, bucket = rclone_s3.client(), rclone_s3.bucket()
    for body in (b"first", b"second"):
        client.put_object(Bucket=bucket, Key="k", Body=body, IfNoneMatch="*")
    assert client.get_object(Bucket=bucket, Key="k")["Body"].read() == b"second"
    client.close()


def test_fake_gcs_stores(fake_gcs: GcsEndpoint) -> None:
    """The fake GCS server stores what the official client gives it."""
    client = fake_gcs.client()
    blob = client.bucket(fake_gcs.bucket()).blob("k")
    blob.upload_from_string(b"hello", if_generation_match=0)
    assert blob.download_as_bytes() == b"hello"
    client.close()
