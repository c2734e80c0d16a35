"""How long a device waits before it connects again."""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True)
class Backoff:
    """Waits that double from the first to the last, each up to half longer, so that devices do not come back all at once."""

    first_seconds: float = 1.0
    last_seconds: float = 300.0
    good_seconds: float = 60.0
    """After a connection that lasted this long the next wait is the first one again."""

    def wait_seconds(self, failures: int) -> float:
        """Returns the wait after so many failures in a row, of which there is at least one."""
        # The exponent is bounded, so that many failures make no number that does not fit.
        longest = min(self.last_seconds, self.first_seconds * 2.0 ** min(failures - 1, 30))
        return longest * random.uniform(1.0, 1.5)
