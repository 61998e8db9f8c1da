"""Configuration end to end: which datastore is used, and what goes where in it."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mire
from mire.model.names import RelPath

Run = Callable[..., Any]
Snapshot = Callable[[Path], dict[str, Any]]


def settings(repo: Path, **block: object) -> None:
    """Write a settings file whose datastore block has these members."""
    lines = "".join(f"  {key}: {value}\n" for key, value in block.items())
    (repo / ".swamp.yaml").write_text(f"repoId: 5b0c8a52-7d1e-4c39-9f44-2a6be01d7c15\ndatastore:\n{lines}")


def test_variable_over_flag_over_file_over_default(
    run: Run, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each place is used, and named, only when no stronger one speaks."""
    stores = {name: tmp_path / name for name in ("variable", "flag", "file")}
    for path in stores.values():
        path.mkdir()

    def used(*options: str) -> tuple[str, str]:
        datastore = run("status", "--json", *options).document["datastore"]
        return datastore["path"], datastore["from"]

    run("init")
    assert used() == (str(repo / ".swamp"), "default")
    settings(repo, type="filesystem", path=stores["file"])
    assert used() == (str(stores["file"]), ".swamp.yaml")
    flag = ("--datastore", f"filesystem:{stores['flag']}")
    assert used(*flag) == (str(stores["flag"]), "--datastore")
    monkeypatch.setenv("SWAMP_DATASTORE", f"filesystem:{stores['variable']}")
    assert used(*flag) == (str(stores["variable"]), "SWAMP_DATASTORE")
    assert run("put", "t", "i", "n", *flag, stdin=b"x").code == 0
    assert (stores["variable"] / "data/t/i/n/1/raw").read_bytes() == b"x"
    assert list(stores["flag"].iterdir()) == []
    monkeypatch.setenv("SWAMP_DATASTORE", "")
    assert used(*flag) == (str(stores["flag"]), "--datastore")


def test_the_api_resolves_like_the_command_line(repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`mire.open` takes the same places in the same order."""
    for name in ("variable", "flag"):
        (tmp_path / name).mkdir()
    store = mire.open(repo, datastore=f"filesystem:{tmp_path}/flag")
    assert store.datastore.base == f"{tmp_path}/flag"
    monkeypatch.setenv("SWAMP_DATASTORE", f"filesystem:{tmp_path}/variable")
    assert mire.open(repo, datastore=f"filesystem:{tmp_path}/flag").datastore.base == f"{tmp_path}/variable"
    monkeypatch.setenv("SWAMP_DATASTORE", f"filesystem:{tmp_path}/gone")
    with pytest.raises(mire.RemoteError):
        mire.open(repo)


def test_the_repository_is_named_by_flag_over_variable(
    run: Run, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """--repo beats SWAMP_REPO_DIR, which beats the current directory."""
    for name in ("flag", "variable"):
        assert run("init", str(tmp_path / name)).code == 0
    run("init")
    monkeypatch.setenv("SWAMP_REPO_DIR", str(tmp_path / "variable"))
    assert run("status", "--json").document["repo"] == str(tmp_path / "variable")
    assert run("status", "--json", "--repo", str(tmp_path / "flag")).document["repo"] == str(tmp_path / "flag")
    assert mire.open().datastore.repo_dir == str(tmp_path / "variable")
    monkeypatch.delenv("SWAMP_REPO_DIR")
    assert run("status", "--json").document["repo"] == str(repo)


def test_the_repository_is_found_in_a_directory_above(run: Run, repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command in a subdirectory works on the repository around it, as the API does."""
    run("init")
    deep = repo / "a/b/c"
    deep.mkdir(parents=True)
    monkeypatch.chdir(deep)
    assert run("put", "t", "i", "n", stdin=b"x").code == 0
    assert (repo / ".swamp/data/t/i/n/1/raw").read_bytes() == b"x"
    assert list(deep.iterdir()) == []
    assert mire.open().datastore.repo_dir == str(repo)


def test_the_search_stops_at_the_top_of_a_git_work_tree(run: Run, repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A repository above the work tree belongs to someone else; one beside .git is ours."""
    run("init")
    tree = repo / "tree"
    (tree / ".git").mkdir(parents=True)
    (tree / "src").mkdir()
    monkeypatch.chdir(tree / "src")
    assert run("ls").code == 3
    monkeypatch.chdir(tree)
    assert run("ls").code == 3
    (repo / ".git").mkdir()
    monkeypatch.chdir(repo)
    assert run("ls").code == 0


def test_the_search_does_not_climb_forever(run: Run, repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond ten levels nothing is found, as in the reference."""
    run("init")
    near, far = repo.joinpath(*"abcdefgh"), repo.joinpath(*"abcdefghijklmnop")
    far.mkdir(parents=True)
    monkeypatch.chdir(near)
    assert run("ls").code == 0
    monkeypatch.chdir(far)
    assert run("ls").code == 3


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("shared/store", "repo/shared/store"),
        ("../beside", "beside"),
        ("~/store", "home/store"),
        ("$HOME/store", "home/store"),
        ("${LAB}/store", "lab/store"),
        ("$LAB/a/../store", "lab/store"),
        ("a~b", "repo/a~b"),
    ],
)
def test_paths_in_the_settings_are_expanded(
    run: Run, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, place: str
) -> None:
    """Relative paths start at the repository; ~ and variables are filled in."""
    monkeypatch.setenv("LAB", str(tmp_path / "lab"))
    (tmp_path / place).mkdir(parents=True)
    settings(repo, type="filesystem", path=path)
    (repo / "sub").mkdir()
    monkeypatch.chdir(repo / "sub")
    assert run("put", "t", "i", "n", stdin=b"x").code == 0
    assert (tmp_path / place / "data/t/i/n/1/raw").read_bytes() == b"x"


def test_a_default_store_needs_no_directory(run: Run, repo: Path) -> None:
    """The directory inside the repository is created when first needed, and reading does not need it."""
    (repo / ".swamp.yaml").write_text("repoId: 5b0c8a52-7d1e-4c39-9f44-2a6be01d7c15\n")
    assert run("ls").code == 0
    assert not (repo / ".swamp").exists()
    assert run("put", "t", "i", "n", stdin=b"x").code == 0


def test_a_file_in_the_place_of_the_datastore(run: Run, repo: Path, snapshot: Snapshot) -> None:
    """A path that is no directory is as good as missing."""
    (repo / "share").write_text("I am a file")
    settings(repo, type="filesystem", path="share")
    before = snapshot(repo)
    assert run("put", "t", "i", "n", stdin=b"x").code == 5
    assert snapshot(repo) == before


def stored(root: Path) -> set[str]:
    """Paths of all contents below a directory."""
    return {str(path.relative_to(root)) for path in root.rglob("raw")}


def test_directories_choose_what_is_shared(run: Run, repo: Path, tmp_path: Path) -> None:
    """A directory that is not listed stays in the repository, and is read back from there."""
    share = tmp_path / "share"
    share.mkdir()
    settings(repo, type="filesystem", path=share, directories="[outputs, audit]")
    assert run("put", "t", "i", "n", stdin=b"x").code == 0
    assert stored(repo / ".swamp") == {"data/t/i/n/1/raw"}
    assert stored(share) == set()
    assert run("get", "t", "i", "n").out == b"x"
    mire.open(repo).audit.command("deploy", timestamp="2026-05-17T10:00:00.000Z")
    assert (share / "audit/commands-2026-05-17.jsonl").is_file()


@pytest.mark.parametrize(
    ("exclude", "shared"),
    [
        ("[]", {"data/aws/vpc/a/state", "data/aws/vpc/b/state", "data/aws/vpc/a/log", "data/local/i/state"}),
        ("[data/local]", {"data/aws/vpc/a/state", "data/aws/vpc/b/state", "data/aws/vpc/a/log"}),
        ("[data/local/]", {"data/aws/vpc/a/state", "data/aws/vpc/b/state", "data/aws/vpc/a/log"}),
        ("['data/local/**']", {"data/aws/vpc/a/state", "data/aws/vpc/b/state", "data/aws/vpc/a/log"}),
        ("['data/**/log']", {"data/aws/vpc/a/state", "data/aws/vpc/b/state", "data/local/i/state"}),
        ("['data/aws/*/a']", {"data/aws/vpc/b/state", "data/local/i/state"}),
        ("['data/aws/**', '!data/aws/vpc/b/**']", {"data/aws/vpc/b/state", "data/local/i/state"}),
        ("[data]", set()),
        ("['#data']", {"data/aws/vpc/a/state", "data/aws/vpc/b/state", "data/aws/vpc/a/log", "data/local/i/state"}),
        ("[logs]", {"data/aws/vpc/a/state", "data/aws/vpc/b/state", "data/aws/vpc/a/log", "data/local/i/state"}),
    ],
)
def test_exclude_keeps_data_in_the_repository(
    run: Run, repo: Path, tmp_path: Path, exclude: str, shared: set[str]
) -> None:
    """What a pattern excludes is written locally, what it does not is shared, and all of it is read and listed."""
    share = tmp_path / "share"
    share.mkdir()
    settings(repo, type="filesystem", path=share, exclude=exclude)
    items = ["aws/vpc/a/state", "aws/vpc/b/state", "aws/vpc/a/log", "local/i/state"]
    for item in items:
        kind, model_id, name = item.rsplit("/", 2)
        assert run("put", kind, model_id, name, stdin=item.encode()).code == 0
    assert {path.removesuffix("/1/raw") for path in stored(share)} == shared
    assert {path.removesuffix("/1/raw") for path in stored(repo / ".swamp")} == {f"data/{i}" for i in items} - shared
    for item in items:
        kind, model_id, name = item.rsplit("/", 2)
        assert run("get", kind, model_id, name).out == item.encode()
    models = run("ls", "--json").document["models"]
    assert [(m["modelType"], m["modelId"], m["names"]) for m in models] == [
        ("aws/vpc", "a", 2),
        ("aws/vpc", "b", 1),
        ("local", "i", 1),
    ]


def test_blank_patterns_are_ignored(run: Run, repo: Path) -> None:
    """An empty line of a list of patterns means nothing, as in the reference and in .gitignore."""
    settings(repo, type="filesystem", exclude="['', logs]")
    assert run("status", "--json").code == 0


def test_rename_across_the_border_of_an_exclude(run: Run, repo: Path, tmp_path: Path) -> None:
    """A name that moves out of an excluded pattern moves into the datastore, and still forwards."""
    share = tmp_path / "share"
    share.mkdir()
    settings(repo, type="filesystem", path=share, exclude="['data/**/draft']")
    assert run("put", "t", "i", "draft", stdin=b"x").code == 0
    assert run("mv", "t", "i", "draft", "final").code == 0
    assert stored(share) == {"data/t/i/final/1/raw"}
    assert run("get", "t", "i", "draft").out == b"x"


@pytest.mark.parametrize(
    "block", [{"directories": "[data, secrets, bundles]"}, {"exclude": "['!secrets', '!bundles']"}]
)
def test_secrets_and_bundles_never_leave_the_repository(
    run: Run, repo: Path, tmp_path: Path, block: dict[str, str]
) -> None:
    """Whatever the settings say, they resolve to the local tier and are not listed as shared."""
    share = tmp_path / "share"
    share.mkdir()
    settings(repo, type="filesystem", path=share, **block)
    always_local = ("secrets", "bundles", "vault-bundles", "driver-bundles", "report-bundles")
    assert not set(run("status", "--json").document["directories"]) & set(always_local)
    datastore = mire.open(repo).datastore
    for subdir in always_local:
        assert datastore.path_of(RelPath(f"{subdir}/x")) == str(repo / ".swamp" / subdir / "x")
    assert datastore.path_of(RelPath("data/x")) == str(share / "data/x")


def test_a_namespace_has_its_own_part_of_the_datastore(
    run: Run, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Data, records and locks of a namespace are below its name, whichever way the datastore was chosen."""
    share = tmp_path / "share"
    share.mkdir()
    settings(repo, type="filesystem", path=share, namespace="team-a")
    assert run("put", "t", "i", "n", stdin=b"x").code == 0
    assert stored(share) == {"team-a/data/t/i/n/1/raw"}
    assert run("get", "t", "i", "n").out == b"x"
    mire.open(repo).runs.start("9d7f3c10-2b6a-4e88-8c31-6f5a0e9b4d21", "sweep")
    assert len(list((share / "team-a/workflow-runs").rglob("*.yaml"))) == 1
    assert run("status", "--json").document["datastore"]["namespace"] == "team-a"
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.setenv("SWAMP_DATASTORE", f"filesystem:{other}")
    assert run("put", "t", "i", "n", stdin=b"x").code == 0
    assert stored(other) == {"team-a/data/t/i/n/1/raw"}


def test_two_namespaces_do_not_see_each_other(run: Run, repo: Path, tmp_path: Path) -> None:
    """The same model in two namespaces of one directory is two models."""
    share = tmp_path / "share"
    share.mkdir()
    for namespace, content in (("team-a", b"a"), ("team-b", b"b")):
        settings(repo, type="filesystem", path=share, namespace=namespace)
        assert run("ls", "--json").document["models"] == []
        assert run("put", "t", "i", "n", stdin=content).code == 0
        assert run("get", "t", "i", "n").out == content


@pytest.mark.parametrize("key", [".locks/team-a.lock", "team-a/.datastore.lock"])
def test_both_generations_of_a_namespaced_global_lock_are_obeyed(
    run: Run, repo: Path, tmp_path: Path, foreign_lock: Callable[..., Path], key: str
) -> None:
    """A namespaced store has two keys for its global lock; either keeps writers out."""
    share = tmp_path / "share"
    share.mkdir()
    settings(repo, type="filesystem", path=share, namespace="team-a")
    foreign_lock(share / key)
    result = run("put", "t", "i", "n", "--lock-timeout", "0", stdin=b"x")
    assert result.code == 75
    assert f"lock {key} is held" in result.line
    assert run("lock", "status", "--json").document["locks"][0]["key"] == key


def test_lock_timeout_flag_over_file_over_variable(
    run: Run, repo: Path, foreign_lock: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wait in force is the one of the strongest place that speaks."""

    def timeouts(*options: str) -> tuple[int, int]:
        document = run("status", "--json", *options).document
        return document["lockTimeoutMs"], document["syncTimeoutMs"]

    run("init")
    assert timeouts() == (60_000, 300_000)
    monkeypatch.setenv("SWAMP_LOCK_TIMEOUT_MS", "1")
    monkeypatch.setenv("SWAMP_DATASTORE_SYNC_TIMEOUT_MS", "2")
    assert timeouts() == (1, 2)
    foreign_lock(repo / ".swamp/data/t/i/.lock")
    assert run("put", "t", "i", "n", stdin=b"x").code == 75
    settings(repo, type="filesystem", lockTimeoutMs=3, syncTimeoutMs=4)
    assert timeouts() == (3, 4)
    settings(repo, type="filesystem", config="{lockTimeoutMs: 5, syncTimeoutMs: 6}")
    assert timeouts() == (5, 6)
    assert timeouts("--lock-timeout", "0.007", "--timeout", "8") == (7, 8_000)


@pytest.mark.parametrize("value", ["soon", "-1", "0", "1.5", "٣", "9" * 5_000])
def test_a_useless_variable_is_ignored_like_in_the_reference(
    run: Run, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    """A shared environment must not break commands: what cannot be a timeout counts as not set."""
    run("init")
    monkeypatch.setenv("SWAMP_LOCK_TIMEOUT_MS", value)
    assert run("status", "--json").document["lockTimeoutMs"] == 60_000


@pytest.mark.parametrize("member", ["lockTimeoutMs", "syncTimeoutMs"])
def test_a_timeout_of_zero_in_the_settings_is_refused(run: Run, repo: Path, member: str) -> None:
    """A number that cannot be meant is told, as every other bad number is."""
    settings(repo, type="filesystem", **{member: 0})
    result = run("ls")
    assert result.code == 2
    assert f"{member} is 0" in result.line


def test_settings_of_the_reference_are_read(run: Run, repo: Path) -> None:
    """A file as the reference writes it, with members we do not use, is a repository."""
    (repo / ".swamp.yaml").write_text(
        'swampVersion: "2026.08.12.1"\ninitializedAt: "2026-08-01T12:00:00.000Z"\n'
        'repoId: "5b0c8a52-7d1e-4c39-9f44-2a6be01d7c15"\ntools:\n  - claude\ntelemetryDisabled: true\n'
        "gitignoreManaged: true\ntrustedCollectives: [acme]\nautoGc: true\n"
    )
    before = (repo / ".swamp.yaml").read_bytes()
    assert run("put", "t", "i", "n", stdin=b"x").code == 0
    assert run("status", "--json").document["repoId"] == "5b0c8a52-7d1e-4c39-9f44-2a6be01d7c15"
    assert (repo / ".swamp.yaml").read_bytes() == before


def test_a_linked_repository_directory_is_the_repository(run: Run, repo: Path, tmp_path: Path) -> None:
    """Entering through a link leads to the same store, so both ways lock the same files."""
    run("init")
    link = tmp_path / "link"
    os.symlink(repo, link)
    assert run("put", "t", "i", "n", "--repo", str(link), stdin=b"x").code == 0
    assert run("status", "--json", "--repo", str(link)).document["repo"] == str(repo)
    assert run("get", "t", "i", "n").out == b"x"
