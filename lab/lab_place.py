"""A place of labgrid's coordinator: reserved, acquired, and given back."""

import os
import re
import subprocess
import sys
import traceback

from labgrid.strategy import StrategyError

# The variables in which labgrid's client finds an environment, a place or a state that nobody named on its command line.
FOREIGN = ("LG_ENV", "LG_PLACE", "PLACE", "LG_STATE", "STATE", "LG_INITIAL_STATE")
# Seconds for what labgrid's coordinator does at once.
AT_ONCE = 60


class Client:
    """labgrid's own client, by its command line."""

    def __init__(self, coordinator):
        self.command = [sys.executable, "-u", "-m", "labgrid.remote.client", "-x", coordinator]

    def __call__(self, *arguments, timeout=AT_ONCE):
        """What it says. Raises `StrategyError` if it refuses, and `subprocess.TimeoutExpired`."""
        run = subprocess.run(
            [*self.command, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            timeout=timeout,
            env={name: value for name, value in os.environ.items() if name not in FOREIGN},
            check=False,
        )
        # For labgrid's log.
        sys.stderr.write(run.stderr)
        if run.returncode != 0:
            sys.stderr.write(run.stdout)
            lines = [line for text in (run.stdout, run.stderr) for line in text.splitlines() if line.strip()]
            raise StrategyError(f"labgrid-client {arguments[0]}: {lines[-1] if lines else run.returncode}")
        return run.stdout


def token_of(said):
    """The token of a reservation, of what `reserve --shell` says."""
    found = re.search(r"LG_TOKEN=(\w+)", said)
    if found is None:
        raise StrategyError(f"labgrid-client reserve names no reservation: {said.strip()!r}")
    return found[1]


class Reserved:
    """A place that is reserved and acquired, until it is left. SIGINT ends only the wait for it."""

    def __init__(self, client, place, wait, interrupts):
        self.client, self.place, self.wait, self.interrupts = client, place, wait, interrupts
        self.token = None

    def __enter__(self):
        self.token = token_of(self.client("reserve", "--shell", f"name={self.place}"))
        os.environ["LG_TOKEN"] = self.token
        try:
            with self.interrupts.taken():
                self._wait()
            self._acquire()
        except BaseException:
            self._quietly("cancel-reservation", self.token)
            raise
        return self

    def _wait(self):
        try:
            self.client("wait", self.token, timeout=self.wait)
        except subprocess.TimeoutExpired as late:
            raise StrategyError(f"not free within {self.wait:g} s") from late

    def _acquire(self):
        """A refusal leaves the place alone: it may be that of another session of the same user."""
        try:
            self.client("-p", "+", "acquire")
        except subprocess.TimeoutExpired as late:
            # The coordinator may have heard it all the same.
            self._quietly("-p", self.place, "release")
            raise StrategyError(f"not acquired within {AT_ONCE} s") from late

    def _quietly(self, *arguments):
        """Gives something back after what went wrong, which is what is to be told."""
        try:
            self.client(*arguments)
        except (StrategyError, subprocess.TimeoutExpired):
            traceback.print_exc()

    def __exit__(self, *error):
        try:
            self.client("-p", self.place, "release")
        finally:
            self.client("cancel-reservation", self.token)
