"""Settings: which of four places wins, what texts mean, what survives an override."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mire.errors import ConfigError
from mire.model.config import LOCK_TIMEOUT_MS, SYNC_TIMEOUT_MS, Config, Extension, Filesystem
from mire.model.names import ALWAYS_LOCAL_SUBDIRS, DATASTORE_SUBDIRS
from mire.plan.address import parse_target
from mire.plan.config import Flags, resolve_config
from mire.plan.path import expand_path
from mire.wire.repo import DatastoreBlock, RepoFile

REPO = "/srv/repo"
DEFAULT = Filesystem(path=f"{REPO}/.swamp", is_default=True)
ENV = {"SWAMP_DATASTORE": "filesystem:/env"}
FLAG = Flags(datastore="filesystem:/flag")


def repo(type: str = "filesystem", **members: Any) -> RepoFile:
    """A settings file with a datastore block."""
    block = {
        "path": None,
        "config": {},
        "directories": None,
        "exclude": None,
        "namespace": "",
        "sync_timeout_ms": None,
        "lock_timeout_ms": None,
    }
    return RepoFile(repo_id="r-1", datastore=DatastoreBlock(type=type, **{**block, **members}))


def resolve(file: RepoFile | None = None, environ: dict[str, str] | None = None, flags: Flags | None = None) -> Config:
    """The settings in force in the repository."""
    return resolve_config(repo_dir=REPO, repo=file, environ=environ or {}, flags=flags or Flags())


@pytest.mark.parametrize(
    ("environ", "flags", "file", "path", "origin"),
    [
        (ENV, FLAG, repo(path="/file"), "/env", "SWAMP_DATASTORE"),
        ({}, FLAG, repo(path="/file"), "/flag", "--datastore"),
        ({}, Flags(), repo(path="/file"), "/file", ".swamp.yaml"),
        ({}, Flags(), None, f"{REPO}/.swamp", "default"),
        ({}, Flags(), RepoFile(repo_id=None, datastore=None), f"{REPO}/.swamp", "default"),
        ({"SWAMP_DATASTORE": ""}, Flags(datastore=""), repo(path="/file"), "/file", ".swamp.yaml"),
    ],
)
def test_environment_over_flag_over_file_over_default(
    environ: dict[str, str], flags: Flags, file: RepoFile | None, path: str, origin: str
) -> None:
    """The first place that says something wins, and the settings say which it was."""
    config = resolve(file, environ, flags)
    assert isinstance(config.target, Filesystem)
    assert (config.target.path, config.origin) == (path, origin)


@pytest.mark.parametrize(
    ("file", "target"),
    [
        (None, DEFAULT),
        (repo(), DEFAULT),
        (repo(path=".swamp"), DEFAULT),
        (repo(path=f"{REPO}/x/../.swamp/"), DEFAULT),
        (repo(path="/mnt/share"), Filesystem(path="/mnt/share")),
        (repo("@acme/blob", config={"container": "x"}), Extension(type="@acme/blob", config={"container": "x"})),
    ],
)
def test_the_file_names_a_target(file: RepoFile | None, target: object) -> None:
    """A block is a directory, the default one when it is named or nothing is, or an extension."""
    assert resolve(file).target == target
    assert resolve(file).origin == ("default" if file is None else ".swamp.yaml")


def test_an_override_moves_the_store_and_nothing_else() -> None:
    """Namespace, directories and exclude belong to the repository, whichever store it is pointed at."""
    file = repo(path="/file", namespace="green", directories=("data", "outputs"), exclude=("data/x/**",))
    for config in (resolve(file), resolve(file, ENV), resolve(file, {}, FLAG)):
        assert config.namespace == "green"
        assert config.directories == ("data", "outputs")
        assert config.exclude == ("data/x/**",)
        assert config.repo_id == "r-1"


def test_without_settings_everything_has_its_default() -> None:
    """A bare directory is a repository in solo mode with the ten directories."""
    config = resolve()
    assert (config.namespace, config.directories, config.exclude) == ("", DATASTORE_SUBDIRS, ())
    assert (config.lock_timeout_ms, config.sync_timeout_ms) == (LOCK_TIMEOUT_MS, SYNC_TIMEOUT_MS)
    assert config.repo_id is None


@given(st.lists(st.sampled_from([*DATASTORE_SUBDIRS, *ALWAYS_LOCAL_SUBDIRS, "config", "@x", "own.dir"])))
def test_secrets_and_bundles_are_no_datastore_directories(named: list[str]) -> None:
    """Whatever is listed, in that order, but for what is always local."""
    config = resolve(repo(directories=tuple(named)))
    assert config.directories == tuple(subdir for subdir in named if subdir not in ALWAYS_LOCAL_SUBDIRS)


@pytest.mark.parametrize("subdir", ["", "a/b", "..", ".", ".hidden", "a b", "a\n", "-x", "é"])
def test_directories_are_names(subdir: str) -> None:
    """A path, a dot or another odd text is no directory name."""
    with pytest.raises(ConfigError, match="directories"):
        resolve(repo(directories=("data", subdir)))


@pytest.mark.parametrize("namespace", ["Data", "data", "a/b", "-x"])
def test_a_bad_namespace_is_a_bad_setting(namespace: str) -> None:
    """The error says in which file the namespace is wrong."""
    with pytest.raises(ConfigError, match=r"\.swamp\.yaml: 'datastore': namespace"):
        resolve(repo(namespace=namespace))


def test_a_bad_exclude_is_a_bad_setting() -> None:
    """A pattern nobody can read is refused when settings are, not at the first write."""
    with pytest.raises(ConfigError, match="exclude"):
        resolve(repo(exclude=("!",)))


ENVIRON = {"HOME": "/home/dana", "DATA": "/srv/data", "SUB": "sub/dir", "EMPTY": "", "TILDE": "~/x"}


@pytest.mark.parametrize(
    ("path", "expanded"),
    [
        ("/abs/path", "/abs/path"),
        ("rel/path", f"{REPO}/rel/path"),
        (".", REPO),
        ("../other", "/srv/other"),
        ("a//b/./c/../d/", f"{REPO}/a/b/d"),
        ("~", "/home/dana"),
        ("~/x", "/home/dana/x"),
        ("~x", f"{REPO}/~x"),
        ("a/~", f"{REPO}/a/~"),
        ("$DATA", "/srv/data"),
        ("$DATA/x", "/srv/data/x"),
        ("${DATA}x", "/srv/datax"),
        ("$SUB/x", f"{REPO}/sub/dir/x"),
        ("/a/$SUB/${SUB}", "/a/sub/dir/sub/dir"),
        ("/a/$", "/a/$"),
        ("/a/$1", "/a/$1"),
    ],
)
def test_paths_are_expanded(path: str, expanded: str) -> None:
    """`~`, `$VAR` and `${VAR}` are filled in, relative paths start at the repository, and the result is clean."""
    assert expand_path(path, repo_dir=REPO, environ=ENVIRON, what="x") == expanded


@pytest.mark.parametrize("path", ["$MISSING/x", "${MISSING}", "$EMPTY", "${EMPTY}/x", "${}", "${a b}", "nul\0"])
def test_unset_variables_are_errors(path: str) -> None:
    """A path that would silently become another one is refused in a line that shows it and where it came from."""
    with pytest.raises(ConfigError, match=r"^here: the path ") as caught:
        expand_path(path, repo_dir=REPO, environ=ENVIRON, what="here")
    assert repr(path) in caught.value.message


def test_a_tilde_needs_a_home() -> None:
    """Without HOME, `~` means nothing."""
    with pytest.raises(ConfigError, match="HOME"):
        expand_path("~/x", repo_dir=REPO, environ={}, what="x")


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("filesystem:/srv", Filesystem(path="/srv")),
        ("filesystem:x", Filesystem(path=f"{REPO}/x")),
        ("filesystem:$DATA/a:b", Filesystem(path="/srv/data/a:b")),
        (
            '@acme/blob:{"container": "x", "n": {"m": 1}}',
            Extension(type="@acme/blob", config={"container": "x", "n": {"m": 1}}),
        ),
        ("@acme/blob:{}", Extension(type="@acme/blob", config={})),
        ("s3:bucket", Extension(type="@swamp/s3-datastore", config={"bucket": "bucket"})),
        ("s3:bucket/", Extension(type="@swamp/s3-datastore", config={"bucket": "bucket"})),
        ("s3:bucket/a/b", Extension(type="@swamp/s3-datastore", config={"bucket": "bucket", "prefix": "a/b"})),
    ],
)
def test_targets_have_text_forms(text: str, target: object) -> None:
    """A datastore can be named in one text: a directory, an extension with its JSON, or the legacy S3 form."""
    assert parse_target(text, repo_dir=REPO, environ=ENVIRON, what="x") == target


@pytest.mark.parametrize(
    "text",
    [
        "",
        "filesystem",
        "filesystem:",
        "/srv/data",
        ":",
        ":{}",
        "s3:",
        "s3:/prefix",
        "@acme/blob:",
        "@acme/blob:x",
        "@acme/blob:[]",
        "@acme/blob:3",
        '@acme/blob:{"a": ',
        "@acme/blob:" + "[" * 100_000,
        "filesystem:$MISSING",
        "filesystem:a\0b",
    ],
    ids=lambda text: ascii(text)[:30],
)
def test_other_texts_are_no_targets(text: str) -> None:
    """What names no datastore is refused in one line that says where it came from."""
    with pytest.raises(ConfigError, match=r"^here") as caught:
        parse_target(text, repo_dir=REPO, environ=ENVIRON, what="here")
    assert caught.value.message.isprintable()


@pytest.mark.parametrize(
    ("flag", "file", "environ", "expected"),
    [
        (None, None, None, LOCK_TIMEOUT_MS),
        (None, None, "5000", 5000),
        (None, 7000, "5000", 7000),
        (None, 1, None, 1),
        (None, None, "1", 1),
        (2.5, 7000, "5000", 2500),
        (0, 7000, "5000", 0),
        (None, None, " 5000 ", 5000),
        *((None, None, bad, LOCK_TIMEOUT_MS) for bad in ("", "0", "-5", "5s", "1.5", "x", "٣", "9" * 5000)),
    ],
)
def test_the_lock_timeout_is_flag_over_file_over_environment(
    flag: float | None, file: int | None, environ: str | None, expected: int
) -> None:
    """The nearest word wins, and a variable that is no number is ignored, as in the reference."""
    variables = {} if environ is None else {"SWAMP_LOCK_TIMEOUT_MS": environ}
    config = resolve(repo(lock_timeout_ms=file), variables, Flags(lock_timeout_s=flag))
    assert config.lock_timeout_ms == expected


@pytest.mark.parametrize(
    ("flag", "file", "environ", "expected"),
    [
        (None, None, None, SYNC_TIMEOUT_MS),
        (None, None, "5000", 5000),
        (None, 7000, "5000", 7000),
        (1, 7000, "5000", 1000),
        (21_600, None, None, 21_600_000),
        (None, None, "x", SYNC_TIMEOUT_MS),
    ],
)
def test_the_sync_timeout_is_flag_over_file_over_environment(
    flag: float | None, file: int | None, environ: str | None, expected: int
) -> None:
    """The nearest word wins here, too."""
    variables = {} if environ is None else {"SWAMP_DATASTORE_SYNC_TIMEOUT_MS": environ}
    config = resolve(repo(sync_timeout_ms=file), variables, Flags(sync_timeout_s=flag))
    assert config.sync_timeout_ms == expected


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (Flags(lock_timeout_s=-1), "--lock-timeout -1"),
        (Flags(lock_timeout_s=21_601), "--lock-timeout 21601"),
        (Flags(lock_timeout_s=float("nan")), "--lock-timeout nan"),
        (Flags(lock_timeout_s=True), "--lock-timeout True"),
        (Flags(lock_timeout_s="5"), "--lock-timeout '5'"),  # type: ignore[arg-type]
        (Flags(sync_timeout_s=0.5), "--timeout 0.5"),
        (Flags(sync_timeout_s=True), "--timeout True"),
        (Flags(sync_timeout_s=21_601), "--timeout 21601"),
        (Flags(sync_timeout_s=float("inf")), "--timeout inf"),
    ],
)
def test_flags_out_of_range_are_refused(flags: Flags, named: str) -> None:
    """A flag is somebody's wish: one that cannot be met is an error that shows it."""
    with pytest.raises(ConfigError, match=named):
        resolve(flags=flags)


@pytest.mark.parametrize("bad", [0, -5, 1.5, True, "5000", [1], {}])
@pytest.mark.parametrize("name", ["lock_timeout_ms", "sync_timeout_ms"])
def test_bad_timeouts_in_the_file_are_refused(name: str, bad: object) -> None:
    """A timeout in the file that is no whole number above zero is an error that names it."""
    named = {"lock_timeout_ms": "lockTimeoutMs", "sync_timeout_ms": "syncTimeoutMs"}[name]
    with pytest.raises(ConfigError, match=named):
        resolve(repo(**{name: bad}))
