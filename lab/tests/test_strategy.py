"""The strategy, with drivers that only note what is asked of them."""

import os
import pathlib
import subprocess
import sys

import attr
import pytest
from labgrid import Environment, Target
from labgrid.config import Config
from labgrid.driver import Driver
from labgrid.factory import target_factory
from labgrid.protocol import ConsoleProtocol, PowerProtocol
from labgrid.strategy import StrategyError
from pexpect import TIMEOUT

LAB = pathlib.Path(__file__).parent.parent
sys.path.insert(0, str(LAB))
from barecount_lab import BarecountStrategy, Status  # noqa: E402

START = b'\r\n{"seq":0,"type":"start"}\r\n'
END = b'{"seq":1,"type":"end","outcome":"pass"}\r\n'
# What was asked, in order.
asked = []


def noting(name):
    def method(self, *arguments, **_named):
        asked.append((name, *arguments))

    return method


@attr.s(eq=False)
class Power(Driver, PowerProtocol):
    on = noting("power on")
    off = noting("power off")
    cycle = noting("power cycle")


@attr.s(eq=False)
class Process(Driver, PowerProtocol):
    """As labgrid's driver of QEMU: a process, which is told to quit by a pipe."""

    runs = attr.ib(default="pass")

    def on_activate(self):
        self.status, self._child = 0, None

    def on_deactivate(self):
        if self.status:
            self.off()

    def on(self):
        self._child, self.status = subprocess.Popen([sys.executable, "-c", self.runs]), 1

    def off(self):
        if self.status:
            raise BrokenPipeError("nobody reads")

    def cycle(self):
        self.off()
        self.on()


@attr.s(eq=False)
class Console(Driver, ConsoleProtocol):
    """Gives out `says`: bytes, an error to raise, or None for silence."""

    says = attr.ib(factory=list)

    def on_activate(self):
        asked.append(("console open",))
        self.left = list(self.says)

    def read(self, size=1, timeout=0.0, max_size=None):
        now = self.left.pop(0) if self.left else None
        if now is None:
            raise TIMEOUT("silence")
        if isinstance(now, Exception):
            raise now
        return now

    def write(self, data):
        raise NotImplementedError


class USBSDMuxDriver(Driver):
    set_mode = noting("mux")


class LXAUSBMuxDriver(Driver):
    set_links = noting("links")


class USBStorageDriver(Driver):
    write_image = noting("write image")


class TFTPProviderDriver(Driver):
    stage = noting("stage")


for fake in (USBSDMuxDriver, LXAUSBMuxDriver, USBStorageDriver, TFTPProviderDriver):
    # Bindings go by class: the factory's own are replaced for these tests.
    target_factory.all_classes[fake.__name__] = fake


def machine(says, *drivers, env=None, power=Power, **options):
    asked.clear()
    target = Target("main", env=env)
    power(target, "power")
    Console(target, "console", says=says)
    for driver in drivers:
        driver(target, driver.__name__)
    return BarecountStrategy(target, "strategy", **options)


def test_the_stick_is_written_while_the_machine_is_off_and_the_console_open_before_it_is_on():
    strategy = machine([START + END], USBSDMuxDriver, USBStorageDriver)
    strategy.transition("ended")
    assert asked == [
        ("power off",),
        ("mux", "host"),
        ("write image",),
        ("mux", "dut"),
        ("console open",),
        ("power cycle",),
    ]
    assert strategy.report == START + END
    assert strategy.status == Status.ended
    strategy.transition("off")
    assert asked[-1] == ("power off",)


def test_a_usb_mux_is_told_its_links():
    strategy = machine([END], LXAUSBMuxDriver, USBStorageDriver)
    strategy.transition("loaded")
    assert [one for one in asked if one[0] == "links"] == [("links", ["host-device"]), ("links", ["dut-device"])]


def test_a_boot_server_is_given_every_file(tmp_path):
    for name in ("a.efi", "b.ipxe"):
        (tmp_path / name).write_text("")
    env = tmp_path / "env.yaml"
    env.write_text("images:\n  efi: a.efi\n  ipxe: b.ipxe\n")
    strategy = machine([END], TFTPProviderDriver, env=Environment(str(env)), netboot=["efi", "ipxe"])
    strategy.transition("loaded")
    staged = [os.path.basename(one[1]) for one in asked if one[0] == "stage"]
    assert staged == ["a.efi", "b.ipxe"]


def test_the_end_record_may_come_in_pieces_and_what_follows_it_is_kept(tmp_path):
    log = tmp_path / "serial.log"
    pieces = [START, b"# " + END[:20], None, END[20:], b"ok 1 - the run\r\n"]
    strategy = machine(pieces, log=str(log))
    strategy.transition("ended")
    assert log.read_bytes() == START + b"# " + END + b"ok 1 - the run\r\n" == strategy.report


@pytest.mark.parametrize("end", [b"", OSError("gone")])
def test_a_line_that_is_closed_right_behind_the_end_record_has_a_whole_report(end):
    strategy = machine([START, END, end])
    strategy.transition("ended")
    assert strategy.report == START + END
    # Two reads make one: the end record is in the first one.
    strategy = machine([START + END, end])
    strategy.transition("ended")
    assert strategy.report == START + END


@pytest.mark.parametrize(
    "says, options, reason",
    [
        ([START], {"timeout": 0.2}, "no end record within 0.2 s"),
        ([START], {"silence": 0.1}, "silent for 0.1 s"),
        ([START, OSError("gone")], {}, "the serial line was lost: gone"),
        ([START, b""], {}, "the serial line was lost: its other end was closed"),
    ],
)
def test_what_goes_wrong_is_told_and_what_came_is_kept(says, options, reason, tmp_path):
    log = tmp_path / "serial.log"
    strategy = machine(says, log=str(log), **options)
    with pytest.raises(StrategyError) as error:
        strategy.transition("ended")
    assert error.value.msg == reason
    assert log.read_bytes() == START
    # The machine can be switched off, and begun again.
    strategy.transition("off")
    strategy.target.get_driver("ConsoleProtocol", activate=False).says = [END]
    strategy.transition("ended")
    assert strategy.report == END


def test_a_machine_that_says_nothing_at_all_has_until_its_time_is_over():
    strategy = machine([], timeout=0.3, silence=0.1)
    with pytest.raises(StrategyError, match="no end record"):
        strategy.transition("ended")


def test_a_process_that_has_ended_by_itself_is_a_machine_that_is_off():
    strategy = machine([START + END], power=Process)
    strategy.transition("ended")
    strategy.transition("off")
    assert strategy.status == Status.off
    assert (strategy.power._child, strategy.power.status) == (None, 0)
    # It is not told to quit once more, and runs again.
    strategy.target.deactivate(strategy.power)
    strategy.transition("ended")
    strategy.transition("off")


def test_a_machine_that_cannot_be_switched_off_is_an_error(monkeypatch):
    monkeypatch.setattr("barecount_lab.ENDING_SECONDS", 0.2)
    strategy = machine([START + END], power=Process)
    strategy.target.get_driver("PowerProtocol", activate=False).runs = "import time; time.sleep(60)"
    strategy.transition("ended")
    with pytest.raises(BrokenPipeError):
        strategy.transition("off")
    assert strategy.status == Status.ended
    strategy.power._child.kill()
    strategy.transition("off")


def test_a_power_switch_that_fails_is_an_error():
    strategy = machine([START + END])
    strategy.transition("ended")

    def fails():
        raise OSError("no switch")

    strategy.power.off = fails
    with pytest.raises(OSError, match="no switch"):
        strategy.transition("off")


@pytest.mark.parametrize("name", ["qemu", "stick", "pxe"])
def test_each_environment_is_read_with_its_variables(name, monkeypatch):
    text = (LAB / f"{name}.yaml").read_text()
    for variable in ("IMAGE", "NETWORK", "DIR", "QEMU", "CPU", "MEMORY", "BOOT_ARGS", "ARGS"):
        monkeypatch.setenv(f"LG_BARECOUNT_{variable}", f"/{variable.lower()}")
    config = Config(str(LAB / f"{name}.yaml"))
    drivers = config.get_targets()["main"]["drivers"]
    assert "BarecountStrategy" in drivers
    # Each of its values is one that the strategy has.
    assert set(drivers["BarecountStrategy"]) <= {one.name for one in attr.fields(BarecountStrategy)}
    for image in config.get_images():
        assert config.get_image_path(image).startswith("/")
    assert "$" not in str(drivers), text
