"""Packs perfmon's metrics: pack.py FOLDER OUTPUT. FOLDER has a JSON file for each kind of core."""

import gzip
import json
import pathlib
import sys

# Where the table of events is not called as the file.
TABLES = {
    "alderlake_goldencove_core": "goldencove",
    "arrowlake_lioncove_core": "lioncove_arl",
    "lunarlake_lioncove_core": "lioncove_lnl",
    "meteorlake_redwoodcove_core": "redwoodcove",
}
# The same core with other memory.
EVENTS = {"sapphirerapidshbm": "sapphirerapids"}
FIELDS = [
    "name", "legacy", "level", "parent", "unit", "category", "groups", "events", "constants",
    "formula", "threshold", "brief",
]


def line(value):
    return json.dumps(value, separators=(",", ":")) + "\n"


def main(folder, output):
    text = ""
    for path in sorted(pathlib.Path(folder).glob("*.json")):
        table = TABLES.get(path.stem, path.stem)
        core = json.loads(path.read_text())
        head = {"table": table, "events": EVENTS.get(table, table)}
        text += line(head | {field: core[field] for field in ("source", "version", "tma")})
        for metric in core["metrics"]:
            text += line({field: metric[field] for field in FIELDS if metric.get(field)})
    # No name and no time in it: the same input gives the same bytes.
    pathlib.Path(output).write_bytes(gzip.compress(text.encode(), 9, mtime=0))


main(*sys.argv[1:])
