"""Environment profiles of NCCL."""

from typing import get_args

import pytest
from tests.cases import cases

from muster import Config
from muster.config import Settings
from muster.errors import SettingsError
from muster.plugins import load
from muster_plugins.shared.nccl.environment import (
    REMOVED,
    NcclSettings,
    ProfileName,
    environment_for,
    plain_exports,
    profiles,
    shown,
)

SCRIPT = """#!/bin/bash
# what an image might ship
export NCCL_NET=gIB
export NCCL_IB_TC=96   # changed since
  export NCCL_CROSS_NIC="1"
export LD_LIBRARY_PATH=/usr/local/gib/lib64
export NCCL_TUNER_CONFIG_PATH=$HOME/tuner.txtpb
export NCCL_DEBUG=`cat /etc/secret`
export NCCL_IB_HCA=a; rm -rf /
export NCCL_BROKEN="half
if [ "$PLATFORM" = a4 ]; then
  export NCCL_MIN_NCHANNELS=64
  for each in 1 2; do export NCCL_X=$each; done
fi
set_more() {
  export NCCL_IN_A_FUNCTION=1
}
export NCCL_NVLS_CHUNKSIZE='524288'
"""


def test_every_profile_that_can_be_chosen_is_there_with_its_source():
    """And no other."""
    assert set(profiles()) == set(get_args(ProfileName))
    assert all(profile.source and profile.summary for profile in profiles().values())


def test_a_network_is_forced_with_a_ring():
    """Trees of two nodes can move more than the network card does."""
    values = environment_for("net-forced", NcclSettings(), None)
    assert values == {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1", "NCCL_ALGO": "Ring"}


@pytest.mark.parametrize(
    ("setting", "route", "expected"), [("eth1", "eth0", "eth1"), (None, "eth0", "eth0"), (None, None, None)]
)
def test_the_interface_is_the_operators_or_else_the_one_of_the_route(setting, route, expected):
    """A variable whose interface nobody knows is left out."""
    assert environment_for("socket", NcclSettings(interface=setting), route).get("NCCL_SOCKET_IFNAME") == expected


def test_what_the_image_ships_goes_before_the_profile_and_the_operator_before_both(tmp_path):
    """Value by value."""
    script = tmp_path / "set_nccl_env.sh"
    script.write_text(SCRIPT, encoding="ascii")
    settings = NcclSettings(gib_script=script, environment={"NCCL_CROSS_NIC": "2"})
    values = environment_for("gib-a4", settings, None)
    assert (values["NCCL_IB_TC"], values["NCCL_CROSS_NIC"], values["NCCL_MIN_NCHANNELS"]) == ("96", "2", "32")
    assert environment_for("socket", settings, None) == {"NCCL_IB_DISABLE": "1", "NCCL_CROSS_NIC": "2"}


def test_of_a_script_only_what_is_exported_in_any_case_is_read():
    """Nothing is executed, so what a shell would have to work out is left out."""
    assert dict(plain_exports(SCRIPT)) == {
        "NCCL_NET": "gIB",
        "NCCL_IB_TC": "96",
        "NCCL_CROSS_NIC": "1",
        "NCCL_NVLS_CHUNKSIZE": "524288",
    }


def test_garbage_for_a_script_gives_nothing(tmp_path):
    """A directory, bytes that are no text, no file at all."""
    (tmp_path / "bytes").write_bytes(bytes(range(256)) * 1024)
    profile = profiles()["gib-a3u"].environment
    for name in ("", "bytes", "missing"):
        assert environment_for("gib-a3u", NcclSettings(gib_script=tmp_path / name), None) == profile


def test_what_is_shown_concerns_nccl_and_holds_no_secret():
    """By the variable's name."""
    told = {"GLOO_SOCKET_IFNAME": "lo", "NCCL_IB_PKEY": "1", "NCCL_NET": "gIB"}
    environment = told | {"NCCL_AUTH_KEY": "x", "HF_TOKEN": "x", "HOME": "/"}
    assert shown(environment) == told | {"NCCL_AUTH_KEY": REMOVED}


@cases("table", [{"environment": {"nccl net": "x"}}, {"profile": "gib"}, {"enviroment": {}}])
@cases("plugin", ["collective", "nccl_tests"])
def test_wrong_settings_are_refused_at_start(plugin, table):
    """With the key that is wrong."""
    with pytest.raises(SettingsError, match=rf"plugins\.{plugin}"):
        load(Config(Settings.model_validate({"plugins": {plugin: table}})))
