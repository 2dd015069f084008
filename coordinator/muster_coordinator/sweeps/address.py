"""The addresses that members of a group report for themselves."""

import ipaddress


def is_own_host(address: str | None) -> bool:
    """Whether every host reaches itself at this address: 127.0.0.1, ::1, 0.0.0.0, localhost or none."""
    if not address or address.lower() == "localhost":
        return True
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    return parsed.is_loopback or parsed.is_unspecified
