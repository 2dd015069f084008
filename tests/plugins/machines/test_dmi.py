"""The machine type by the name that a maker has given to the machine."""

from tests.cases import cases

from muster_plugins.machines.dmi.plugin import machine_types

NO_NAMES = (
    "",
    "x",
    "Google Compute Engine",
    "System Product Name",
    "To be filled by O.E.M.",
    "TO BE FILLED BY O.E.M.",
    "Default string",
    "Standard PC (Q35 + ICH9, 2009)",
    "Virtual Machine",
    "VMware20,1",
    "KVM",
    "Super Server",
    "A\x1b[31mB",
    "x" * 65,
    "caf\u00e9",
)


@cases(
    ("written", "name"),
    [
        ("PowerEdge XE9680\n", "PowerEdge XE9680"),
        ("  DGXH100  \n", "DGXH100"),
        ("ThinkSystem  SR680a V3", "ThinkSystem SR680a V3"),
        ("p5.48xlarge", "p5.48xlarge"),
        ("-[7D9RCTOLWW]-", "-[7D9RCTOLWW]-"),
        *((name, None) for name in NO_NAMES),
    ],
)
def test_a_product_name_is_a_machine_type_if_it_tells_machines_apart(tmp_path, written, name):
    """Clouds, hypervisors and makers who left the field as it was use one name for machines of many types."""
    (tmp_path / "product_name").write_text(written, encoding="utf-8")
    assert [each.name for each in machine_types(tmp_path)] == ([] if name is None else [name])


def test_without_dmi_there_is_no_machine_type(tmp_path):
    """As in many containers and on ARM."""
    assert [*machine_types(tmp_path / "absent")] == []


def test_a_field_without_end_is_not_read_to_its_end(tmp_path):
    """The kernel gives a page at most; a file put in its place may be longer."""
    (tmp_path / "product_name").write_bytes(b"x" * (1 << 20))
    assert [*machine_types(tmp_path)] == []
