"""Benchmarks still run from end to end: on one small subject, whatever it takes."""

import json
import os
import subprocess
import sys
import tempfile

from harness import ROOT, Tally

SUBJECT = "lstm.1x1x128"


def check(tally, name, *options):
    script = os.path.join(ROOT, "tests/bench", name)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "rows.json")
        command = [sys.executable, script, "--models", SUBJECT, "--json", path, *options]
        run = subprocess.run(command, capture_output=True, text=True)
        tally.check(f"{name} succeeds", run.returncode == 0, run.stderr)
        if run.returncode == 0:
            with open(path) as stream:
                rows = json.load(stream)["rows"]
            tally.check(f"{name} has a row", len(rows) == 1, str(rows))


if __name__ == "__main__":
    tally = Tally()
    check(tally, "peers.py", "--peers", "onnxruntime", "--rounds", "1", "--seconds", "0.05")
    check(tally, "limits.py", "--rounds", "1")
    tally.close()
