"""Runs the checks of a packed folder: check.py FOLDER DEVICE RESULTS

Needs Python's numpy alone. The report is written anew after each check.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np

RUNS = 20
# PyTorch's own distance of f32 to f64, times:
CURVE_RATIO = 3
TIMEOUT = 120


class Missing(Exception):
    """What a check needs is not on this machine."""


class Failed(Exception):
    pass


class Checker:
    def __init__(self, folder, device, results):
        self.folder, self.device, self.results = folder, device, results
        self.rows = []
        os.makedirs(results, exist_ok=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def call(self, *arguments, before=()):
        command = [*before, self.path("tcc-run"), *map(str, arguments)]
        command += ["--device", self.device]
        run = subprocess.run(
            command, capture_output=True, text=True, timeout=TIMEOUT, errors="replace"
        )
        if run.returncode != 0:
            lines = (run.stderr or run.stdout).strip().splitlines()
            raise Failed(f"exit {run.returncode}: {lines[0] if lines else ''}")
        return run.stdout

    def median(self, package, *flags):
        package = self.path(package)
        out = self.call("bench", package, "--random-inputs", "--json", *flags)
        return json.loads(out)["med_ms"]

    # --- Kinds: each returns what it found

    def compare(self, check):
        data = self.path(check["data"])
        flags = ["--inputs-dir", data, "--expect-dir", data]
        self.call("run", self.path(check["package"]), *flags)
        return "within 1e-3"

    def repeats(self, check):
        data, first = self.path(check["data"]), None
        for _ in range(RUNS):
            with tempfile.TemporaryDirectory() as out:
                self.call(
                    "run", self.path(check["package"]), "--inputs-dir", data,
                    "--output-dir", out,
                )  # fmt: skip
                bits = [np.load(f"{out}/{name}").tobytes() for name in sorted(os.listdir(out))]
            if first is not None and bits != first:
                raise Failed("two runs differ")
            first = bits
        return f"{RUNS} runs with the same bits"

    def sanitizer(self, check):
        tool = shutil.which("compute-sanitizer")
        if not tool or self.device == "emulated":
            raise Missing("compute-sanitizer")
        data = self.path(check["data"])
        for name in ("memcheck", "racecheck"):
            before = [tool, "--tool", name, "--error-exitcode", "9"]
            flags = ["--inputs-dir", data]
            self.call("run", self.path(check["package"]), *flags, before=before)
        return "memcheck and racecheck find nothing"

    def train(self, check):
        steps = check["steps"]
        with tempfile.TemporaryDirectory() as out:
            flags = [flag for key in check["set"] for flag in ("--set", key)]
            self.call(
                "train", self.path(check["package"]), "-q", "--no-shuffle",
                "--data", "npz:" + self.path(check["data"]), "--steps", steps,
                "--log-dir", out, *flags,
            )  # fmt: skip
            with open(f"{out}/metrics.jsonl") as stream:
                losses = [json.loads(line)["loss"] for line in stream]
        exact = np.array(check["losses"][:steps])
        ours = np.linalg.norm(np.array(losses) - exact)
        theirs = np.linalg.norm(np.array(check["pytorch"][:steps]) - exact)
        text = f"{ours:.1e} from the f64 curve, PyTorch's f32 {theirs:.1e}"
        if not ours <= CURVE_RATIO * theirs + 1e-6:
            raise Failed(text)
        return text

    def bandwidth(self, check):
        short, long = map(self.median, check["packages"])
        microseconds = (long - short) * 1e3 / check["count"]
        if not check["bytes"]:
            return f"{microseconds:.2f} us a launch"
        return f"{microseconds:.1f} us, {check['bytes'] / microseconds / 1e3:.0f} GB/s"

    def speed(self, check):
        try:
            from safetensors.numpy import save_file
        except ImportError as problem:
            raise Missing("safetensors") from problem
        random = np.random.default_rng(0)
        weights = {
            name: (random.standard_normal(shape) / 50).astype(dtype)
            for name, dtype, shape in check["tensors"]
        }
        with tempfile.TemporaryDirectory() as folder:
            save_file(weights, f"{folder}/weights.safetensors")
            start = time.monotonic()
            flags = ["--weights", f"{folder}/weights.safetensors"]
            self.call("run", self.path(check["package"]), "--random-inputs", *flags)
            first = time.monotonic() - start
            milliseconds = self.median(check["package"], *flags)
        return f"{milliseconds:.3f} ms a run, first result after {first:.2f} s"

    # --- The report

    def run(self, check):
        start = time.monotonic()
        try:
            outcome, detail = "pass", getattr(self, check["kind"])(check)
        except Missing as missing:
            outcome, detail = "not available", str(missing)
        except (Failed, OSError, ValueError, subprocess.SubprocessError) as problem:
            outcome, detail = "fail", str(problem)
        self.rows.append(
            {
                "check": f"{check['kind']} {check['name']}",
                "outcome": outcome,
                "detail": detail,
                "seconds": round(time.monotonic() - start, 1),
            }
        )
        self.write()

    def write(self):
        with open(f"{self.results}/report.json", "w") as stream:
            json.dump(self.rows, stream, indent=1)
        with open(f"{self.results}/report.md", "w") as stream:
            stream.write("| check | outcome | | s |\n|---|---|---|---|\n")
            for row in self.rows:
                stream.write("| {check} | {outcome} | {detail} | {seconds} |\n".format(**row))


def main(folder, device, results):
    checker = Checker(folder, device, results)
    doctor = subprocess.run(
        [checker.path("tcc-run"), "doctor"], capture_output=True, text=True, timeout=TIMEOUT
    )
    print(doctor.stdout, end="")
    with open(f"{results}/doctor.txt", "w") as stream:
        stream.write(doctor.stdout)
    with open(checker.path("manifest.json")) as stream:
        checks = json.load(stream)
    for check in checks:
        checker.run(check)
        row = checker.rows[-1]
        print(f"{row['outcome']:13} {row['check']}: {row['detail']}", flush=True)
    counts = [
        sum(row["outcome"] == outcome for row in checker.rows)
        for outcome in ("pass", "fail", "not available")
    ]
    print("{} passed, {} failed, {} skipped".format(*counts))
    sys.exit(counts[1] > 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
