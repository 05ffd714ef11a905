"""A test for pytest with labgrid's plugin: the job's own test points.

    pytest --lg-env stick.yaml test_barecount.py

The image is made with --ktap. What the strategy has of the serial line is read by `collect` as well.
"""

import re

POINT = re.compile(r"^(?P<result>not ok|ok) (?P<number>\d+) - (?P<name>[^#\r\n]*)", re.MULTILINE)
PLAN = re.compile(r"^1\.\.(\d+)\r?$", re.MULTILINE)


def test_every_point_is_ok(strategy, tmp_path):
    strategy.log = str(tmp_path / "serial.log")
    try:
        strategy.transition("ended")
    finally:
        strategy.transition("off")
    text = strategy.report.decode("utf-8", "replace")
    points = {int(point["number"]): point for point in POINT.finditer(text)}
    planned = PLAN.search(text)
    assert planned, "the image was not made with --ktap"
    missing = [number for number in range(1, int(planned[1]) + 1) if number not in points]
    failed = [point["name"].strip() for point in points.values() if point["result"] == "not ok"]
    assert not missing and not failed, f"missing: {missing}; not ok: {failed}; see {strategy.log}"
