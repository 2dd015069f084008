"""What a metadata server answered."""

from collections.abc import Sequence

Answers = Sequence[str | None]
"""The texts in the order of the requests; None for a request to which the server gave no text."""
