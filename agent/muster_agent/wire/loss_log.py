"""What the agent's log says about a broker that it does not reach."""

import structlog

from muster.config import BrokerSettings
from muster.mqtt import why_not_connected

log = structlog.get_logger()


class LossLog:
    """Logs a lost connection as a warning; of the attempts that follow, only those that fail for another reason.

    A broker that restarts refuses every connection at first, and only later the certificate.
    """

    def __init__(self, broker: BrokerSettings) -> None:
        self._broker = broker
        self._error = ""

    async def lost(self, error: Exception, url: str, attempt: int) -> None:
        """Attempt number `attempt` since the loss has failed, from 0, for the broker at this URL."""
        if attempt and str(error) == self._error:
            log.debug("broker_not_connected", broker=url, error=self._error, attempt=attempt)
            return
        self._error = str(error)
        why = await why_not_connected(error, self._broker, url)
        log.warning("broker_not_connected", broker=url, error=why, attempt=attempt)
