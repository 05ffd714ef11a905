"""A strategy of labgrid's that boots barecount on a machine and collects what it says on its serial line.

An environment names this file in its `imports`, and `BarecountStrategy` among its drivers. What the machine has decides how the
job gets there: a driver for the switch of a USB stick and one that writes the stick, a TFTP or HTTP provider, or neither (QEMU).
"""

import enum
import re
import subprocess

import attr
from labgrid.factory import target_factory
from labgrid.step import step
from labgrid.strategy import Strategy, StrategyError
from labgrid.util import Timeout
from pexpect import EOF, TIMEOUT

# The last record of a report (docs/guide/report.md). With KTAP, one line follows it.
END = re.compile(rb'\{"seq":\d+,"type":"end"[^\n]*\n')
# Most bytes of one read, and seconds to wait for the first.
READ_BYTES = 4096
READ_SECONDS = 0.1
# What is still on its way behind the end record comes within this time.
LAST_SECONDS = 0.3
# A process of which only the pipes are closed yet has ended within this time.
ENDING_SECONDS = 1.0


class Status(enum.Enum):
    """How far the machine is."""

    unknown = 0
    off = 1
    loaded = 2
    running = 3
    ended = 4


@target_factory.reg_driver
@attr.s(eq=False)
class BarecountStrategy(Strategy):
    """Boots the job and waits for the end of its report.

    Args:
        netboot (list): keys of the environment's images that the provider gives out
        timeout (float): seconds from power on to the end record
        silence (float): seconds without a byte after which the machine counts as hung, once the first byte came;
            0: only `timeout` counts
        load_timeout (float): seconds that `cargo xtask lab run` gives to what comes before power on, and to switching off;
            0: no limit
        log (str): file that every byte of the serial line is added to, as it comes
    """

    bindings = {
        "power": "PowerProtocol",
        "console": "ConsoleProtocol",
        "mux": {"USBSDMuxDriver", "USBSDWireDriver", "LXAUSBMuxDriver", None},
        "storage": {"USBStorageDriver", None},
        "provider": {"TFTPProviderDriver", "HTTPProviderDriver", None},
    }

    netboot = attr.ib(default=attr.Factory(list), validator=attr.validators.instance_of(list))
    timeout = attr.ib(default=600.0, converter=float)
    silence = attr.ib(default=0.0, converter=float)
    load_timeout = attr.ib(default=600.0, converter=float)
    log = attr.ib(default=None, validator=attr.validators.optional(attr.validators.instance_of(str)))

    def __attrs_post_init__(self):
        super().__attrs_post_init__()
        self.status = Status.unknown
        self.report = b""

    @step(args=["status"])
    def transition(self, status, *, step):
        """Brings the machine to `status`, through all that comes before it."""
        if not isinstance(status, Status):
            status = Status[status]
        if status == self.status:
            step.skip("nothing to do")
            return
        if status == Status.unknown:
            raise StrategyError(f"cannot go to {status}")
        if status == Status.off:
            self._off()
        elif status == Status.loaded:
            self.transition(Status.off)
            self._load()
        elif status == Status.running:
            self.transition(Status.loaded)
            self._boot()
        elif status == Status.ended:
            # A report that is over does not come again.
            if self.status != Status.running:
                self.transition(Status.running)
            self._collect()
        self.status = status

    def _off(self):
        self.target.activate(self.power)
        try:
            self.power.off()
        except Exception:  # pylint: disable=broad-except
            if not self._has_ended():
                raise
        # The console is opened anew for each boot: the next report begins with its first byte.
        self.target.deactivate(self.console)

    def _has_ended(self):
        """Whether the machine is a process that has ended by itself: QEMU, after the job's `on-end` or a reset of its guest.

        Then it is off, which its driver does not know: the driver would tell it to quit again when it is deactivated.
        """
        child = getattr(self.power, "_child", None)
        if child is None:
            return False
        try:
            child.wait(timeout=ENDING_SECONDS)
        except subprocess.TimeoutExpired:
            return False
        self.power._child = None  # pylint: disable=protected-access
        self.power.status = 0
        return True

    def _load(self):
        if self.provider is not None:
            self.target.activate(self.provider)
            for image in self.netboot:
                self.provider.stage(self.target.env.config.get_image_path(image))
        if self.storage is not None:
            self._switch(to_host=True)
            self.target.activate(self.storage)
            self.storage.write_image()
            self.target.deactivate(self.storage)
            self._switch(to_host=False)

    def _switch(self, to_host):
        """Connects the stick with the lab's host, or with the machine. Without a switch it is connected with both."""
        if self.mux is None:
            return
        self.target.activate(self.mux)
        if hasattr(self.mux, "set_links"):
            self.mux.set_links(["host-device" if to_host else "dut-device"])
        else:
            self.mux.set_mode("host" if to_host else "dut")

    def _boot(self):
        self.report = b""
        self.target.activate(self.console)
        self.target.activate(self.power)
        self.power.cycle()

    def _collect(self):
        whole = Timeout(self.timeout)
        quiet = None
        searched = 0
        while True:
            if whole.expired:
                raise StrategyError(f"no end record within {self.timeout:g} s")
            if quiet is not None and quiet.expired:
                raise StrategyError(f"silent for {self.silence:g} s")
            try:
                came = self._read()
            except StrategyError:
                # The machine may be off by now, and its report whole.
                if END.search(self.report, searched):
                    return
                raise
            if not came:
                continue
            if self.silence:
                quiet = Timeout(self.silence)
            # The end record may have come in pieces.
            if END.search(self.report, searched):
                break
            searched = self.report.rfind(b"\n") + 1
        rest = Timeout(LAST_SECONDS)
        while not rest.expired:
            try:
                self._read()
            except StrategyError:
                # The report is whole, and the machine may be off by now.
                return

    def _read(self):
        """Takes what is there; waits a little for the first byte. What a read has when its other end is closed would be lost, so
        none waits for more than there is."""
        if not self._take(1, READ_SECONDS):
            return False
        self._take(READ_BYTES, 0.0)
        return True

    def _take(self, size, timeout):
        try:
            read = self.console.read(size=size, timeout=timeout)
        except TIMEOUT:
            return False
        except (OSError, EOF) as error:
            raise StrategyError(f"the serial line was lost: {error}") from error
        if not read:
            raise StrategyError("the serial line was lost: its other end was closed")
        self.report += read
        if self.log:
            with open(self.log, "ab") as log:
                log.write(read)
        return True
