"""Benchmarks still run from end to end: on small subjects, whatever it takes."""

import json
import os
import subprocess
import sys
import tempfile

from harness import ROOT, Tally

BRIEF = ["--rounds", "1", "--seconds", "0.05"]


def check(tally, name, subject, *options):
    script = os.path.join(ROOT, "tests/bench", name)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "rows.json")
        command = [sys.executable, script, "--models", subject, "--json", path, *options]
        run = subprocess.run(command, capture_output=True, text=True)
        tally.check(f"{name} succeeds", run.returncode == 0, run.stderr)
        if run.returncode == 0:
            with open(path) as stream:
                rows = json.load(stream)["rows"]
            tally.check(f"{name} has a row", len(rows) == 1, str(rows))


if __name__ == "__main__":
    tally = Tally()
    check(tally, "peers.py", "lstm.1x1x128", "--peers", "onnxruntime", *BRIEF)
    check(tally, "limits.py", "lstm.1x1x128", "--rounds", "1")
    check(tally, "train.py", "mlp_digits", "--peers", "torch", *BRIEF)
    check(tally, "zoo.py", "recommender", "train", "--again", "--peers", "torch", *BRIEF)
    check(tally, "trees.py", "mlp_digits step", ROOT, "--precisions", "f32", *BRIEF)
    tally.close()
