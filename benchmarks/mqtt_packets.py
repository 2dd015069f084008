"""Packets of MQTT 3.1.1, for programs that send faster than a client library can, or what no library sends."""

CONNECT, PUBLISH, SUBSCRIBE = 0x10, 0x30, 0x82
QOS_1, RETAINED = 0x02, 0x01

CONNECTED = b"\x20\x02\x00\x00"
"""The broker's answer to a CONNECT that it accepts."""

_LOGIN = 0xC2
"""The flags of a CONNECT with a user name, a password and a clean session."""


def header(kind: int, length: int) -> bytes:
    """The first bytes of a packet: its kind, and the length of the rest in digits of seven bits."""
    digits: list[int] = []
    while length or not digits:
        length, digit = divmod(length, 128)
        digits.append(digit | (0x80 if length else 0))
    return bytes([kind, *digits])


def packet(kind: int, body: bytes) -> bytes:
    """A whole packet."""
    return header(kind, len(body)) + body


def text(value: str) -> bytes:
    """A text as MQTT writes it: its length in two bytes, then UTF-8."""
    encoded = value.encode()
    return len(encoded).to_bytes(2) + encoded


def connect(client: str, account: str, password: str, *, keepalive_s: int = 0) -> bytes:
    """A CONNECT with a clean session; a keep-alive of 0 means that the client may stay silent."""
    flags = bytes([4, _LOGIN]) + keepalive_s.to_bytes(2)
    return packet(CONNECT, text("MQTT") + flags + text(client) + text(account) + text(password))
