"""What the script suites share: running tools, counting, the cache folder."""

import collections
import os
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BIN = os.environ.get("TCC_BIN", os.path.join(ROOT, "build/bin"))

# What makes a suite compile for another target, and run that: TCC_TEST_TARGET is
# "cuda" for GPU kernels that the emulator runs, looking for races; "emulated" for ones
# that it only runs, in a fifth of the time.
TARGET = os.environ.get("TCC_TEST_TARGET", "cpu")
COMPILE_FLAGS = {
    "cpu": [],
    "cuda": ["--target=cuda", "--arch=none", "--emulate=race"],
    "emulated": ["--target=cuda", "--arch=none", "--emulate"],
}
RUN_COMMANDS = ("run", "bench", "train", "eval", "tune")
# Orders of a GPU's threads and blocks: forward, in reverse, at random with a seed.
# Each must give the same bits.
ORDERS = ("emulated", "emulated:1", "emulated:7")
SCHEDULES = {"cpu": ("",), "cuda": ORDERS, "emulated": ORDERS}

Run = collections.namedtuple("Run", "code out err seconds")


def cache_folder(*parts):
    """A folder for downloads and references, kept between checkouts."""
    base = os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache"))
    folder = os.path.join(base, "tcc", *parts)
    os.makedirs(folder, exist_ok=True)
    return folder


def run_tool(
    name, *arguments, target=TARGET, schedule=None, timeout=300, folder=BIN, **options
):
    """Runs a tool; its code is negative after a signal, None after a time-out."""
    schedule = schedule or SCHEDULES[target][0]
    start = time.monotonic()
    command = [os.path.join(folder, name), *map(str, arguments)]
    if name in ("tcc", "tcc-unrecorded"):
        command += COMPILE_FLAGS[target]
    if name == "tcc-run" and schedule and arguments[0] in RUN_COMMANDS:
        command += ["--device", schedule]
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=timeout, errors="replace", **options
        )
        code, out, err = done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired:
        code, out, err = None, "", f"no end after {timeout} s"
    return Run(code, out, err, time.monotonic() - start)


def first_line(run):
    """The line that says what went wrong, or how the run ended."""
    lines = [line for line in run.err.splitlines() if line.strip()]
    ending = "timed out" if run.code is None else f"exit {run.code}"
    return f"{ending}: {lines[0][:200]}" if lines else ending


class Failure(Exception):
    """What went wrong, in a line."""


def call(tool, *arguments, **options):
    """What a tool prints that must succeed."""
    run = run_tool(tool, *arguments, **options)
    if run.code != 0:
        where = (options.get(key) or "" for key in ("target", "schedule"))
        raise Failure(f"{' '.join((tool, *where)).strip()}: {first_line(run)}")
    return run.out


class Tally:
    """Counts checks, says the failed ones, closes with the plain line."""

    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def check(self, name, ok, message=""):
        self.passed += ok
        self.failed += not ok
        if not ok:
            print(f"FAIL {name}: {message}", flush=True)
        return ok

    def close(self):
        tail = f", {self.skipped} skipped" if self.skipped else ""
        print(f"{self.passed} passed, {self.failed} failed{tail}")
        sys.exit(self.failed > 0)
