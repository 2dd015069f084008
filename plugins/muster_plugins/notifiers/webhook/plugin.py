"""The plugin `webhook`: notifies targets over HTTP when a node is drained or returns, and of alarms."""

from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import quote

from muster import Config, hookimpl
from muster.errors import Unavailable
from muster_plugins.notifiers.webhook.settings import NAME, WebhookSettings, WebhookTarget

if TYPE_CHECKING:
    from muster import ActionOutcome, Alarm, Survey, Transition
    from muster_plugins.notifiers.webhook.delivery import Delivery
    from muster_plugins.notifiers.webhook.notice import AlarmNotice, Notice


class Webhook:
    """Keeps one client from the first notice to the end of the process."""

    def __init__(self) -> None:
        self._delivery: Delivery | None = None

    @hookimpl
    def muster_configure(self, config: Config) -> None:
        config.plugin(NAME, WebhookSettings)

    @hookimpl
    async def muster_survey(self, config: Config) -> "Survey | None":
        targets = config.plugin(NAME, WebhookSettings).targets
        if not targets:
            return None
        from muster import Survey  # noqa: PLC0415 (memory that only a coordinator should spend)
        from muster_plugins.notifiers.webhook.reach import find_problems  # noqa: PLC0415 (agents need no TLS)

        if problems := await find_problems(targets):
            raise Unavailable("; ".join(problems))
        return Survey(summary=f"webhook {', '.join(targets)}", can_cordon=False)

    @hookimpl
    async def muster_transition(self, config: Config, transition: "Transition") -> "ActionOutcome | None":
        settings = config.plugin(NAME, WebhookSettings)
        targets = {name: target for name, target in settings.targets.items() if target.wants(transition)}
        if not targets:
            return None
        from muster_plugins.notifiers.webhook.notice import Notice  # noqa: PLC0415 (memory, as above)

        link = _page(settings.muster_url, f"nodes/{quote(transition.node, safe='')}")
        notice = Notice(fleet=config.settings.fleet, transition=transition, link=link)
        return await self._notify(targets, notice, is_dry=transition.dry_run)

    @hookimpl
    async def muster_alarm(self, config: Config, alarm: "Alarm") -> "ActionOutcome | None":
        settings = config.plugin(NAME, WebhookSettings)
        targets = {name: target for name, target in settings.targets.items() if target.takes_alarms}
        if not targets:
            return None
        from muster_plugins.notifiers.webhook.notice import AlarmNotice  # noqa: PLC0415 (memory, as above)

        link = _page(settings.muster_url, "quarantine#alarms")
        notice = AlarmNotice(fleet=config.settings.fleet, alarm=alarm, link=link)
        return await self._notify(targets, notice, is_dry=alarm.dry_run)

    @hookimpl
    async def muster_close(self) -> None:
        if self._delivery is not None:
            await self._delivery.close()
            self._delivery = None

    async def _notify(
        self, targets: Mapping[str, WebhookTarget], notice: "Notice | AlarmNotice", *, is_dry: bool
    ) -> "ActionOutcome":
        """The outcome of notifying the targets; in a dry run, the notices that they would get."""
        from muster import ActionOutcome, Effect  # noqa: PLC0415 (memory, as above)
        from muster_plugins.notifiers.webhook.answer import combine  # noqa: PLC0415 (memory, as above)

        if is_dry:
            receivers = ", ".join(f"{name} ({target.format})" for name, target in targets.items())
            return ActionOutcome(
                effect=Effect.WOULD, detail=f"would notify {receivers}: {notice.headline}", only_tells=True
            )
        return combine(await self._opened().notify(targets, notice))

    def _opened(self) -> "Delivery":
        if self._delivery is None:
            from muster_plugins.notifiers.webhook.delivery import Delivery  # noqa: PLC0415 (agents need no HTTP client)

            self._delivery = Delivery()
        return self._delivery


def _page(muster_url: str | None, path: str) -> str | None:
    """The URL of a page; None without a `muster_url`."""
    return None if muster_url is None else f"{muster_url.rstrip('/')}/{path}"
