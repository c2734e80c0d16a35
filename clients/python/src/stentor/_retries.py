"""When a call is tried again, and after how long."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Optional, Union

from ._problem import ConnectionFailed, Problem

_TRY_LATER = (429, 503)
_TOO_MANY = 429


@dataclass(frozen=True)
class Retries:
    """How often and how soon a call is tried again: exponential waits with full jitter, and never before `Retry-After`."""

    attempts_max: int = 5
    """Attempts in all; 1 tries nothing again."""
    base_seconds: float = 0.2
    """The longest wait after the first attempt; it doubles with each."""
    wait_max_seconds: float = 20.0
    """The longest wait. A server that asks for more has its refusal raised at once."""

    def wait_seconds(
        self, attempts: int, failure: Union[Problem, ConnectionFailed], is_repeatable: bool
    ) -> Optional[float]:
        """Returns how long to wait after so many attempts; None when the failure is the caller's."""
        if attempts >= self.attempts_max or not _may_repeat(failure, is_repeatable):
            return None
        # The exponent is bounded, so that many attempts make no number that does not fit.
        longest = min(self.wait_max_seconds, self.base_seconds * 2.0 ** min(attempts - 1, 30))
        asked = failure.retry_after_seconds if isinstance(failure, Problem) else None
        if asked is not None and asked > self.wait_max_seconds:
            return None
        return (asked or 0.0) + random.uniform(0.0, longest)


def _may_repeat(failure: Union[Problem, ConnectionFailed], is_repeatable: bool) -> bool:
    """What may not be repeated is tried again only when the server surely did nothing."""
    if isinstance(failure, ConnectionFailed):
        return is_repeatable or not failure.was_sent
    return failure.status == _TOO_MANY or (is_repeatable and failure.status in _TRY_LATER)
