"""How a call fails."""

from __future__ import annotations

from typing import Any, Dict, Optional


class StentorError(Exception):
    """The base of all errors of this package."""


class ConnectionFailed(StentorError):
    """There was no answer. Whether the server did what was asked is not known, unless `was_sent` is false."""

    def __init__(self, message: str, *, was_sent: bool) -> None:
        super().__init__(message)
        self.was_sent = was_sent
        """False when the connection was never made."""


class Problem(StentorError):
    """A refusal by the server (RFC 9457)."""

    def __init__(self, status: int, body: Dict[str, Any], retry_after_seconds: Optional[float]) -> None:
        def text(name: str) -> Optional[str]:
            value = body.get(name)
            return value if isinstance(value, str) else None

        self.status = status
        """Status of HTTP."""
        self.code = text("code") or "unknown"
        """Stable word for programs (docs/errors.md); `unknown` when something else than the server answered."""
        self.detail = text("detail") or ""
        """Why, for a person."""
        self.field = text("field")
        """Path of the offending field."""
        self.hint = text("hint")
        """What to do about it."""
        self.request_id = text("request_id")
        """The request, as in the server's log."""
        self.retry_after_seconds = retry_after_seconds
        """How long to wait before the next try, when the server says so."""
        place = f" at {self.field}" if self.field else ""
        hint = f" ({self.hint})" if self.hint else ""
        super().__init__(f"{self.code}{place}: {self.detail or f'status {status}'}{hint}")
