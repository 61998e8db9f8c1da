"""Backends: which kinds there are, what a package can add, and what a broken one cannot break."""

import json
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mire.edge.local import LocalRemote
from mire.edge.remote import Absent, Stored
from mire.errors import ConfigError
from mire.flow import backend
from mire.flow.backend import find_backend, list_backends, open_remote
from mire.model.config import Extension, Filesystem

ROOT = Path(__file__).resolve().parents[2]
MIRE = Path(sys.executable).with_name("mire")

ACME = """
from collections.abc import Mapping
from mire import Backend, Option, Schema
from mire.edge.objectstore import open_local
from mire.model.backend import File, Number

def parse(config: Mapping[str, object]) -> str:
    if config["shelf"] == "broken":
        raise ValueError("no such shelf")
    return f"{config['room']}/{config['shelf']}"

def open_shelf(path: str):
    if path.endswith("locked"):
        raise RuntimeError("the door is locked")
    return open_local(path)

BACKEND = Backend(
    schema=Schema(
        type="@acme/shelf",
        title="Shelf",
        description="a shelf in a room",
        aliases=("shelf",),
        options=(
            Option(name="room", shape=File(), is_required=True, meaning="the room"),
            Option(name="shelf", default="a", meaning="the shelf"),
            Option(name="height", shape=Number(least=1, most=9), default=2, meaning="how high"),
        ),
    ),
    parse=parse,
    open=open_shelf,
)
"""


@pytest.fixture
def install(tmp_path: Path) -> Callable[..., Path]:
    """Install a distribution into a directory for `sys.path`: a module and its metadata, as pip leaves them."""
    site = tmp_path / "site"

    def put(package: str, code: str, *entries: str, version: str = "1.2.3") -> Path:
        module = package.replace("-", "_")
        site.mkdir(exist_ok=True)
        (site / f"{module}.py").write_text(code)
        info = site / f"{module}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
        (info / "entry_points.txt").write_text("[mire.backends]\n" + "".join(f"{entry}\n" for entry in entries))
        return site

    return put


@pytest.fixture
def mire_with(tmp_path: Path) -> Callable[..., "subprocess.CompletedProcess[str]"]:
    """Run `mire` as a process that finds what is installed in a directory."""
    home = tmp_path / "home"
    home.mkdir()

    def run(site: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [str(MIRE), *arguments],
            cwd=tmp_path,
            env={"PATH": "/usr/bin:/bin", "HOME": str(home), "PYTHONPATH": str(site), "LC_ALL": "C.UTF-8"},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    return run


def test_the_built_in_kinds_are_announced_in_our_own_metadata() -> None:
    """Other programs find ours as they find anybody's: by the entry points of the package."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    announced = project["entry-points"][backend.GROUP]
    found = [one for one in list_backends()[0] if one.package == backend.OURS]
    assert set(announced) == {one.schema.type for one in found}
    for one in found:
        module, _, name = announced[one.schema.type].partition(":")
        assert module == backend.__name__
        assert getattr(backend, name) is one.backend


@pytest.mark.parametrize(
    ("type", "found"),
    [
        ("s3", "@swamp/s3-datastore"),
        ("@swamp/s3-datastore", "@swamp/s3-datastore"),
        ("@Swamp/S3-Datastore", "@swamp/s3-datastore"),
        ("gcs", "@swamp/gcs-datastore"),
        ("@swamp/gcs-datastore", "@swamp/gcs-datastore"),
        ("filesystem", "filesystem"),
        ("cached", "@mire/file-datastore"),
    ],
)
def test_built_in_kinds_are_found_by_type_and_alias(type: str, found: str) -> None:
    """Types do not care for case, as in the reference."""
    assert find_backend(type, origin="here").schema.type == found


@pytest.mark.parametrize(
    ("type", "says"),
    [
        ("@swamp/s3-datstore", "did you mean '@swamp/s3-datastore'?"),
        ("@acme/nothing", "mire backends"),
        ("nonsense", "mire backends"),
        ("", "mire backends"),
    ],
)
def test_an_unknown_kind_is_told_with_the_nearest(type: str, says: str) -> None:
    """The line says where the type came from and what to do."""
    with pytest.raises(ConfigError) as caught:
        find_backend(type, origin="here")
    assert caught.value.kind == "unknown_datastore"
    assert f"{type!r} (from here)" in caught.value.message
    assert says in caught.value.message


def test_a_directory_is_a_remote_too(tmp_path: Path) -> None:
    """Every kind opens as a remote, so that any two can be copied between."""
    for target in (
        Filesystem(path=str(tmp_path / "x")),
        Extension(type="filesystem", config={"path": "x"}),
    ):
        remote = open_remote(target, repo_dir=str(tmp_path), origin="here")
        assert isinstance(remote, LocalRemote)
        assert remote.properties.name == f"file://{tmp_path}/x"


def test_a_bad_configuration_is_told_with_its_origin(tmp_path: Path) -> None:
    """Whoever finds the mistake, the line says where it stands."""
    for config in ({}, {"bucket": "B"}, {"bucket": "bucket", "prefix": "/"}, {"bucket": "bucket", "x": 1}):
        with pytest.raises(ConfigError, match=r"^here: "):
            open_remote(Extension(type="s3", config=config), repo_dir=str(tmp_path), origin="here")


def test_opening_asks_nobody_for_anything(tmp_path: Path) -> None:
    """A remote at a closed port opens: only using it fails."""
    config = {"bucket": "bucket", "endpoint": "http://127.0.0.1:9"}
    remote = open_remote(Extension(type="s3", config=config), repo_dir=str(tmp_path), origin="here")
    assert remote.properties.name == "s3://bucket"


def test_an_installed_package_adds_a_kind(
    install: Callable[..., Path], mire_with: Callable[..., Any], tmp_path: Path
) -> None:
    """A real distribution on the path: listed with its package and schema, and examined like any other."""
    site = install("acme-shelf", ACME, "@acme/shelf = acme_shelf:BACKEND")
    listed = mire_with(site, "backends")
    assert listed.returncode == 0, listed.stderr
    assert "@acme/shelf shelf acme-shelf 1.2.3 a shelf in a room" in " ".join(listed.stdout.split())
    assert "height  2         how high" in mire_with(site, "backends", "shelf").stdout
    document = json.loads(mire_with(site, "backends", "--json").stdout)
    (ours,) = [one for one in document["backends"] if one["type"] == "@acme/shelf"]
    assert (ours["package"], ours["aliases"]) == ("acme-shelf 1.2.3", ["shelf"])
    assert ours["config"]["required"] == ["room"]
    assert document["broken"] == []
    for name in ("@acme/shelf", "@Acme/Shelf", "shelf"):
        examined = mire_with(site, "doctor", f'{name}:{{"room": "hall"}}', "--json")
        assert examined.returncode == 0, examined.stdout + examined.stderr
        told = json.loads(examined.stdout)
        assert (told["datastoreType"], told["healthy"]) == ("@acme/shelf", True)
        assert told["datastore"] == f"file://{tmp_path}/hall/a"


@pytest.mark.parametrize(
    ("config", "code", "says"),
    [
        ({}, 2, "@acme/shelf needs 'room': the room"),
        ({"room": "x", "shef": "b"}, 2, "did you mean 'shelf'?"),
        ({"room": "x", "height": 10}, 2, "give a whole number from 1 to 9"),
        ({"room": "x", "shelf": "broken"}, 2, "acme-shelf 1.2.3 refuses its configuration (ValueError: no such shelf)"),
        ({"room": "x", "shelf": "locked"}, 5, "cannot be opened (RuntimeError: the door is locked)"),
        ({"room": "x", "secretKey": "hidden"}, 2, "credentials come from the provider's own settings"),
    ],
)
def test_a_package_s_configuration_is_checked_as_ours(
    install: Callable[..., Path], mire_with: Callable[..., Any], config: dict[str, Any], code: int, says: str
) -> None:
    """One line with the right exit code, whoever refuses it."""
    site = install("acme-shelf", ACME, "@acme/shelf = acme_shelf:BACKEND")
    result = mire_with(site, "doctor", f"@acme/shelf:{json.dumps(config)}")
    assert (result.returncode, result.stdout) == (code, "")
    assert says in result.stderr
    assert result.stderr.count("\n") == 1
    assert "hidden" not in result.stderr


BROKEN = {
    "acme-gone": ("", "@acme/gone = acme_gone_no_such_module:BACKEND", "ModuleNotFoundError"),
    "acme-raises": ("raise RuntimeError('oh')", "@acme/raises = acme_raises:BACKEND", "RuntimeError: oh"),
    "acme-exits": ("import sys; sys.exit(3)", "@acme/exits = acme_exits:BACKEND", "SystemExit: 3"),
    "acme-syntax": ("def", "@acme/syntax = acme_syntax:BACKEND", "SyntaxError"),
    "acme-nothing": ("", "@acme/nothing = acme_nothing:BACKEND", "AttributeError"),
    "acme-other": ("BACKEND = 7", "@acme/other = acme_other:BACKEND", "is a int, not a mire.Backend"),
    "acme-named": (ACME, "@acme/named = acme_named:BACKEND", "calls itself '@acme/shelf'"),
    "acme-theft": (
        ACME.replace('"@acme/shelf"', '"@acme/theft"').replace('("shelf",)', '("s3",)'),
        "@acme/theft = acme_theft:BACKEND",
        "'s3' is already the name of a backend of mire",
    ),
    "acme-mute": (
        ACME.replace('"@acme/shelf"', '"@acme/mute"').replace('"Shelf"', '""'),
        "@acme/mute = acme_mute:BACKEND",
        "has no title",
    ),
}


def test_broken_packages_break_only_themselves(install: Callable[..., Path], mire_with: Callable[..., Any]) -> None:
    """All at once: each is told in one line that names its package, the good one and the built-in ones work."""
    for package, (code, entry, _) in BROKEN.items():
        install(package, code, entry)
    site = install("acme-shelf", ACME, "@acme/shelf = acme_shelf:BACKEND")
    (site / "half_gone-1.0.dist-info").mkdir()
    (site / "half_gone-1.0.dist-info" / "entry_points.txt").write_text("no = section\n[mire.backends\nx\n")
    result = mire_with(site, "backends")
    assert result.returncode == 0
    assert "@acme/shelf" in result.stdout
    assert "@swamp/s3-datastore" in result.stdout
    notes = result.stderr.splitlines()
    assert len(notes) == len(BROKEN)
    for package, (_, _, why) in BROKEN.items():
        assert any(f"{package} 1.2.3" in line or "already" in line for line in notes if why in line), (package, notes)
    document = json.loads(mire_with(site, "backends", "--json").stdout)
    assert [one["package"].split()[0] for one in document["broken"]] == sorted(BROKEN)
    used = mire_with(site, "doctor", "@acme/raises:{}")
    assert (used.returncode, used.stdout) == (2, "")
    assert "of the package acme-raises 1.2.3 cannot be loaded (RuntimeError: oh)" in used.stderr
    assert mire_with(site, "doctor", '@acme/shelf:{"room": "x"}').returncode == 0


def test_a_package_cannot_replace_what_is_built_in(install: Callable[..., Path], mire_with: Callable[..., Any]) -> None:
    """A type that is ours stays ours; the claim is reported."""
    site = install(
        "acme-s3", ACME.replace('"@acme/shelf"', '"@swamp/s3-datastore"'), "@swamp/s3-datastore = acme_s3:BACKEND"
    )
    document = json.loads(mire_with(site, "backends", "--json").stdout)
    assert [one["type"] for one in document["backends"]].count("@swamp/s3-datastore") == 1
    (broken,) = document["broken"]
    assert "already the name of a backend of mire" in broken["message"]


def test_one_kind_of_two_packages_is_nobody_s(install: Callable[..., Path], mire_with: Callable[..., Any]) -> None:
    """Which of them is meant cannot be known, so the line names both."""
    install("acme-one", ACME, "@acme/shelf = acme_one:BACKEND")
    site = install("acme-two", ACME, "@acme/shelf = acme_two:BACKEND")
    result = mire_with(site, "doctor", '@acme/shelf:{"room": "x"}')
    assert result.returncode == 2
    assert "is announced by acme-one 1.2.3 and acme-two 1.2.3: remove one of them" in result.stderr


def test_only_the_package_that_is_asked_for_is_loaded(
    install: Callable[..., Path], mire_with: Callable[..., Any], tmp_path: Path
) -> None:
    """Naming one kind imports nobody else's code, and a built-in kind imports none at all."""
    install("acme-trace", "open('loaded', 'w').close()", "@acme/trace = acme_trace:BACKEND")
    site = install("acme-shelf", ACME, "@acme/shelf = acme_shelf:BACKEND")
    assert mire_with(site, "doctor", '@acme/shelf:{"room": "x"}').returncode == 0
    assert mire_with(site, "doctor", f"file://{tmp_path}").returncode == 0
    assert not (tmp_path / "loaded").exists()


def test_a_kind_written_by_a_package_is_usable_from_settings(
    install: Callable[..., Path], mire_with: Callable[..., Any], tmp_path: Path
) -> None:
    """Setup writes its block, and status and doctor read it back."""
    site = install("acme-shelf", ACME, "@acme/shelf = acme_shelf:BACKEND")
    made = mire_with(site, "init", "repo", "--datastore", 'shelf:{"room": "../hall", "height": 3}')
    assert made.returncode == 0, made.stderr
    text = (tmp_path / "repo/.swamp.yaml").read_text()
    assert text.endswith('datastore:\n  type: "@acme/shelf"\n  config:\n    room: "../hall"\n    height: 3\n')
    assert mire_with(site, "status", "--repo", "repo").returncode == 0
    assert mire_with(site, "doctor", "--repo", "repo").returncode == 0


def test_a_remote_from_a_backend_stores(tmp_path: Path) -> None:
    """What is opened is a remote like any other."""
    remote = open_remote(Filesystem(path=str(tmp_path / "x")), repo_dir="/", origin="here")
    assert isinstance(remote.put_if("a/b", b"1", Absent()), Stored)
    assert remote.get("a/b").data == b"1"
