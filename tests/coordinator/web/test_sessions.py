"""Sessions of browsers, and from where a browser says that a request comes."""

from tests.cases import cases

from muster_coordinator.web.same_origin import is_same_origin
from muster_coordinator.web.sessions import LASTS_S, MOST_SESSIONS, Right, Sessions

HOST = "muster.example:8443"


def test_a_session_is_found_by_its_id_until_it_ends():
    """By expiry or by logging out; ids cannot be guessed and are not kept."""
    sessions = Sessions()
    first, session = sessions.open(Right.READ, "ann", 100.0)
    second, _ = sessions.open(Right.CHANGE, None, 100.0)
    assert (session.right, session.name, session.expires_at) == (Right.READ, "ann", 100.0 + LASTS_S)
    assert sessions.find(first, 99.0 + LASTS_S) == session
    assert sessions.find(first, 100.0 + LASTS_S) is None
    assert (sessions.find("", 100.0), sessions.find("\udce9", 100.0), sessions.find(first[:-1], 100.0)) == (None,) * 3
    assert len({first, second}) == 2
    assert min(len(first), len(second)) >= 43
    assert first not in repr(vars(sessions))
    sessions.close(first)
    sessions.close("unknown")
    assert (sessions.find(first, 100.0), sessions.find(second, 100.0) is None) == (None, False)


def test_sessions_are_bounded():
    """One too many ends the oldest; expired ones make room first."""
    sessions = Sessions()
    opened = [sessions.open(Right.READ, None, float(number))[0] for number in range(MOST_SESSIONS + 1)]
    assert len(sessions) == MOST_SESSIONS
    assert (sessions.find(opened[0], 0.0), sessions.find(opened[1], 0.0) is None) == (None, False)
    sessions.open(Right.READ, None, LASTS_S + MOST_SESSIONS)
    assert len(sessions) == 1


def test_readers_end_no_session_of_an_operator():
    """Somebody with the reader's token may log in as often as they like, and only readers lose their sessions."""
    sessions = Sessions()
    operator, _ = sessions.open(Right.CHANGE, "ann", 0.0)
    for number in range(MOST_SESSIONS + 1):
        sessions.open(Right.READ, None, float(number))
    assert sessions.find(operator, 0.0) is not None


@cases(
    "headers, is_encrypted, expected",
    [
        ({}, False, None),
        ({"Sec-Fetch-Site": "same-origin"}, False, True),
        ({"Sec-Fetch-Site": "same-site"}, False, False),
        ({"Sec-Fetch-Site": "cross-site"}, True, False),
        ({"Sec-Fetch-Site": "none"}, True, False),
        ({"Sec-Fetch-Site": "cross-site", "Origin": f"https://{HOST}"}, True, False),
        ({"Origin": f"https://{HOST}"}, True, True),
        ({"Origin": f"https://{HOST}"}, False, True),  # a proxy that ends TLS without saying so
        ({"Origin": f"http://{HOST}"}, False, True),
        ({"Origin": f"http://{HOST}"}, True, False),  # whoever is in the middle can write that page
        ({"Origin": f"https://{HOST.upper()}"}, True, True),
        ({"Origin": "https://muster.example"}, True, False),
        ({"Origin": "https://muster.example:8443.evil.example"}, True, False),
        ({"Origin": "https://evil.example"}, True, False),
        ({"Origin": "null"}, True, False),
        ({"Origin": ""}, True, False),
        ({"Origin": "https://["}, True, False),
    ],
)
def test_from_where_a_request_comes(headers, is_encrypted, expected):
    """Only a browser says so; nothing else counts as muster's own page."""
    assert is_same_origin(headers, HOST, is_encrypted=is_encrypted) is expected
