"""References over the API: shown, set and removed."""

from tests.cases import cases

REFERENCE = {"check": "gemm", "metric": "rpm", "when": {"nodes": [1, 2]}, "fail_below": 5.0, "source": "a test"}


async def all_references(api, limit=1000):
    rows, cursor = [], ""
    while cursor is not None:
        page = await api.get(f"/api/v1/references?limit={limit}" + (f"&cursor={cursor}" if cursor else ""))
        assert len(page["items"]) <= limit
        rows += page["items"]
        cursor = page["next_cursor"]
    return rows


async def test_references_are_the_shipped_ones_then_those_that_were_set(fleet):
    """In pages of any size, each with its origin; of what was set the last comes last."""
    shipped = await all_references(fleet)
    assert {row["origin"] for row in shipped} == {"shipped"}
    for bound, metric in enumerate(("rpm", "noise", "rpm")):
        response, answer = await fleet.ask(
            "PUT", "/api/v1/references", json={**REFERENCE, "metric": metric, "fail_below": bound}
        )
        assert (response.status, answer["origin"], answer["fail_below"]) == (200, "operator", bound)
    for limit in (1, 7, 1000):
        rows = await all_references(fleet, limit)
        assert rows[: len(shipped)] == shipped
        assert [(row["metric"], row["fail_below"]) for row in rows[len(shipped) :]] == [("noise", 1), ("rpm", 2)]


async def test_a_reference_that_was_set_can_be_removed(fleet):
    """By check, metric and conditions; it is stored and gone as soon as that is answered."""
    await fleet.ask("PUT", "/api/v1/references", json=REFERENCE)
    assert len((await fleet.store.saved()).references) == 1
    where = "/api/v1/references?check=gemm&metric=rpm"
    assert "unknown operator's reference" in await fleet.refused(422, "DELETE", where)
    response, answer = await fleet.ask("DELETE", where + '&when={"nodes":[1,2]}')
    assert (response.status, answer) == (200, {"check": "gemm", "metric": "rpm", "when": {"nodes": [1, 2]}})
    assert (await fleet.store.saved()).references == ()
    assert {row["origin"] for row in await all_references(fleet)} == {"shipped"}


@cases(
    ("change", "detail"),
    [
        ({"check": "gem"}, "unknown check 'gem'; did you mean 'gemm'?"),
        ({"check": "no name"}, "field 'check'"),
        ({"fail_belo": 1}, "unknown field 'fail_belo'; did you mean 'fail_below'?"),
        ({"origin": "shipped"}, "unknown field 'origin'"),
        ({"fail_below": None}, "give at least one of fail_below, warn_below, warn_above, fail_above"),
        ({"warn_below": 1}, "fail_below, warn_below must not fall in this order"),
        ({"fail_below": "much"}, "field 'fail_below'"),
        ({"when": {"nodes": {"at_lest": 1}}}, "field 'when.nodes': must be a value (equal to it), a list"),
        ({"when": []}, "field 'when': must be a table"),
        ({"source": ""}, "field 'source'"),
    ],
)
async def test_a_wrong_reference_is_refused(fleet, change, detail):
    """It says what would be right, and nothing is set."""
    assert detail in await fleet.refused(422, "PUT", "/api/v1/references", json={**REFERENCE, **change})
    assert {row["origin"] for row in await all_references(fleet)} == {"shipped"}
