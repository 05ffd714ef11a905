"""What `lab run` does for one machine, in order, with a client of labgrid's that only notes what is asked of it."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import types

import pytest
from labgrid.strategy import StrategyError

LAB = pathlib.Path(__file__).parent.parent
sys.path.insert(0, str(LAB))
import lab_place  # noqa: E402
import lab_run  # noqa: E402
from lab_place import Client, Reserved, token_of  # noqa: E402
from lab_signals import Interrupts, within  # noqa: E402

RESERVE = ("reserve", "--shell", "name=a")
WAIT = ("wait", "TOKEN")
ACQUIRE = ("-p", "+", "acquire")
RELEASE = ("-p", "a", "release")
CANCEL = ("cancel-reservation", "TOKEN")
OFF = ("off",)


@pytest.fixture(autouse=True)
def own_signals(monkeypatch):
    """A test's handlers and variables are not those of the next one."""
    monkeypatch.setenv("LG_TOKEN", "")
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


class Fake:
    """Notes each call. `does`: what happens in one of them, an error to raise or something to call."""

    def __init__(self, does=None):
        self.asked, self.does = [], does or {}

    def __call__(self, *arguments, **_named):
        self.asked.append(arguments)
        what = self.does.get(arguments)
        if isinstance(what, Exception):
            raise what
        if what is not None:
            what()
        return "export LG_TOKEN=TOKEN\n" if arguments == RESERVE else ""


def interrupt():
    signal.raise_signal(signal.SIGINT)


LATE = subprocess.TimeoutExpired("labgrid-client", 1)
REFUSED = StrategyError("labgrid-client acquire: it is somebody's")


class Strategy:
    """In place of the environment's."""

    load_timeout, timeout = 5.0, 5.0

    def __init__(self, fake):
        self.fake = fake

    def transition(self, status):
        self.fake(status)


def run(fake, monkeypatch, capsys, place="a"):
    """`lab run` on a place; returns its complaint."""
    monkeypatch.setattr(lab_run, "Client", lambda _coordinator: fake)
    target = types.SimpleNamespace(cleanup=lambda: None)
    monkeypatch.setattr(lab_run, "machine", lambda _arguments: (target, Strategy(fake)))
    lab_run.run(types.SimpleNamespace(place=place, coordinator="x:1", wait=3))
    return json.loads(capsys.readouterr().out.splitlines()[-1])["complaint"]


BOOT = [("loaded",), ("running",), ("ended",), OFF]
GOT = [RESERVE, WAIT, ACQUIRE]
GIVEN_BACK = [RELEASE, CANCEL]


@pytest.mark.parametrize(
    "does, asked, complaint",
    [
        ({}, GOT + BOOT + GIVEN_BACK, None),
        # Nothing was got hold of.
        ({WAIT: LATE}, [RESERVE, WAIT, CANCEL], "not free within 3 s"),
        ({WAIT: interrupt}, [RESERVE, WAIT, CANCEL], "interrupted"),
        # It may have been; giving it back may fail.
        ({ACQUIRE: LATE}, GOT + GIVEN_BACK, "not acquired within 60 s"),
        ({ACQUIRE: LATE, RELEASE: REFUSED}, GOT + GIVEN_BACK, "not acquired within 60 s"),
        # The place may be another session's.
        ({ACQUIRE: REFUSED}, GOT + [CANCEL], "labgrid-client acquire: it is somebody's"),
        ({ACQUIRE: REFUSED, CANCEL: LATE}, GOT + [CANCEL], "labgrid-client acquire: it is somebody's"),
        # SIGINT waits until it is known what is to be given back.
        ({RESERVE: interrupt}, [RESERVE, CANCEL], "interrupted"),
        ({ACQUIRE: interrupt}, GOT + GIVEN_BACK, "interrupted"),
        ({("loaded",): interrupt}, GOT + BOOT[:1] + [OFF] + GIVEN_BACK, "interrupted"),
        ({("ended",): interrupt}, GOT + BOOT + GIVEN_BACK, "interrupted"),
        ({("ended",): interrupt, OFF: interrupt, RELEASE: interrupt}, GOT + BOOT + GIVEN_BACK, "interrupted"),
        # The report is whole by then.
        ({OFF: interrupt}, GOT + BOOT + GIVEN_BACK, None),
        ({RELEASE: interrupt}, GOT + BOOT + GIVEN_BACK, None),
        ({CANCEL: interrupt}, GOT + BOOT + GIVEN_BACK, None),
        # What goes wrong at the end is told, and the rest is given back.
        ({OFF: StrategyError("no switch")}, GOT + BOOT + GIVEN_BACK, "no switch"),
        ({RELEASE: REFUSED}, GOT + BOOT + GIVEN_BACK, REFUSED.msg),
        (
            {("ended",): StrategyError("silent"), OFF: StrategyError("no switch")},
            GOT + BOOT + GIVEN_BACK,
            "silent; and it is not switched off: no switch",
        ),
    ],
)
def test_what_was_got_hold_of_is_given_back_and_nothing_else(does, asked, complaint, monkeypatch, capsys):
    fake = Fake(does)
    assert run(fake, monkeypatch, capsys) == complaint
    assert fake.asked == asked


def sleeps():
    time.sleep(60)


@pytest.mark.parametrize(
    "slow, text",
    [
        ("loaded", "loading the job took longer than 0.2 s"),
        ("running", "switching it on took longer than 0.3 s"),
        ("off", "switching it off took longer than 0.2 s"),
    ],
)
def test_what_has_no_limit_of_its_own_has_one(slow, text, monkeypatch, capsys):
    monkeypatch.setattr(Strategy, "load_timeout", 0.2)
    monkeypatch.setattr(Strategy, "timeout", 0.3)
    fake = Fake({(slow,): sleeps})
    assert run(fake, monkeypatch, capsys) == text
    assert fake.asked[-3:] == [OFF, *GIVEN_BACK]


def test_a_limit_that_a_driver_catches_is_told_again(monkeypatch):
    monkeypatch.setattr("lab_signals.AGAIN", 0.1)
    with pytest.raises(StrategyError, match="it took longer than 0.1 s"):
        with within(0.1, "it"):
            try:
                sleeps()
            except StrategyError:
                sleeps()
    with within(0, "it"):
        time.sleep(0.2)


def test_sigint_between_two_steps_waits_for_the_next_one():
    interrupts = Interrupts()
    interrupt()
    with pytest.raises(KeyboardInterrupt):
        with interrupts.taken():
            pytest.fail("it goes on")


def test_a_second_sigint_does_not_disturb_what_the_first_one_makes_clean_up():
    interrupts, cleaned = Interrupts(), []
    with pytest.raises(KeyboardInterrupt):
        with interrupts.taken():
            try:
                interrupt()
            finally:
                interrupt()
                cleaned.append("all")
    interrupt()
    assert cleaned == ["all"]


def client(program, monkeypatch):
    made = Client("x:1")
    monkeypatch.setattr(made, "command", [sys.executable, "-c", program])
    return made


def test_the_client_sees_nothing_of_the_users_own_places(monkeypatch):
    for name in lab_place.FOREIGN:
        monkeypatch.setenv(name, "mine")
    monkeypatch.setenv("LG_TOKEN", "TOKEN")
    said = client("import json, os; print(json.dumps(dict(os.environ)))", monkeypatch)("wait")
    seen = json.loads(said)
    assert seen["LG_TOKEN"] == "TOKEN" and seen["PATH"] == os.environ["PATH"]
    assert not set(lab_place.FOREIGN) & set(seen)


def test_a_token_is_what_is_named_so_whatever_else_is_said(monkeypatch):
    warns = "import sys; sys.stderr.write('a=b\\n'); print('note: x=y'); print('export LG_TOKEN=T0K\\nmore=')"
    said = client(warns, monkeypatch)("reserve")
    assert "a=b" not in said
    assert token_of(said) == "T0K"
    with pytest.raises(StrategyError) as error:
        token_of("none\n")
    assert error.value.msg == "labgrid-client reserve names no reservation: 'none'"


@pytest.mark.parametrize(
    "program, reason",
    [
        ("import sys; sys.stderr.write('why\\n'); print('what'); sys.exit(1)", "why"),
        ("import sys; print('what'); sys.exit(1)", "what"),
        ("import sys; sys.exit(3)", "3"),
    ],
)
def test_a_refusal_has_its_reason(program, reason, monkeypatch):
    with pytest.raises(StrategyError) as error:
        client(program, monkeypatch)("acquire")
    assert error.value.msg == f"labgrid-client acquire: {reason}"


def test_a_place_is_released_also_if_what_was_done_with_it_fails():
    fake = Fake()
    with pytest.raises(KeyError):
        with Reserved(fake, "a", 3, Interrupts()):
            raise KeyError
    assert fake.asked == GOT + GIVEN_BACK
