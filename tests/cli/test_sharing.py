"""Catalogs of other namespaces at the command line: published, pulled and queried, in a directory and over S3."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mire.plan import publish
from mire.testing.faults import Fail
from mire.testing.s3server import S3Server

Run = Callable[..., Any]
ROUTER = ("net/router", "r-1", "state")
JSON = ("--content-type", "application/json")
EXPORT = ".catalog-export.json"


@pytest.fixture(autouse=True)
def _cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow this machine is, publishing is cheap."""
    monkeypatch.setattr(publish, "CHEAP_MS", float("inf"))


@pytest.fixture
def share(run: Run, tmp_path: Path) -> Path:
    """A directory with the namespaces infra and web, a repository each."""
    for name in ("infra", "web"):
        assert run("init", name, "--datastore", f"filesystem:{tmp_path}/share").code == 0
        assert run("--repo", name, "namespace", "set", name).code == 0
        text = json.dumps({"of": name}).encode()
        assert run("--repo", name, "put", *ROUTER, *JSON, "--tag", "env=prod", stdin=text).code == 0
    return tmp_path / "share"


@pytest.fixture
def server() -> Iterator[S3Server]:
    """Our S3 server with a bucket."""
    with S3Server(["bucket"]) as running:
        yield running


def test_rows_of_another_namespace_are_pulled_and_queried(run: Run, share: Path) -> None:
    """One table row for each namespace; queries say which namespace a row is of when they span several."""
    done = run("--repo", "web", "catalog", "pull", "--namespaces", "infra")
    assert done.code == 0
    assert done.out.decode().split() == ["NAMESPACE", "OUTCOME", "ROWS", "infra", "imported", "1"]
    own = run("--repo", "web", "query", "true").out.decode()
    assert own.splitlines()[0].split()[0] == "TYPE"
    assert len(own.splitlines()) == 2
    spanning = run("--repo", "web", "query", "true", "--all-namespaces", "--order-by", "ns").out.decode().splitlines()
    assert [line.split()[0] for line in spanning] == ["NAMESPACE", "infra", "web"]
    named = run("--repo", "web", "query", "ns == 'infra'", "--select", "ns + ' ' + content.of")
    assert named.out.decode() == "infra infra\n"
    assert run("--repo", "web", "query", "attributes.of == 'infra'", "--json").document["total"] == 0
    explained = run("--repo", "web", "query", "ns == 'infra'", "--explain", "--json").document["explain"]
    assert explained["allNamespaces"] is True
    stats = run("--repo", "web", "catalog", "stats", "--json").document
    assert (stats["versions"], stats["otherNamespaces"]) == (1, {"infra": 1})


def test_outcomes_are_told_by_namespace_and_by_the_exit_code(run: Run, share: Path) -> None:
    """What is missing or damaged ends with 5 if it was named; the others are imported all the same."""
    done = run("--repo", "web", "catalog", "pull", "--namespaces", "nobody,infra", "--json")
    assert done.code == 5
    document = json.loads(done.out)
    assert [(each["namespace"], each["outcome"]) for each in document["namespaces"]] == [
        ("nobody", "missing"),
        ("infra", "imported"),
    ]
    assert document["totalRows"] == 1
    (share / "quiet" / "data").mkdir(parents=True)
    everything = run("--repo", "web", "catalog", "pull", "--all")
    assert everything.code == 0
    assert "quiet" in everything.out.decode()
    (share / "infra" / EXPORT).write_text("{")
    damaged = run("--repo", "web", "catalog", "pull", "--all")
    assert damaged.code == 5
    assert "note: infra: catalog export 'infra/.catalog-export.json'" in damaged.out.decode()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ([], 2),
        (["--all", "--namespaces", "infra"], 2),
        (["--namespaces", "web"], 2),
        (["--namespaces", "Not A Slug"], 2),
        (["--namespaces", "infra,,x"], 2),
    ],
)
def test_what_cannot_be_asked_for_is_one_line(run: Run, share: Path, arguments: list[str], code: int) -> None:
    """Nothing is imported."""
    done = run("--repo", "web", "catalog", "pull", *arguments)
    assert done.code == code
    assert done.line
    assert run("--repo", "web", "query", "ns == 'infra'", "--json").document["total"] == 0


def test_publishing_on_request(run: Run, share: Path, tmp_path: Path) -> None:
    """In a directory it says how many rows others see; without a namespace there is nobody to show them to."""
    (share / "infra" / EXPORT).unlink()
    assert run("--repo", "infra", "catalog", "publish").out.decode() == "published 1 row of infra\n"
    again = run("--repo", "infra", "catalog", "publish", "--json").document
    assert (again["rows"], again["changed"]) == (1, False)
    assert run("init", "solo").code == 0
    assert "without a namespace" in run("--repo", "solo", "catalog", "publish").line


def test_withdrawing_and_forgetting(run: Run, share: Path, repo: Path) -> None:
    """The origin takes its rows back once its settings say so; a reader drops rows by itself; neither leaves traces."""
    empty = run("--repo", "web", "query", "ns == 'infra'")
    assert "catalog pull" in empty.out.decode() + empty.err.decode()
    run("--repo", "web", "catalog", "pull", "--namespaces", "infra")
    settings = repo / "infra" / ".swamp.yaml"
    assert "publishCatalog: false" in run("--repo", "infra", "catalog", "unpublish").line
    settings.write_text(f"{settings.read_text()}  publishCatalog: false\n")
    assert run("--repo", "infra", "catalog", "unpublish", "--json").document["withdrawn"] is True
    assert run("--repo", "infra", "catalog", "unpublish").out.decode() == "nothing was published of infra\n"
    assert not (share / "infra" / EXPORT).exists()
    assert run("--repo", "web", "catalog", "forget", "--namespaces", "infra").out.decode() == "forgot 1 row\n"
    assert run("--repo", "web", "catalog", "forget", "--namespaces", "web").code == 2
    assert run("--repo", "web", "catalog", "stats", "--json").document["otherNamespaces"] == {}


def test_status_shows_that_a_catalog_waits(run: Run, share: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that was too costly to publish at once is told until somebody publishes."""
    assert run("--repo", "infra", "status", "--json").document["catalogWaits"] is False
    with monkeypatch.context() as patched:
        patched.setattr("mire.flow.publishdir.is_due", lambda *_: False)
        assert run("--repo", "infra", "put", *ROUTER, *JSON, stdin=b"{}").code == 0
    assert b"'mire catalog publish'" in run("--repo", "infra", "status").out
    assert run("--repo", "infra", "catalog", "publish").code == 0
    assert b"mire catalog publish" not in run("--repo", "infra", "status").out


def test_the_same_over_s3(run: Run, server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write command publishes what it wrote; pulling an unchanged catalog is one request; a refusal is told."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "any")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "any")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    url = f"s3://bucket/prod?endpoint={server.url}"
    for name in ("infra", "web"):
        assert run("init", name).code == 0
        assert run("--repo", name, "setup", url, "--yes", "--namespace", name).code == 0
        text = json.dumps({"of": name}).encode()
        assert run("--repo", name, "put", *ROUTER, *JSON, stdin=text).code == 0
    assert run("--repo", "web", "catalog", "pull", "--all", "--json").document["totalRows"] == 1
    server.traffic.reset()
    assert run("--repo", "web", "catalog", "pull", "--namespaces", "infra", "--json").document["namespaces"] == [
        {"namespace": "infra", "outcome": "unchanged", "rows": 1, "refused": 0, "message": None}
    ]
    # Whether the format may be read, whose our namespace is, and the catalog: nothing is listed.
    assert [entry.key for entry in server.traffic.log() if "_control" not in entry.key] == [
        "prod/web/.namespace.json",
        f"prod/infra/{EXPORT}",
    ]
    shown = run("--repo", "web", "query", "attributes.of == 'infra' && ns == 'infra'", "--select", "content.of")
    assert shown.out.decode() == "infra\n"
    assert run("--repo", "infra", "rm", *ROUTER).code == 0
    assert run("--repo", "web", "catalog", "pull", "--namespaces", "infra", "--json").document["totalRows"] == 0
    server.inject(Fail(403, "AccessDenied"), key=f"prod/infra/{EXPORT}", times=None)
    denied = run("--repo", "web", "catalog", "pull", "--namespaces", "infra")
    assert denied.code == 5
    assert "denied" in denied.out.decode()
