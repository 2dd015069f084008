"""Sessions of people who have logged in with a browser. They are kept in memory: a restart ends them.

The id of a session is the secret in its cookie. Only a digest of it is kept, so looking one up takes no time that tells
anything about another.
"""

import hashlib
import secrets
from dataclasses import dataclass
from enum import IntEnum

COOKIE = "muster_session"
"""The name of the cookie."""

LASTS_S = 12 * 3600.0
"""How long a session lasts: a working day."""

MOST_SESSIONS = 1_000
"""Maximum number of sessions with the same right. One more ends the oldest of these, so readers end no operator's."""


class Right(IntEnum):
    """What a request may do. Each right includes the ones before it."""

    PROBE = 0
    READ = 1
    REPORT = 2
    CHANGE = 3


@dataclass(slots=True)
class Session:
    """What its requests may do until `expires_at`; `name` is who has logged in, if they said so.

    A session that was ended expires at 0. Requests that still run, such as streams of events, look at it again.
    """

    right: Right
    name: str | None
    expires_at: float


class Sessions:
    """The open sessions. All last equally long, so the oldest expires first."""

    def __init__(self) -> None:
        self._sessions: dict[bytes, Session] = {}  # by the digest of the id, the oldest first

    def __len__(self) -> int:
        return len(self._sessions)

    def open(self, right: Right, name: str | None, now: float) -> tuple[str, Session]:
        """A new session and its id."""
        for digest, session in [*self._sessions.items()]:
            if session.expires_at <= now:
                self._end(digest)
        alike = [digest for digest, session in self._sessions.items() if session.right is right]
        if len(alike) >= MOST_SESSIONS:
            self._end(alike[0])
        made, session = secrets.token_urlsafe(32), Session(right, name, now + LASTS_S)
        self._sessions[_digest(made)] = session
        return made, session

    def find(self, id: str, now: float) -> Session | None:
        """The session with this id; None if there is none or it has expired."""
        session = self._sessions.get(_digest(id))
        return session if session is not None and session.expires_at > now else None

    def close(self, id: str) -> None:
        """Ends a session, if there is one with this id."""
        self._end(_digest(id))

    def _end(self, digest: bytes) -> None:
        if (session := self._sessions.pop(digest, None)) is not None:
            session.expires_at = 0.0


def _digest(id: str) -> bytes:
    return hashlib.sha256(id.encode(errors="surrogateescape")).digest()
