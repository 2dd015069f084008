"""Where members say that they listen."""

import ipaddress


def is_own_host(address: str | None) -> bool:
    """Whether everybody who connects to this address reaches itself, as with 127.0.0.1, ::1, 0.0.0.0 and localhost."""
    if not address or address.lower() == "localhost":
        return True
    try:
        where = ipaddress.ip_address(address)
    except ValueError:
        return False
    return where.is_loopback or where.is_unspecified
