"""Both sides changed: nothing is overwritten, either side can win, and both versions are kept."""

from pathlib import Path

from sync_world import World, disagree, pair


def test_theirs_wins_and_ours_is_kept(world: World) -> None:
    """Our bytes are beside the cache before theirs take their place, however often that happens."""
    one, other = disagree(world)
    kept = []
    for text in ("from other", "from other again"):
        other.write("logs/a", text)
        one.write("logs/a", f"against {text}")
        one.push()
        done = other.pull(theirs=True)
        assert (done.written, done.conflicts) == (["logs/a"], [])
        kept.append(Path(done.resolved[0].ours or "").read_text())
        assert other.read("logs/a") == f"against {text}".encode()
        assert other.push().count == 0
    assert kept == ["from other", "from other again"]


def test_ours_wins_and_theirs_is_kept(world: World) -> None:
    """Their bytes are beside the cache before ours take their place at the remote."""
    one, other = disagree(world)
    done = other.push(ours=True)
    assert (done.uploaded, done.conflicts) == (["logs/a"], [])
    assert Path(done.resolved[0].theirs or "").read_text() == "from one"
    assert one.pull().count == 1
    assert one.read("logs/a") == b"from other"
    world.check()


def test_ours_wins_over_a_removal_and_a_removal_over_theirs(world: World) -> None:
    """A file removed there comes back; one changed there goes, and a copy of it is kept."""
    one, other = pair(world)
    one.remove("logs/a")
    one.push()
    other.write("logs/a", "edited")
    assert other.push(ours=True).uploaded == ["logs/a"]
    one.pull()
    one.write("logs/a", "newer")
    one.push()
    other.remove("logs/a")
    done = other.push(ours=True)
    assert done.removed == ["logs/a"]
    assert Path(done.resolved[0].theirs or "").read_text() == "newer"
    one.pull()
    assert one.files() == {}
    assert world.objects() == {}


def test_theirs_wins_over_an_edit_of_what_they_removed(world: World) -> None:
    """The file goes, and our edit is kept beside the cache."""
    one, other = pair(world)
    one.remove("logs/a")
    one.push()
    other.write("logs/a", "edited")
    done = other.pull(theirs=True)
    assert done.removed == ["logs/a"]
    assert Path(done.resolved[0].ours or "").read_text() == "edited"
    assert other.push().count == 0
    assert world.index() == {}


def test_a_conflict_goes_when_both_came_to_the_same(world: World) -> None:
    """Equal bytes are no conflict, whoever wrote them first."""
    _, other = disagree(world)
    assert other.pull().conflicts
    other.write("logs/a", "from one")
    assert other.push().is_whole
    assert other.pull().is_whole
    assert not other.is_dirty


def test_a_dry_run_changes_nothing(world: World) -> None:
    """It says what would be done, and neither the store, nor the cache, nor the marks are touched."""
    one, other = disagree(world)
    one.version("m", 1, "x")
    marks, objects, files = one.marks(), world.objects(), other.files()
    world.remote.take()
    would = one.push(dry_run=True)
    assert len(would.uploaded) == 3
    assert other.pull(dry_run=True).conflicts
    assert other.push(dry_run=True).conflicts
    assert world.remote.take_writes() == []
    assert (one.marks(), world.objects(), other.files()) == (marks, objects, files)
    assert one.push().uploaded == would.uploaded
