"""Numbers with their nouns, in all texts for people."""


def count(number: int, what: str) -> str:
    """A number with its noun, such as `1 node` or `3 nodes`."""
    return f"{number} {what}{'' if number == 1 else 's'}"
