"""Our GCS server answers the official client and obstore as GCS does: both APIs, generations, tokens, faults."""

import io
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import google.auth.exceptions
import google.oauth2.credentials
import google.oauth2.service_account
import obstore
import obstore.exceptions
import pytest
from google.api_core import exceptions
from google.cloud import storage
from obstore.store import GCSStore

from mire.testing import faults
from mire.testing.gcsserver import GcsServer
from servers import gcs_client, gcs_store, service_account

NO_RETRY = {"retry": None}


@pytest.fixture
def bucket(gcs_server: GcsServer) -> Iterator[storage.Bucket]:
    """The bucket as the official client sees it."""
    client = gcs_client(gcs_server.url)
    yield client.bucket("b")
    client.close()


@pytest.fixture
def store(gcs_server: GcsServer) -> GCSStore:
    """The bucket as obstore sees it."""
    return gcs_store(gcs_server.url)


def test_official_client_round_trip(bucket: storage.Bucket, gcs_server: GcsServer) -> None:
    """What the official client uploads it downloads again, with metadata, checked by its own checksums."""
    blob = bucket.blob("a/ü 漢字+&=%20?#.txt")
    blob.metadata = {"token": "t1"}
    data = b"line\r\nline\n--boundary\r\n\r\n\x00\xff"
    blob.upload_from_string(data, content_type="text/plain", checksum="md5")
    assert blob.download_as_bytes(checksum="crc32c") == data
    assert blob.download_as_bytes(start=1, end=3) == b"ine"
    again = bucket.get_blob(blob.name)
    assert again is not None
    assert (again.metadata, again.content_type, again.size) == ({"token": "t1"}, "text/plain", len(data))
    assert again.generation == gcs_server.generation("b", blob.name) == blob.generation
    assert abs(again.updated.timestamp() - gcs_server.now_s()) < 60
    blob.delete()
    assert bucket.get_blob(blob.name) is None
    with pytest.raises(exceptions.NotFound):
        blob.delete()


def test_official_client_conditions(bucket: storage.Bucket, gcs_server: GcsServer) -> None:
    """Conditions on generations hold for upload, download, delete and copy; a refusal is 412."""
    blob = bucket.blob("k")
    blob.upload_from_string(b"1", if_generation_match=0)
    first = blob.generation
    refused = exceptions.PreconditionFailed
    with pytest.raises(refused):
        bucket.blob("k").upload_from_string(b"2", if_generation_match=0)
    blob.upload_from_string(b"2", if_generation_match=first)
    assert blob.generation > first
    with pytest.raises(refused):
        bucket.blob("k").upload_from_string(b"3", if_generation_match=first)
    with pytest.raises(refused):
        bucket.blob("missing").upload_from_string(b"3", if_generation_match=first)
    with pytest.raises(refused):
        bucket.blob("k").download_as_bytes(if_generation_match=first)
    with pytest.raises(refused):
        bucket.blob("k").delete(if_generation_match=first)
    with pytest.raises(refused):
        bucket.copy_blob(blob, bucket, "k", if_generation_match=0)
    assert gcs_server.get("b", "k") == b"2"
    copy = bucket.copy_blob(blob, bucket, "copy", if_generation_match=0, if_source_generation_match=blob.generation)
    assert copy.download_as_bytes() == b"2"
    with pytest.raises(exceptions.NotFound):
        bucket.blob("missing").delete(if_generation_match=first)
    blob.delete(if_generation_match=blob.generation)
    assert gcs_server.keys("b") == ["copy"]


def test_official_client_reads_if_changed(bucket: storage.Bucket) -> None:
    """A read of an unchanged generation is 304; an old generation is not kept."""
    blob = bucket.blob("k")
    blob.upload_from_string(b"1")
    first = blob.generation
    with pytest.raises(exceptions.NotModified):
        bucket.blob("k").reload(if_generation_not_match=first)
    blob.upload_from_string(b"2")
    with pytest.raises(exceptions.NotFound):
        bucket.blob("k", generation=first).download_as_bytes()


def test_official_client_rewrites(bucket: storage.Bucket) -> None:
    """A rewrite is done in one step."""
    source, target = bucket.blob("a/s"), bucket.blob("a/t")
    source.upload_from_string(b"x")
    assert target.rewrite(source) == (None, 1, 1)
    assert target.download_as_bytes() == b"x"


def test_official_client_uploads_in_steps(bucket: storage.Bucket, gcs_server: GcsServer) -> None:
    """An upload of unknown size goes in pieces; its condition is judged at the end."""
    data = b"0123456789abcdef" * 40_000
    blob = bucket.blob("k", chunk_size=256 * 1024)
    blob.upload_from_file(io.BytesIO(data), if_generation_match=0)
    assert gcs_server.get("b", "k") == data
    with pytest.raises(exceptions.PreconditionFailed):
        bucket.blob("k", chunk_size=256 * 1024).upload_from_file(io.BytesIO(data), if_generation_match=0)
    assert gcs_server.counts() == {"BeginResumableUpload": 2, "ContinueResumableUpload": 6}
    assert gcs_server.uploads("b") == []


def test_official_client_lists(bucket: storage.Bucket, gcs_server: GcsServer) -> None:
    """A listing has each name once, in order, whatever prefix, delimiter, start and page size are."""
    keys = ["a", "a/1", "a/2/x", "a/2/y", "a0", "b/1", "é", "\U0001f600"]
    for key in reversed(keys):
        gcs_server.put("b", key, b"x")

    def listed(**arguments: Any) -> list[str]:
        return [blob.name for blob in bucket.list_blobs(**arguments)]

    for size in (1, 3, None):
        assert listed(page_size=size) == keys
        assert listed(prefix="a/", page_size=size) == keys[1:4]
        assert listed(start_offset="a/2/y", page_size=size) == keys[3:]
        top = bucket.list_blobs(delimiter="/", page_size=size)
        assert [blob.name for blob in top] == ["a", "a0", "é", "\U0001f600"]
        assert top.prefixes == {"a/", "b/"}


def test_buckets(gcs_server: GcsServer) -> None:
    """Buckets are made and found; a missing one is 404 in both APIs."""
    client = gcs_client(gcs_server.url)
    client.create_bucket("second")
    assert [item.name for item in client.list_buckets()] == ["b", "second"]
    with pytest.raises(exceptions.Conflict):
        client.create_bucket("second")
    with pytest.raises(exceptions.NotFound):
        client.get_bucket("third")
    with pytest.raises(FileNotFoundError):
        obstore.get(gcs_store(gcs_server.url, "third"), "k")
    client.close()


def test_obstore_round_trip(store: GCSStore, gcs_server: GcsServer) -> None:
    """The XML API serves obstore: put, get, head, list, copy, delete, with generations as versions."""
    first = obstore.put(store, "a/ü 漢&+", b"hello", mode="create", attributes={"token": "t1"})
    assert first["version"] == str(gcs_server.generation("b", "a/ü 漢&+"))
    with pytest.raises(obstore.exceptions.AlreadyExistsError):
        obstore.put(store, "a/ü 漢&+", b"again", mode="create")
    second = obstore.put(store, "a/ü 漢&+", b"second", mode={"version": first["version"]})
    with pytest.raises(obstore.exceptions.PreconditionError):
        obstore.put(store, "a/ü 漢&+", b"third", mode={"version": first["version"]})
    got = obstore.get(store, "a/ü 漢&+")
    assert (bytes(got.bytes()), got.meta["version"], got.meta["e_tag"]) == (
        b"second",
        second["version"],
        second["e_tag"],
    )
    with pytest.raises(obstore.exceptions.NotModifiedError):
        obstore.get(store, "a/ü 漢&+", options={"if_none_match": got.meta["e_tag"]})
    assert bytes(obstore.get_range(store, "a/ü 漢&+", start=1, end=3)) == b"ec"
    obstore.copy(store, "a/ü 漢&+", "a/copy")
    with pytest.raises(obstore.exceptions.AlreadyExistsError):
        obstore.copy(store, "a/ü 漢&+", "a/copy", overwrite=False)
    assert [item["path"] for item in obstore.list(store, "a").collect()] == ["a/copy", "a/ü 漢&+"]
    assert obstore.list_with_delimiter(store)["common_prefixes"] == ["a"]
    obstore.delete(store, ["a/ü 漢&+", "a/copy"])
    with pytest.raises(FileNotFoundError):
        obstore.head(store, "a/copy")
    assert gcs_server.keys("b") == []


def test_obstore_attributes(store: GCSStore, bucket: storage.Bucket) -> None:
    """Metadata given by one client is read by the other."""
    obstore.put(store, "k", b"x", attributes={"token": "t1", "Content-Type": "text/plain"})
    blob = bucket.get_blob("k")
    assert blob is not None
    assert (blob.metadata, blob.content_type) == ({"token": "t1"}, "text/plain")
    assert obstore.get(store, "k").attributes == {"token": "t1", "Content-Type": "text/plain"}


def test_obstore_streams(store: GCSStore, gcs_server: GcsServer, bucket: storage.Bucket) -> None:
    """A stream arrives by the XML multipart upload and is one object with a generation."""
    pieces = [b"1" * 3_000_000, b"2" * 3_000_000]
    obstore.put(store, "k", iter(pieces), chunk_size=5 * 1024 * 1024)
    assert gcs_server.get("b", "k") == b"".join(pieces)
    assert gcs_server.counts() == {"CreateMultipartUpload": 1, "UploadPart": 2, "CompleteMultipartUpload": 1}
    blob = bucket.get_blob("k")
    assert blob is not None
    assert (blob.size, blob.md5_hash) == (6_000_000, None)


def test_equal_bytes_have_other_generations(store: GCSStore) -> None:
    """Each write has a generation of its own, greater than the last, also when the bytes are the same."""
    versions = [int(obstore.put(store, "k", b"same")["version"] or 0) for _ in range(50)]
    assert versions == sorted(set(versions))


def test_one_winner_of_fifty(gcs_server: GcsServer, store: GCSStore) -> None:
    """Of fifty creates at once exactly one succeeds, through either API."""
    client = gcs_client(gcs_server.url)

    def try_put(number: int, key: str) -> bool:
        try:
            if number % 10:
                obstore.put(store, key, b"%d" % number, mode="create")
            else:
                client.bucket("b").blob(key).upload_from_string(b"%d" % number, if_generation_match=0)
        except (obstore.exceptions.AlreadyExistsError, exceptions.PreconditionFailed):
            return False
        return True

    with ThreadPoolExecutor(50) as pool:
        for turn in range(5):
            won = list(pool.map(try_put, range(50), [f"k{turn}"] * 50))
            assert won.count(True) == 1
            assert gcs_server.get("b", f"k{turn}") == b"%d" % won.index(True)
    assert gcs_server.counts() == {"PutObject": 250}
    client.close()


def test_token_is_required() -> None:
    """A server with a token lets in who has it; others get 401 in either API."""
    with GcsServer(["b"], token="t1") as server:  # noqa: S106
        anonymous = gcs_client(server.url)
        # The client would get itself a new token now, if it knew how.
        with pytest.raises(google.auth.exceptions.GoogleAuthError):
            anonymous.bucket("b").blob("k").upload_from_string(b"")
        with pytest.raises(obstore.exceptions.UnauthenticatedError):
            obstore.put(gcs_store(server.url), "k", b"")
        assert {entry.status for entry in server.log()} == {401}
        client = storage.Client(
            project="mire",
            credentials=google.oauth2.credentials.Credentials("t1"),
            client_options={"api_endpoint": server.url},
        )
        client.bucket("b").blob("k").upload_from_string(b"x")
        assert server.keys("b") == ["k"]
        for each in (anonymous, client):
            each.close()


class LoopbackCredentials(google.oauth2.service_account.Credentials):
    """A service account that asks nobody but the token endpoint."""

    def _is_regional_access_boundary_lookup_required(self) -> bool:
        # google-auth would ask iamcredentials.googleapis.com in the background, and has no setting against it.
        return False


def official_client(server: GcsServer, key: dict[str, str]) -> storage.Client:
    """The official client with the key of a service account."""
    scopes = ["https://www.googleapis.com/auth/devstorage.read_write"]
    credentials = LoopbackCredentials.from_service_account_info(
        key | {"token_uri": f"{server.url}/token"}, scopes=scopes
    )
    return storage.Client(project="mire", credentials=credentials, client_options={"api_endpoint": server.url})


def test_service_account() -> None:
    """A service account is let in: through the token endpoint, or with what it signed itself; others are not."""
    account, key = service_account()
    with GcsServer(["b"], service_account=account) as server:
        client = official_client(server, key)
        client.bucket("b").blob("k").upload_from_string(b"x")
        assert bytes(obstore.get(gcs_store(server.url, key=key), "k").bytes()) == b"x"
        assert server.counts() == {"ExchangeToken": 1, "PutObject": 1, "GetObject": 1}
        _, foreign = service_account("stranger@mire.invalid")
        stranger = official_client(server, foreign | {"client_email": account.email})
        with pytest.raises(google.auth.exceptions.RefreshError, match="Invalid JWT Signature"):
            stranger.bucket("b").blob("k").download_as_bytes(**NO_RETRY)
        with pytest.raises(obstore.exceptions.UnauthenticatedError):
            obstore.get(gcs_store(server.url, key=foreign), "k")
        server.revoke_tokens()
        client.bucket("b").blob("k").reload(**NO_RETRY)
        assert server.counts()["ExchangeToken"] == 3
        for each in (client, stranger):
            each.close()


def test_instance_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server can be an instance's metadata server, too: a client without a key gets its token there."""
    account, _ = service_account()
    with GcsServer(["b"], service_account=account) as server:
        monkeypatch.setenv("GCE_METADATA_HOST", f"127.0.0.1:{server.port}")
        store = GCSStore("b", config={"base_url": server.url}, client_options={"allow_http": True})
        obstore.put(store, "k", b"x")
        assert server.counts() == {"GetInstanceMetadata": 1, "PutObject": 1}


@pytest.mark.parametrize(
    ("status", "error"),
    [(403, exceptions.Forbidden), (412, exceptions.PreconditionFailed), (429, exceptions.TooManyRequests)],
)
def test_faults_in_both_apis(
    gcs_server: GcsServer, bucket: storage.Bucket, store: GCSStore, status: int, error: type[Exception]
) -> None:
    """A fault hits an operation whichever API it comes through, and is told in that API's way."""
    rule = gcs_server.inject(faults.Fail(status), operation="PutObject", times=2)
    with pytest.raises(error):
        bucket.blob("k").upload_from_string(b"1", **NO_RETRY)
    with pytest.raises(obstore.exceptions.BaseError):
        obstore.put(store, "k", b"1")
    assert (rule.hits, gcs_server.keys("b")) == (2, [])


def test_lost_answer_and_hold(gcs_server: GcsServer, store: GCSStore) -> None:
    """A write whose answer is dropped has happened; a held one waits."""
    gcs_server.inject(faults.ApplyThenDrop(), operation="PutObject")
    with pytest.raises(obstore.exceptions.GenericError):
        obstore.put(store, "k", b"1", mode="create")
    assert gcs_server.get("b", "k") == b"1"
    hold = gcs_server.hold(operation="DeleteObject")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(obstore.delete, store, "k")
        assert hold.arrived.wait(10)
        assert gcs_server.keys("b") == ["k"]
        hold.release()
        waiting.result(10)
    assert gcs_server.keys("b") == []


def test_short_listing(gcs_server: GcsServer, bucket: storage.Bucket, store: GCSStore) -> None:
    """A listing can be cut short in both APIs."""
    for number in range(4):
        gcs_server.put("b", f"k{number}", b"")
    gcs_server.inject(faults.ShortListing(keep=2), operation="ListObjects", times=2)
    assert [blob.name for blob in bucket.list_blobs()] == ["k0", "k1"]
    assert len(obstore.list(store).collect()) == 2
    assert len(obstore.list(store).collect()) == 4


def test_clock(gcs_server: GcsServer, bucket: storage.Bucket) -> None:
    """The server's clock can be wrong, and an object can be made older."""
    gcs_server.clock_offset_s = -7200
    blob = bucket.blob("k")
    blob.upload_from_string(b"")
    assert abs(blob.updated.timestamp() - gcs_server.now_s()) < 60
    updated = blob.updated
    gcs_server.age("b", "k", 600)
    blob.reload()
    assert (updated - blob.updated).total_seconds() == 600


def test_unknown_operations(bucket: storage.Bucket, gcs_server: GcsServer) -> None:
    """What the server does not know it says so, and never guesses."""
    gcs_server.put("b", "k", b"")
    blob = bucket.blob("k")
    blob.metadata = {"a": "b"}
    with pytest.raises(exceptions.MethodNotImplemented):
        blob.patch()


def test_wrong_checksum(gcs_server: GcsServer, bucket: storage.Bucket) -> None:
    """An upload whose announced checksum is not that of its bytes is refused."""
    blob = bucket.blob("k")
    blob.md5_hash = "AAAAAAAAAAAAAAAAAAAAAA=="
    with pytest.raises(exceptions.BadRequest, match="MD5"):
        blob.upload_from_string(b"x", checksum=None)
    assert gcs_server.keys("b") == []


def test_json_errors(gcs_server: GcsServer, bucket: storage.Bucket) -> None:
    """An error of the JSON API says code, message and reason."""
    with pytest.raises(exceptions.PreconditionFailed) as caught:
        bucket.blob("k").upload_from_string(b"", if_generation_match=5)
    assert json.loads(caught.value.response.text)["error"]["errors"][0]["reason"] == "conditionNotMet"
