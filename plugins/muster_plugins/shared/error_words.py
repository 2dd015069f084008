"""Turns an error of the operating system or of a network client into words for people."""

import os
import ssl


def in_words(error: Exception) -> str:
    """The text of the operating system or of TLS, without numbers and class names, or else the error's own text."""
    cause = error.__cause__ if isinstance(error.__cause__, OSError) else error
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {cause.verify_message}"
    if isinstance(cause, ssl.SSLError):
        return str(cause.strerror or cause)
    if not isinstance(cause, OSError) or not cause.strerror:
        return str(error)
    number = cause.errno or 0
    said = os.strerror(number) if number > 0 else cause.strerror  # negative numbers are the resolver's
    return f"{cause.filename}: {said}" if cause.filename else said
