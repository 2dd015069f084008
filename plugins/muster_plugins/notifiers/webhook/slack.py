"""The message of an incoming webhook of Slack."""

from muster.model import Action, Json
from muster_plugins.notifiers.webhook.notice import Notice, cut

_MOST_CHARACTERS = 500
"""Of a text. Slack takes 3,000 in a block, and each character may become five where it is escaped."""


def slack_message(notice: Notice) -> Json:
    """A section with the headline, below it the circumstances, and the headline once more for notifications."""
    headline = _escaped(cut(notice.headline, _MOST_CHARACTERS))
    return {
        "text": headline,
        "blocks": [
            {"type": "section", "text": {"type": "mrkdwn", "text": headline}},
            {"type": "context", "elements": [{"type": "mrkdwn", "text": _circumstances(notice)}]},
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
    text = _escaped(cut(" · ".join(parts), _MOST_CHARACTERS))
    return text if notice.link is None else f"{text} · <{notice.link}|story>"


def _escaped(text: str) -> str:
    """Takes its meaning from what Slack would otherwise read as a link or a mention of everybody."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
