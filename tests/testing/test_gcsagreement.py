"""Our GCS server and fake-gcs-server answer the official client alike, in what the latter can do."""

from collections.abc import Callable

from google.api_core.exceptions import GoogleAPICallError
from google.cloud import storage

from mire.testing.gcsserver import GcsServer
from servers import GcsEndpoint, gcs_client


def answers_of(bucket: storage.Bucket) -> dict[str, int | bool]:
    """What a server answers to each request of a table, in this order: True, or a status."""
    answers: dict[str, int | bool] = {}

    def ask(name: str, call: Callable[[], object]) -> None:
        try:
            call()
            answers[name] = True
        except GoogleAPICallError as error:
            answers[name] = error.code or 0

    blob = bucket.blob("a/k")
    ask("create", lambda: blob.upload_from_string(b"1", if_generation_match=0))
    first = blob.generation
    ask("create where one is", lambda: bucket.blob("a/k").upload_from_string(b"2", if_generation_match=0))
    ask("update", lambda: blob.upload_from_string(b"2", if_generation_match=first))
    ask("update an older one", lambda: bucket.blob("a/k").upload_from_string(b"3", if_generation_match=first))
    ask("update what is missing", lambda: bucket.blob("none").upload_from_string(b"3", if_generation_match=first))
    answers["content"] = blob.download_as_bytes() == b"2"
    answers["greater generation"] = blob.generation > first
    ask("get what is missing", lambda: bucket.blob("none").download_as_bytes())
    ask("look at what is missing", lambda: bucket.blob("none").reload())
    ask("get a range", lambda: blob.download_as_bytes(start=0, end=0))
    answers["names"] = [item.name for item in bucket.list_blobs()] == ["a/k"]
    ask("copy", lambda: bucket.copy_blob(blob, bucket, "copy"))
    ask("delete", blob.delete)
    ask("delete what is missing", blob.delete)
    ask("no bucket", lambda: bucket.client.get_bucket("mire-no-such-bucket"))
    return answers


def test_same_answers(gcs_server: GcsServer, fake_gcs: GcsEndpoint) -> None:
    """Both servers answer the same to the same requests."""
    ours, theirs = gcs_client(gcs_server.url), fake_gcs.client()
    answers = answers_of(ours.bucket("b"))
    assert answers == answers_of(theirs.bucket(fake_gcs.bucket()))
    assert False not in answers.values()
    for client in (ours, theirs):
        client.close()
