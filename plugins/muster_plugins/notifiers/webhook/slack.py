"""The message of an incoming webhook of Slack."""

from muster.model import Action, Json
from muster_plugins.notifiers.webhook.notice import AlarmNotice, Notice, cut

_MOST_CHARACTERS = 500
"""Maximum length of a text. Slack takes 3,000 in a block, and escaping may make five of one character."""


def slack_message(notice: Notice) -> Json:
    """The transition: the headline, and the circumstances below it."""
    return _message(notice.headline, _circumstances(notice), notice.link, "why")


def slack_alarm(notice: AlarmNotice) -> Json:
    """The alarm: its text, and its subject below it."""
    alarm = notice.alarm
    circumstances = f"fleet {notice.fleet} · {alarm.kind} · {alarm.subject}{' · over' if alarm.is_over else ''}"
    return _message(notice.headline, circumstances, notice.link, "alarms")


def _message(headline: str, circumstances: str, link: str | None, link_text: str) -> Json:
    """A section with the headline, the circumstances below it, and the headline again for notifications."""
    headline = _escaped(cut(headline, _MOST_CHARACTERS))
    below = _escaped(cut(circumstances, _MOST_CHARACTERS))
    if link is not None:
        below = f"{below} · <{link}|{link_text}>"
    return {
        "text": headline,
        "blocks": [
            {"type": "section", "text": {"type": "mrkdwn", "text": headline}},
            {"type": "context", "elements": [{"type": "mrkdwn", "text": below}]},
        ],
    }


def _circumstances(notice: Notice) -> str:
    transition = notice.transition
    before, after = transition.before, transition.after
    parts = [f"fleet {notice.fleet}", f"stays {after}" if before is after else f"{before} → {after}", *transition.codes]
    if transition.action is not Action.NONE:
        parts.append(transition.action)
    if transition.by is not None:
        parts.append(f"by {transition.by}")
    return " · ".join(parts)


def _escaped(text: str) -> str:
    """Escapes what Slack would read as a link or as a mention of everybody."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
