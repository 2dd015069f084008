"""GPUs on the PCI bus."""

import pytest

from muster_plugins.shared.pci import nvidia_gpus


@pytest.mark.parametrize(
    ("vendor", "kind", "is_gpu"),
    [
        ("0x10de", "0x030200", True),
        ("0x10de", "0x030000", True),
        ("0x10de", "0x040300", False),
        ("0x10de", "0x068000", False),
        ("0x8086", "0x030000", False),
    ],
)
def test_only_nvidias_display_class_counts(tmp_path, vendor, kind, is_gpu):
    """Audio functions and NVSwitches have NVIDIA's vendor id too."""
    entry = tmp_path / "0000:3B:00.0"
    entry.mkdir()
    (entry / "vendor").write_text(vendor + "\n")
    (entry / "class").write_text(kind + "\n")
    assert nvidia_gpus(tmp_path) == (("0000:3b:00.0",) if is_gpu else ())


def test_no_bus_is_no_gpu(tmp_path):
    """A machine without PCI, or a container without its sysfs, shows none."""
    assert nvidia_gpus(tmp_path / "nowhere") == ()


def test_a_device_that_goes_while_we_look_is_left_out(tmp_path):
    """Its directory may be there without its files."""
    (tmp_path / "0000:01:00.0").mkdir()
    assert nvidia_gpus(tmp_path) == ()
