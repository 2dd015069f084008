"""How long ago something was, in a few characters."""

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))


def duration_text(seconds: float) -> str:
    """The same for how long something took, with tenths of a second below 10 s: `0.4 s`, `12 s`, `90 s`."""
    return f"{max(0.0, seconds):.1f} s" if seconds < 10 else age_text(seconds)


def age_text(seconds: float) -> str:
    """`45 s`, `90 s`, `12 min`, `3 h`, `12 d`: at least two of a unit, as that is more precise than one of the next."""
    for length, unit in _UNITS:
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"
