"""Taking, showing and leaving a namespace, in directories and at remotes alike."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import mire
from mire.edge.memory import MemoryRemote
from mire.flow.claim import claim_namespace
from mire.flow.datastore import open_datastore
from mire.flow.exchange import pull_now, push_now
from mire.flow.mark import mark, pending_marks
from mire.flow.namespace import bound_to, set_namespace, show_namespace, unset_namespace
from mire.flow.registry import list_namespaces
from mire.model.names import RESERVED_NAMESPACES, Namespace
from mire.plan.config import Flags
from mire.wire.repo import replace_datastore
from mire.wire.sidecar import SIDECAR
from sync_world import Recorded, data
from tenants import Tenant

Make = Callable[..., Tenant]


@pytest.fixture(params=["default", "directory", "remote"])
def make(request: pytest.FixtureRequest, fast_path: Path) -> Make:
    """Makes repositories: with a store of their own, a shared directory, or a shared remote."""
    remote = Recorded(MemoryRemote())
    shared = fast_path / "shared"
    shared.mkdir()

    def one(name: str) -> Tenant:
        if request.param == "remote":
            return Tenant(fast_path / name, remote)
        block = {"type": "filesystem", "path": str(shared)} if request.param == "directory" else None
        return Tenant(fast_path / name, None, block)

    return one


def test_a_namespace_is_claimed_and_used(make: Make) -> None:
    """What is written from then on is in the namespace, for programs and for people."""
    one = make("one")
    one.take("team-a")
    assert one.settings["datastore"]["namespace"] == "team-a"  # type: ignore[index]
    one.put("m", "first")
    assert one.get("m") == "first"
    with one.home():
        shown = show_namespace(str(one.repo))
    assert shown.claim is not None
    assert (shown.namespace, shown.claim.repo_id, shown.has_root_data) == ("team-a", one.repo_id, False)
    with one.open() as store:
        assert store.datastore.tier.endswith("/team-a")
        assert [(each.namespace, each.is_ours) for each in list_namespaces(store.datastore)] == [("team-a", True)]


def test_the_same_repository_registers_again(make: Make) -> None:
    """Taking the namespace it has changes nothing, not even the time of the claim."""
    one = make("one")
    one.take("team-a")
    with one.home():
        before, settings = show_namespace(str(one.repo)).claim, one.settings
        one.take("team-a")
        assert show_namespace(str(one.repo)).claim == before
    assert one.settings == settings


@pytest.mark.parametrize(
    "name", [*sorted(RESERVED_NAMESPACES), "_index", "_control", ".locks", "A", "a_b", "-a", "a/b"]
)
def test_a_name_that_means_something_else_is_refused(make: Make, name: str) -> None:
    """Directories of a datastore, internal ones, and what is no slug; the settings stay as they were."""
    one = make("one")
    before = one.settings
    with pytest.raises(mire.InputError, match="namespace"):
        one.take(name)
    assert one.settings == before


def test_a_directory_of_the_settings_is_no_namespace(make: Make) -> None:
    """Also one that only this repository has in its list."""
    one = make("one")
    block = one.settings.get("datastore") or {"type": "filesystem", "path": ".swamp"}
    assert isinstance(block, dict)
    settings = one.repo / ".swamp.yaml"
    settings.write_bytes(replace_datastore(settings.read_bytes(), {**block, "directories": ["data", "mine"]}))
    with pytest.raises(mire.InputError, match="'mine' is the name of a datastore directory"):
        one.take("mine")


@pytest.mark.parametrize("kind", ["directory", "remote"])
def test_a_name_that_another_has_is_a_conflict(kind: str, fast_path: Path) -> None:
    """The error shows who has it since when; nothing of the repository is changed."""
    remote, shared = MemoryRemote(), fast_path / "shared"
    shared.mkdir()
    tenants = [
        Tenant(
            fast_path / name,
            remote if kind == "remote" else None,
            None if kind == "remote" else {"type": "filesystem", "path": str(shared)},
        )
        for name in ("one", "other")
    ]
    tenants[0].take("team-a")
    before = tenants[1].settings
    with pytest.raises(
        mire.ConflictError, match=f"team-a belongs to the repository {tenants[0].repo_id} since 20"
    ) as told:
        tenants[1].take("team-a")
    assert told.value.kind == "namespace_taken"
    assert tenants[1].settings == before


@pytest.mark.parametrize("kind", ["directory", "remote"])
def test_of_two_who_claim_at_once_one_has_it(kind: str, fast_path: Path) -> None:
    """Whoever looked before the other wrote is still told."""
    remote, shared = MemoryRemote(), fast_path / "shared"
    shared.mkdir()
    block = None if kind == "remote" else {"type": "filesystem", "path": str(shared)}
    tenants = [Tenant(fast_path / name, remote if kind == "remote" else None, block) for name in ("one", "other")]
    outcomes: list[object] = []
    barrier = threading.Barrier(2, timeout=30)
    stores = []
    for tenant in tenants:
        with tenant.open() as store:
            stores.append((bound_to(store.datastore, Namespace("team-a")), tenant.repo_id))

    def claim(number: int) -> None:
        ds, repo_id = stores[number]
        barrier.wait()
        try:
            claim_namespace(ds, repo_id)
            outcomes.append(repo_id)
        except mire.ConflictError as error:
            outcomes.append(error)

    threads = [threading.Thread(target=claim, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    winners = [each for each in outcomes if isinstance(each, str)]
    losers = [each for each in outcomes if isinstance(each, mire.ConflictError)]
    assert (len(winners), len(losers)) == (1, 1)
    assert winners[0] in str(losers[0])


def test_data_without_a_namespace_is_told(make: Make) -> None:
    """Taking a namespace moves nothing; who asks hears that something stayed behind."""
    one = make("one")
    one.put("m", "before")
    with one.home():
        assert set_namespace(str(one.repo), "team-a").has_root_data
    with pytest.raises(mire.NotFoundError):
        one.get("m")
    with one.home():
        unset_namespace(str(one.repo))
    if one.remote is not None:
        with one.open() as store:
            pull_now(store.datastore)
    assert one.get("m") == "before"


def test_a_namespace_with_data_is_not_left_silently(make: Make) -> None:
    """The error says how to move the data; `keep` leaves data and claim where they are."""
    one = make("one")
    one.take("team-a")
    one.put("m", "inside")
    with one.home():
        with pytest.raises(mire.ConflictError, match="migrate --reverse"):
            unset_namespace(str(one.repo))
        assert unset_namespace(str(one.repo), keep=True) == "team-a"
        assert "namespace" not in one.settings.get("datastore", {})  # type: ignore[operator]
    with one.open() as store:
        assert [each.namespace for each in list_namespaces(store.datastore)] == ["team-a"]
    one.take("team-a")
    if one.remote is not None:
        with one.open() as store:
            pull_now(store.datastore)
    assert one.get("m") == "inside"


def test_an_empty_namespace_is_left_and_its_name_is_free(make: Make) -> None:
    """The claim is gone, and another repository can have the name."""
    one, other = make("one"), make("other")
    one.take("team-a")
    with one.home():
        unset_namespace(str(one.repo))
        with pytest.raises(mire.NotFoundError, match="no namespace"):
            unset_namespace(str(one.repo))
    with one.open() as store:
        assert list_namespaces(store.datastore) == []
    other.take("team-a")


def test_one_namespace_at_a_time(make: Make) -> None:
    """Who has one is told to leave it first."""
    one = make("one")
    one.take("team-a")
    with pytest.raises(mire.ConflictError, match="has the namespace team-a"):
        one.take("team-b")


def test_a_store_named_for_once_has_no_setting(make: Make, fast_path: Path) -> None:
    """A namespace belongs to the repository's own datastore."""
    one = make("one")
    with one.home(), pytest.raises(mire.InputError, match="--datastore"):
        set_namespace(str(one.repo), "team-a", flags=Flags(datastore=f"filesystem:{fast_path}"))


def test_unpublished_changes_stop_a_change_of_namespace(fast_path: Path) -> None:
    """What is only in the cache would stay behind there."""
    one = Tenant(fast_path / "one", Recorded(MemoryRemote()))
    one.put("m", "x")
    with one.open() as store:
        mark(store.datastore, "data/aws/ec2/vpc/m")
    with pytest.raises(mire.ConflictError, match="push"):
        one.take("team-a")
    with one.open() as store:
        push_now(store.datastore)
    one.take("team-a")


@pytest.mark.parametrize("kind", ["directory", "remote"])
def test_settings_written_by_hand_do_not_open_anothers_namespace(kind: str, fast_path: Path) -> None:
    """A directory is not opened, a remote not written, and the claimant is shown."""
    shared = fast_path / "shared"
    shared.mkdir()
    remote = MemoryRemote() if kind == "remote" else None
    block: dict[str, object] | None = None if remote else {"type": "filesystem", "path": str(shared)}
    one, other = (Tenant(fast_path / name, remote, block) for name in ("one", "other"))
    one.take("team-a")
    settings = other.repo / ".swamp.yaml"
    settings.write_text(settings.read_text().rstrip() + '\n  namespace: "team-a"\n')
    with pytest.raises(mire.ConflictError, match=one.repo_id):
        other.put("m", "x")
    if kind == "directory":
        with pytest.raises(mire.ConflictError, match=one.repo_id):
            open_datastore(str(other.repo))


def test_registering_again_keeps_what_waits_to_be_pushed(fast_path: Path) -> None:
    """Unpublished changes neither stop it nor are forgotten, whichever program marked them."""
    one = Tenant(fast_path / "one", Recorded(MemoryRemote()))
    one.take("team-a")
    one.put("m", "x")
    with one.open() as store:
        base, path = Path(store.datastore.base), f"team-a/{data('m')}"
        mark(store.datastore, path)
    sidecar = base / SIDECAR
    before = sidecar.read_bytes()
    one.take("team-a")
    assert sidecar.read_bytes() == before
    with one.open() as store:
        assert [each.path for each in pending_marks(store.datastore).records] == [path]


def test_a_look_makes_nothing(fast_path: Path) -> None:
    """Neither in a directory that is no repository nor in one that has no data yet."""
    with pytest.raises(mire.NotFoundError, match="mire init"):
        show_namespace(str(fast_path))
    assert list(fast_path.iterdir()) == []
    one = Tenant(fast_path / "one", None)
    before = sorted(fast_path.rglob("*"))
    assert show_namespace(str(one.repo)).namespace == ""
    assert sorted(fast_path.rglob("*")) == before
