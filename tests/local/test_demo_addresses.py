"""The ports of the demo, which its coordinator opens much later on a busy host."""

import socket

import pytest

from muster_coordinator.local.demo import held_address


def test_a_free_port_is_kept_for_the_server_that_gets_it(live):
    """Nobody else binds it meanwhile; a server with SO_REUSEADDR listens on it, and is reached."""
    holder, address = held_address()
    host, port = address.split(":")
    with holder, socket.socket() as other:
        with pytest.raises(OSError, match="already in use"):
            other.bind((host, int(port)))
        with socket.create_server((host, int(port))), socket.create_connection((host, int(port))):
            pass
