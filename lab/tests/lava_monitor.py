"""LAVA's own monitor on a saved log: `lava_monitor.py JOB LOG` prints its test cases, one JSON object a line.

The job is first held against LAVA's schema of jobs. Nothing of LAVA is replaced but the connection, which is the log.
"""

import contextlib
import json
import sys

import pexpect
import yaml
from lava_common.schemas import extra_checks, validate
from lava_dispatcher.actions.test.monitor import TestMonitor, TestMonitorAction


class Log:
    """What a monitor asks of a connection."""

    def __init__(self, path):
        self.raw_connection = pexpect.spawn("cat", [path], encoding="utf-8", codec_errors="replace", timeout=20)
        self.prompt_str = ""
        self.timeout = None

    def wait(self):
        self.raw_connection.expect(self.prompt_str)

    @contextlib.contextmanager
    def test_connection(self):
        yield self.raw_connection


class Results:
    """In place of LAVA's logger: the results alone."""

    def results(self, results, *_arguments, **_named):
        print(json.dumps(results))

    def error(self, text, *arguments, **_named):
        print(json.dumps({"error": text % arguments}))

    def nothing(self, *_arguments, **_named):
        pass

    info = debug = warning = nothing


def main():
    job, log = sys.argv[1:]
    with open(job, encoding="utf-8") as text:
        job = yaml.safe_load(text)
    validate(job)
    extra_checks(job)
    parameters = job["actions"][-1]["test"]
    accepted, why = TestMonitor.accepts(None, parameters)
    assert accepted, why
    action = TestMonitorAction()
    action.parameters = parameters
    action.logger = Results()
    action.level = "3.1"
    action.run(Log(log), None)
    print(json.dumps({"status": action.results["status"], "errors": action.errors}))


main()
