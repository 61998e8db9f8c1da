"""The shipped suite for a package's own backend: ours pass, and a planted bug is found."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bad_remotes import HastyRemote, UndyingRemote
from mire.edge.memory import MemoryRemote
from mire.errors import ConfigError
from mire.flow.backend import FILE_BACKEND, GCS_BACKEND, S3_BACKEND, Backend
from mire.model.backend import Option, Schema
from mire.testing.conformance_backend import check_backend
from mire.testing.conformance_lock import ConformanceError
from mire.testing.gcsserver import GcsServer
from mire.testing.s3server import S3Server

SHELF = Backend(
    schema=Schema(
        type="@acme/shelf",
        title="Shelf",
        description="a shelf in memory",
        options=(Option(name="shelf", is_required=True, meaning="which shelf"),),
    ),
    parse=lambda config: config["shelf"],
    open=lambda _: MemoryRemote(),
)
VALID = [{"shelf": "a"}]


def test_a_directory_passes(tmp_path: Path) -> None:
    """The synced directory is a backend like any other."""
    (tmp_path / "share").mkdir()
    check_backend(FILE_BACKEND, valid=[{"path": str(tmp_path / "share")}], invalid=[{}, {"path": 5}, {"pfad": "x"}])


def test_the_built_in_object_stores_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """S3 and GCS, over servers that speak them."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "any")
    with S3Server(buckets=["bucket"]) as s3, GcsServer(buckets=["bucket"]) as gcs:
        check_backend(S3_BACKEND, valid=[{"bucket": "bucket", "endpoint": s3.url}], invalid=[{}, {"bucket": ""}])
        check_backend(GCS_BACKEND, valid=[{"bucket": "bucket", "apiEndpoint": gcs.url}], invalid=[{}, {"bucket": 1}])


def parse_strictly(config: Any) -> str:
    """Refuse every configuration."""
    raise ConfigError(f"cannot use {config}")


class Nameless(MemoryRemote):
    """A remote without a name."""

    @property
    def properties(self) -> Any:
        """Everything but a name."""
        return replace(super().properties, name="")


@pytest.mark.parametrize(
    ("wrong", "number"),
    [
        (lambda: replace(SHELF, schema=replace(SHELF.schema, type="Shelf!")), 1),
        (lambda: replace(SHELF, schema=replace(SHELF.schema, title=" ")), 2),
        (lambda: replace(SHELF, schema=replace(SHELF.schema, description="")), 2),
        (lambda: replace(SHELF, parse=parse_strictly), 3),
        (lambda: replace(SHELF, schema=replace(SHELF.schema, options=()), parse=str), 3),
        (lambda: replace(SHELF, open=lambda _: object()), 4),
        (lambda: replace(SHELF, open=lambda _: Nameless()), 5),
        (lambda: replace(SHELF, open=lambda _: UndyingRemote(MemoryRemote())), 6),
        (lambda: replace(SHELF, open=lambda _: HastyRemote(MemoryRemote())), 20),
    ],
)
def test_a_planted_bug_is_found(wrong: Callable[[], Backend[Any]], number: int) -> None:
    """Each promise of a backend, broken, is named by its number."""
    check_backend(SHELF, valid=VALID, invalid=[{}])
    with pytest.raises(ConformanceError, match=f"^check {number}: "):
        check_backend(wrong(), valid=VALID, invalid=[{}])


def test_at_least_one_valid_configuration_is_needed() -> None:
    """A check of nothing is no check."""
    with pytest.raises(ConformanceError, match="give at least one"):
        check_backend(SHELF, valid=[])
