"""Signals of `lab_run.py`: SIGINT, and the limits of what labgrid does without one."""

import contextlib
import signal

from labgrid.strategy import StrategyError

# Seconds after which a limit is told again: what it raises may be caught on its way.
AGAIN = 5.0


class Interrupts:
    """SIGINT ends what waits, and nothing else: between two steps that belong together it is only noted.

    So no place stays acquired, and no machine on, because it came between getting hold of something and what gives it back.
    """

    def __init__(self):
        self.noted = self.open = False
        signal.signal(signal.SIGINT, self._came)

    def _came(self, *_signal):
        self.noted = True
        if self.open:
            # Once: what is cleaned up then is not disturbed.
            self.open = False
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def taken(self):
        """What is done in this ends by SIGINT, also by one that was noted before."""
        self.open = True
        try:
            if self.noted:
                raise KeyboardInterrupt
            yield
        finally:
            self.open = False


@contextlib.contextmanager
def within(seconds, what):
    """Ends what takes longer, as drivers wait without a limit for connections and processes; 0: there is none."""

    def late(*_signal):
        raise StrategyError(f"{what} took longer than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
