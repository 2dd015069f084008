"""Types of the fields with which the members of a group find each other."""

from typing import Annotated

from pydantic import Field

PortNumber = Annotated[int, Field(ge=1, le=65_535)]

Host = Annotated[
    str, Field(max_length=253, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$|^[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*(%[\w.-]+)?$")
]
"""The name or address of a host, without characters that are special to a resolver, a shell or a URL."""

GroupSecret = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
"""The secret of one group: 32 random bytes in hexadecimal form."""
