"""Who holds a lock."""

from mire.model.lease import Host


def test_the_holder_is_user_at_host() -> None:
    """Other programs show a holder as `user@host`."""
    assert Host(hostname="build-7", pid=40112, user="dana").holder == "dana@build-7"
