"""The id of a machine follows from a file."""

import os

import pytest

from muster_agent.wire.machine import machine_of

CONTENT = "4d6c0a5f3d5e4f9e8f0f3a2b1c0d9e8f"


def test_it_is_the_same_at_each_start_and_another_one_elsewhere(tmp_path):
    """It does not show the content of the file."""
    ids = []
    for number, content in enumerate((CONTENT, CONTENT + "\n", CONTENT.replace("4", "5"), "rack 7, slot 3")):
        path = tmp_path / str(number)
        path.write_text(content)
        ids.append(machine_of(path))
    assert ids[0] == ids[1]
    assert len(set(ids)) == 3
    assert {len(each) for each in ids} == {16}
    assert not any(ids[0] in CONTENT or CONTENT[at : at + 8] in ids[0] for at in range(24))


@pytest.mark.parametrize("content", [None, "", " \n", "uninitialized\n"])
def test_a_machine_without_an_id_has_none(tmp_path, content):
    """As in most containers."""
    path = tmp_path / "machine-id"
    if content is not None:
        path.write_text(content)
    assert machine_of(path) == ""


def test_what_is_no_plain_file_is_none(tmp_path):
    """A directory, such as one that a container runtime made of a mount that was missing; and the null device."""
    assert machine_of(tmp_path) == ""
    assert machine_of(tmp_path / os.devnull) == ""


def test_a_large_file_is_not_read_whole(tmp_path):
    """Only its beginning counts."""
    for name, end in (("a", "x"), ("b", "y")):
        (tmp_path / name).write_text("0" * 5_000 + end)
    assert machine_of(tmp_path / "a") == machine_of(tmp_path / "b") != ""
