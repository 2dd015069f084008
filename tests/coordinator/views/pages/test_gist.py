"""Long texts are cut where a part of them ends."""

from tests.cases import cases

from muster_coordinator.views.pages.gist import MOST, gist

PART = "busbw 0.04 GB/s with node-5: typical here is 0.523 GB/s"


@cases(
    "text, shown",
    [
        ("", ""),
        ("GPU has fallen off the bus", "GPU has fallen off the bus"),
        ("x" * MOST, "x" * MOST),
        ("x" * (MOST + 1), "x" * (MOST - 1) + "…"),
        ("; ".join([PART] * 5), "; ".join([PART] * 3) + " …"),
        (f"; {'x' * MOST}", f"; {'x' * (MOST - 3)}…"),
    ],
)
def test_the_gist(text, shown):
    """Never longer than it may be, but for the ellipsis."""
    assert gist(text) == shown
    assert len(gist(text)) <= MOST + 2
