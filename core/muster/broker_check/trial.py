"""Tries a broker: first whether the account gets in at all, then each need."""

from collections.abc import AsyncIterator, Awaitable

import aiomqtt

from muster.broker_check.access import RIGHTS
from muster.broker_check.behaviour import NEEDS
from muster.broker_check.connection import Account, BrokerAnswer
from muster.doctor.setup_finding import SetupFinding
from muster.model import Verdict
from muster.mqtt import why_not_connected

NOT_TRIED = BrokerAnswer(
    Verdict.SKIPPED, "not tried: give the account of a node, --node with --node-password-file or --node-cert"
)


async def tried(coordinator: Account, node: Account | None, name: str) -> AsyncIterator[SetupFinding]:
    """The outcomes, as they are known. `node` is the account of the node `name`; None: its rights are not tried."""
    for account, whose in ((coordinator, "the coordinator"), (node, name)):
        if account is None:
            continue
        answer = await connected(account, whose)
        yield SetupFinding("connection", *answer)
        if answer.verdict is not Verdict.PASS:
            return
    for check, need in NEEDS.items():
        yield SetupFinding(check, *await _answer(need(coordinator)))
    for check, right in RIGHTS.items():
        yield SetupFinding(check, *(NOT_TRIED if node is None else await _answer(right(coordinator, node, name))))


async def connected(account: Account, whose: str) -> BrokerAnswer:
    """The account of `whose` gets in; otherwise the broker's reason, or that there is no broker."""
    try:
        async with account.client():
            return BrokerAnswer(Verdict.PASS, f"the account of {whose} gets in")
    except aiomqtt.MqttError as error:
        why = await why_not_connected(error, account.broker, account.url)
        if why == str(error) and not isinstance(error, aiomqtt.MqttCodeError):
            return BrokerAnswer(Verdict.FAIL, f"no broker answers at {account.url}: {why}; start it, or set broker.url")
        return BrokerAnswer(Verdict.FAIL, f"the account of {whose} does not get in: {why}")


async def _answer(trial: Awaitable[BrokerAnswer]) -> BrokerAnswer:
    try:
        return await trial
    except (aiomqtt.MqttError, OSError, TimeoutError) as error:
        text = f"the connection was lost: {error}. Is another client, such as the coordinator, using this account?"
        return BrokerAnswer(Verdict.FAIL, text)
