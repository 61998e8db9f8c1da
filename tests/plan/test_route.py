"""Which tier a path belongs to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mire.errors import ConfigError
from mire.model.config import Config, Filesystem
from mire.model.names import ALWAYS_LOCAL_SUBDIRS, DATASTORE_SUBDIRS, RelPath, parse_rel_path
from mire.plan.route import check_exclude, is_excluded, tier_of


def config(*exclude: str, directories: tuple[str, ...] = DATASTORE_SUBDIRS) -> Config:
    """Settings with some patterns."""
    return Config(target=Filesystem(path="/x"), origin="test", exclude=exclude, directories=directories)


@pytest.mark.parametrize("subdir", DATASTORE_SUBDIRS)
def test_the_ten_directories_are_the_datastore(subdir: str) -> None:
    """By default a path below one of the ten directories, and the directory, is in the datastore."""
    assert tier_of(RelPath(subdir), config()) == "datastore"
    assert tier_of(RelPath(f"{subdir}/a/b"), config()) == "datastore"


@pytest.mark.parametrize("rel_path", ["datastore-bundles/x", "pulled-extensions", "config/x", "x", "datax/y"])
def test_everything_else_is_local(rel_path: str) -> None:
    """A directory that is not listed is local."""
    assert tier_of(RelPath(rel_path), config()) == "local"


def test_directories_are_a_whitelist() -> None:
    """Only the listed directories are in the datastore, others of the ten are local."""
    settings = config(directories=("data", "own"))
    assert tier_of(RelPath("data/x"), settings) == "datastore"
    assert tier_of(RelPath("own/x"), settings) == "datastore"
    assert tier_of(RelPath("outputs/x"), settings) == "local"


@given(
    st.sampled_from(ALWAYS_LOCAL_SUBDIRS),
    st.lists(st.sampled_from(["a", "b", "data"])).map("/".join),
    st.lists(st.sampled_from(["!secrets", "!secrets/**", "!**", "**", "!bundles/", "*", "!*"])).map(tuple),
    st.lists(st.sampled_from([*ALWAYS_LOCAL_SUBDIRS, "data"])).map(tuple),
)
def test_secrets_and_bundles_are_local_whatever_the_settings(
    subdir: str, rest: str, exclude: tuple[str, ...], directories: tuple[str, ...]
) -> None:
    """No list of directories and no pattern moves a secret or a bundle into the datastore."""
    rel_path = parse_rel_path(f"{subdir}/{rest}".rstrip("/"))
    assert tier_of(rel_path, config(*exclude, directories=directories)) == "local"


@pytest.mark.parametrize(
    ("patterns", "local", "datastore"),
    [
        (["telemetry"], ["telemetry", "telemetry/a", "telemetry/a/b"], ["data/x/y/telemetry", "logs/telemetry"]),
        (["telemetry/"], ["telemetry", "telemetry/a"], ["logs/a"]),
        (["telemetry/**"], ["telemetry/a", "telemetry/a/b"], ["logs/a", "data/telemetry/x"]),
        (["/telemetry"], ["telemetry", "telemetry/a"], ["data/a/telemetry"]),
        (
            ["data/scratch/**"],
            ["data/scratch/id/name", "data/scratch/a/b/c/1/raw"],
            ["data/scratchy/id/name", "data/x"],
        ),
        (["data/scratch"], ["data/scratch", "data/scratch/id/name"], ["data/x/data/scratch"]),
        (["data/*/tmp"], ["data/a/tmp", "data/b/tmp/x"], ["data/a/b/tmp", "data/tmp"]),
        (["data/**/tmp"], ["data/tmp", "data/a/tmp", "data/a/b/tmp/c"], ["data/a/tmpx", "logs/tmp"]),
        (["*.log"], ["logs/a.log", "data/t/id/run.log", "outputs/a.log/b"], ["logs/a.txt", "logs/alog"]),
        (["run-?"], ["data/t/id/run-1"], ["data/t/id/run-12", "data/t/id/run-"]),
        (["run-[0-9]"], ["data/t/id/run-1"], ["data/t/id/run-x"]),
        (["l*"], ["logs/a", "logs"], ["data/t/id/log", "data/t/id/latest-run"]),
        (["*"], ["data/x", "logs"], []),
        (["*", "!data"], ["logs/a", "outputs/x"], ["data", "data/x/y"]),
        (["!data", "*"], ["data/x", "logs"], []),
        (["data/scratch/*", "!data/scratch/keep"], ["data/scratch/a"], ["data/scratch/keep", "data/scratch/keep/x"]),
        (["!data/scratch/keep", "data/scratch/*"], ["data/scratch/a", "data/scratch/keep"], []),
        (["data/t/*", "!logs"], ["data/t/a", "data/t/logs"], ["logs/a"]),
        (["*.log", "!important.log"], ["logs/a.log"], ["logs/important.log", "data/t/id/important.log"]),
        (["# telemetry", "", " "], [], ["telemetry/a", "data/# telemetry"]),
        ([], [], ["data/x", "telemetry"]),
        (["workflow-runs", "audit"], ["workflow-runs/a", "audit/commands.jsonl"], ["data/t/id/audit"]),
    ],
    ids=str,
)
def test_patterns_exclude(patterns: list[str], local: list[str], datastore: list[str]) -> None:
    """A directory's bare name means that directory, other patterns mean what they mean in `.gitignore`."""
    settings = config(*patterns)
    tiers = {path: tier_of(parse_rel_path(path), settings) for path in [*local, *datastore]}
    assert tiers == {**dict.fromkeys(local, "local"), **dict.fromkeys(datastore, "datastore")}


@given(st.sampled_from(DATASTORE_SUBDIRS), st.sampled_from(DATASTORE_SUBDIRS), st.sampled_from(["", "x/"]))
def test_a_directory_s_name_does_not_touch_an_item_of_that_name(excluded: str, item: str, between: str) -> None:
    """Excluding `logs` never loses a data item called "logs" from the datastore."""
    rel_path = parse_rel_path(f"data/type/{between}{item}")
    assert tier_of(rel_path, config(excluded)) == ("local" if excluded == "data" else "datastore")


@given(st.lists(st.sampled_from(["a", "b", "data", "*.log", "data/*", "!data/a", "**/b", "!*", "a/**"])).map(tuple))
def test_the_last_match_wins(patterns: tuple[str, ...]) -> None:
    """A pattern that matches everything, put last, decides alone."""
    for rel_path in ("data/a", "data/a/b.log", "data/b"):
        assert is_excluded(rel_path, (*patterns, "data/**"))
        assert not is_excluded(rel_path, (*patterns, "!data", "!data/**"))


@pytest.mark.parametrize("patterns", [("!",), ("data", "a\\"), ("!a\\",)])
def test_a_pattern_that_cannot_be_read_is_a_bad_setting(patterns: tuple[str, ...]) -> None:
    """The error shows the patterns."""
    with pytest.raises(ConfigError, match="exclude") as caught:
        check_exclude(patterns)
    assert repr(list(patterns)) in caught.value.message


def test_good_patterns_are_given_back() -> None:
    """What can be read is in force as it stands."""
    assert check_exclude(("a", "!b/**")) == ("a", "!b/**")
