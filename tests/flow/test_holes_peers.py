"""What users expect of peers and the reference does not give (newest §2.9, P1 to P9), through the Python face."""

import pytest

import mire
from sync_world import Client, World, latest


def model(client: Client, model_id: str = "m") -> mire.Model:
    """The model all tests write."""
    return client.store.model("AWS::EC2::VPC", model_id)


@pytest.fixture
def peers(world: World) -> tuple[Client, Client]:
    """Two caches that agree about three versions of one name."""
    one, other = world.client(), world.client()
    for number in (1, 2, 3):
        model(one).put("state", {"n": number})
    one.push()
    other.pull()
    assert model(other).versions("state") == [1, 2, 3]
    return one, other


def test_P1_a_deleted_version_is_gone_from_the_peers_history(peers: tuple[Client, Client]) -> None:
    """The peer no longer lists it, and still reads the others."""
    one, other = peers
    model(one).delete("state", 2)
    one.push()
    assert other.pull().count > 0
    assert model(other).versions("state") == [1, 3]
    assert model(other).get("state").json() == {"n": 3}


def test_P2_after_deleting_the_latest_version_the_previous_one_answers(
    world: World, peers: tuple[Client, Client]
) -> None:
    """The marker at the remote and at the peer names the version before."""
    one, other = peers
    model(one).delete("state", 3)
    one.push()
    assert world.get(latest("m")) == b"2"
    other.pull()
    assert model(other).get("state").json() == {"n": 2}


def test_P3_after_deleting_all_versions_a_peer_has_none_and_brings_none_back(
    world: World, peers: tuple[Client, Client]
) -> None:
    """Also when it was all there was, and also after the peer pushed something else."""
    one, other = peers
    model(one).delete("state")
    one.push()
    other.pull()
    assert [row.name for row in model(other).names()] == []
    model(other, "n").put("other", "x")
    other.push()
    one.pull()
    assert [row.name for row in model(one).names()] == []
    assert not [rel for rel in world.index() if rel.endswith("raw") and "/m/" in rel]


def test_P4_after_a_rename_a_peer_has_only_the_new_name(peers: tuple[Client, Client]) -> None:
    """The old name forwards, queries show the new one."""
    one, other = peers
    list(other.store.query("true"))
    model(one).rename("state", "status")
    one.push()
    other.pull()
    assert model(other).get("state").name == "status"
    assert model(other).get("status").json() == {"n": 3}
    rows = [(row["name"], row["version"]) for row in other.store.query("true")]
    assert sorted(rows) == sorted((row["name"], row["version"]) for row in one.store.query("true"))
    assert ("status", 1) in rows


def test_P5_what_retention_removed_is_gone_from_the_peers_history(world: World) -> None:
    """Versions beyond the policy leave the remote and the peer."""
    one, other = world.client(), world.client()
    for number in range(1, 6):
        model(one).put("state", {"n": number}, version_policy=2)
    one.push()
    other.pull()
    one.store.retain()
    one.push()
    other.pull()
    assert model(other).versions("state") == model(one).versions("state") == [4, 5]
    assert world.objects().keys() == one.files().keys()


@pytest.mark.parametrize("order", ["before", "after"])
def test_P7_a_bare_mark_and_a_deletion_in_one_cycle(world: World, peers: tuple[Client, Client], order: str) -> None:
    """In either order remote, deleter and peer lose the file."""
    one, other = peers
    if order == "before":
        one.mark_all()
    model(one).delete("state", 1)
    if order == "after":
        one.mark_all()
    one.push()
    one.pull()
    other.pull()
    assert model(one).versions("state") == model(other).versions("state") == [2, 3]
    assert not [rel for rel in world.objects() if "/state/1/" in rel]


@pytest.mark.parametrize("how", ["scoped", "bare", "lock"])
def test_P8_a_stale_clone_never_brings_a_deleted_file_back(
    world: World, peers: tuple[Client, Client], how: str
) -> None:
    """Whatever it pushes, the deleted versions stay deleted, and its own copy goes away."""
    one, other = peers
    model(one).delete("state", 1)
    one.push()
    if how == "scoped":
        model(other, "n").put("x", "y")
    elif how == "bare":
        other.mark_all()
    else:
        model(other).put("state", {"n": 4})
    other.push()
    assert not [rel for rel in world.index() if "/state/1/" in rel]
    other.pull()
    assert 1 not in model(other).versions("state")
    world.check()


def test_P9_a_pull_that_only_deletes_counts_and_drops_the_rows(peers: tuple[Client, Client]) -> None:
    """Whoever asks the catalog after it sees neither the version nor the name."""
    one, other = peers
    assert len(list(other.store.query("name == 'state'"))) > 0
    model(one).delete("state")
    one.push()
    assert other.pull().count >= 6
    assert list(other.store.query("name == 'state'")) == []
    with pytest.raises(mire.NotFoundError):
        model(other).get("state")
