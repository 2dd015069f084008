"""A report is sent again while the coordinator is away, and not when it is refused."""

import pytest
from tests.coordinator.web.acceptances import acceptance

from muster.client import Client
from muster.errors import Refused, Unavailable
from muster_agent.acceptance.retries import PAUSES_S
from muster_agent.acceptance.sending import send


class Coordinator(Client):
    """Answers with these, one after the other."""

    def __init__(self, *answers):
        super().__init__("http://127.0.0.1:8787/gpus/")
        self.answers = [*answers]

    def post(self, *path, body):
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


AWAY, TAKEN = Unavailable("nobody answers"), {"id": "ab12"}


@pytest.mark.parametrize("times", range(len(PAUSES_S) + 1))
def test_it_is_sent_again_after_pauses(times):
    """Each no longer than it may be; the address that comes back is that of its page."""
    pauses: list[float] = []
    assert send(Coordinator(*[AWAY] * times, TAKEN), acceptance("n1"), pauses.append).endswith("/gpus/acceptance/ab12")
    assert len(pauses) == times
    assert all(0 <= pause <= longest for pause, longest in zip(pauses, PAUSES_S, strict=False))


def test_the_last_attempt_says_why():
    """After as many pauses as there are."""
    pauses: list[float] = []
    with pytest.raises(Unavailable, match="nobody answers"):
        send(Coordinator(*[AWAY] * 4), acceptance("n1"), pauses.append)
    assert len(pauses) == len(PAUSES_S)


def test_a_refused_report_is_not_sent_again():
    """It would be refused again."""
    pauses: list[float] = []
    with pytest.raises(Refused, match="wrong verdict"):
        send(Coordinator(Refused("wrong verdict"), TAKEN), acceptance("n1"), pauses.append)
    assert not pauses


def test_an_answer_of_another_service_is_said():
    """Something else listens there."""
    with pytest.raises(Unavailable, match="no muster coordinator of this version"):
        send(Coordinator(*[{"ok": True}] * 4), acceptance("n1"), lambda _: None)
