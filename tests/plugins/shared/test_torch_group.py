"""With or without libuv: which store a rank opens. That ranks meet there stands with the collectives."""

import sys
from datetime import timedelta
from types import ModuleType
from unittest.mock import Mock

import pytest

from muster import Rendezvous
from muster_plugins.shared.torch_group import _open_store

MEETING = Rendezvous(rank=0, local_rank=0, world_size=2, master_addr="127.0.0.1", master_port=4321, listen_fd=7)
WITHOUT = RuntimeError("use_libuv was requested but PyTorch was build without libuv support")
"""Word for word what torch 2.6 and 2.14 of Debian raise."""


@pytest.fixture
def tcp_store(monkeypatch):
    """The TCPStore of a torch that stands in for the real one."""
    torch, distributed = ModuleType("torch"), ModuleType("torch.distributed")
    store = Mock()
    monkeypatch.setattr(torch, "distributed", distributed, raising=False)
    monkeypatch.setattr(distributed, "TCPStore", store, raising=False)
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "torch.distributed", distributed)
    return store


def opened() -> object:
    return _open_store(MEETING, timedelta(seconds=5))


def asked_for(tcp_store) -> list[bool]:
    return [call.kwargs["use_libuv"] for call in tcp_store.call_args_list]


def test_a_torch_with_libuv_uses_it(tcp_store):
    """The faster store is used, and no other."""
    assert opened() is tcp_store.return_value
    assert asked_for(tcp_store) == [True]


def test_a_torch_without_libuv_is_asked_for_its_other_store(tcp_store):
    """The second call differs only in libuv; it also gets the socket of rank 0."""
    tcp_store.side_effect = [WITHOUT, "store"]
    assert opened() == "store"
    assert asked_for(tcp_store) == [True, False]
    first, second = tcp_store.call_args_list
    assert first.args == second.args == ("127.0.0.1", 4321, 2)
    assert first.kwargs | {"use_libuv": False} == second.kwargs
    assert second.kwargs["master_listen_fd"] == 7


def test_any_other_error_is_not_tried_around(tcp_store):
    """For example, rank 0 cannot be reached, which is unrelated to libuv."""
    tcp_store.side_effect = RuntimeError("The client socket has timed out after 5000ms")
    with pytest.raises(RuntimeError, match="timed out"):
        opened()
    assert asked_for(tcp_store) == [True]
