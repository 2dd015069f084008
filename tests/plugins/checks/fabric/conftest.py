"""Nodes with ports; see `node`."""

import pytest
from tests.plugins.checks.fabric.node import Node, Tree


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path)


@pytest.fixture
def node(tree, monkeypatch):
    return lambda **table: Node(tree, monkeypatch, **table)
