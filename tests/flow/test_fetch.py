"""Reading one object past the cache: what it answers, what it refuses, what it costs."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from mire.errors import ConfigError, InputError, MissingBucketError, RemoteError
from mire.flow.fetch import fetch_content
from mire.testing.misbehaving import MisbehavingRemote
from sync_world import World, data


@pytest.mark.parametrize("namespace", ["", "green"])
def test_one_request_for_one_object(worlds: Callable[..., World], namespace: str) -> None:
    """The bytes at the remote, whatever is here; one request, also for what is not there, and no file changes."""
    world = worlds()
    one = world.client(namespace=namespace)
    one.write(data("m"), "theirs")
    one.push()
    one.scribble(data("m"), "ours")
    world.remote.take()
    key = f"{namespace}/{data('m')}".lstrip("/")
    assert fetch_content(one.ds, key) == b"theirs"
    assert fetch_content(one.ds, f"{key}-other") is None
    assert world.remote.take() == [("get", key), ("get", f"{key}-other")]
    assert one.files() == {data("m"): b"ours"}


@pytest.mark.parametrize("key", ["", "/data/x", "data/../x", "..", "data\\x", "C:/x", "data/x\0", "data//x"])
def test_a_key_that_leads_elsewhere_is_refused(worlds: Callable[..., World], key: str) -> None:
    """Before anything is asked."""
    world = worlds()
    one = world.client()
    with pytest.raises(InputError) as caught:
        fetch_content(one.ds, key)
    assert caught.value.kind == "bad_key"
    assert "\n" not in caught.value.message
    assert world.remote.take() == []


@pytest.mark.parametrize("key", [data("m"), "green", "greenish/x", "blue/x"])
def test_a_key_of_another_namespace_is_refused(worlds: Callable[..., World], key: str) -> None:
    """There is no way from one namespace into another, or to the root."""
    world = worlds()
    one = world.client(namespace="green")
    world.memory.put(key, b"not ours")
    with pytest.raises(InputError, match="namespace green"):
        fetch_content(one.ds, key)


@pytest.mark.parametrize("error", [MissingBucketError("no bucket"), RemoteError("lost", transient=True)])
def test_a_failure_is_not_nothing(worlds: Callable[..., World], error: RemoteError) -> None:
    """Only the store's own word that there is no object is None."""
    remote = MisbehavingRemote(worlds().remote)
    one = worlds().client(remote)
    remote.fail("get", error)
    with pytest.raises(type(error)):
        fetch_content(one.ds, data("m"))
    assert fetch_content(one.ds, data("m")) is None


def test_a_directory_has_nothing_to_fetch(worlds: Callable[..., World]) -> None:
    """A datastore without a remote says so."""
    with pytest.raises(ConfigError, match="nothing to push or pull"):
        fetch_content(replace(worlds().client().ds, remote=None), data("m"))
