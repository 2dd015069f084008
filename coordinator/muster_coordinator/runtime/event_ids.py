"""The ids of server-sent events: `<epoch>-<number>`, so that those of an earlier coordinator are not taken for ours."""

_MOST_DIGITS = 18


def event_id(epoch: int, number: int) -> str:
    """The id of an event, or of a version."""
    return f"{epoch}-{number}"


def number_after_epoch(given: str | None, epoch: int) -> int | None:
    """The number in an id of this epoch; None for any other text."""
    ours, _, number = (given or "").partition("-")
    is_ours = ours == str(epoch) and number.isascii() and number.isdigit() and len(number) <= _MOST_DIGITS
    return int(number) if is_ours else None
