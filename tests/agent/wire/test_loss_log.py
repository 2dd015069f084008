"""The agent's log about a broker that it does not reach."""

from structlog.testing import capture_logs

from muster.config import BrokerSettings
from muster_agent.wire.loss_log import LossLog

URL = "mqtt://broker.example:1883"


async def test_each_reason_is_logged_once_until_the_next_loss():
    """A certificate that is refused after a restart of the broker is seen, and an outage does not fill the log."""
    losses = LossLog(BrokerSettings())
    with capture_logs() as lines:
        for attempt, reason in enumerate(["gone", "refused", "refused", "revoked", "revoked"]):
            await losses.lost(OSError(reason), URL, attempt)
        await losses.lost(OSError("revoked"), URL, 0)
    warned = [(line["error"], line["attempt"]) for line in lines if line["log_level"] == "warning"]
    assert warned == [("gone", 0), ("refused", 1), ("revoked", 3), ("revoked", 0)]
    assert len(lines) == 6
    assert {(line["event"], line["broker"]) for line in lines} == {("broker_not_connected", URL)}
