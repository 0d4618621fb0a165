"""Folders of checkpoints: one writer, what was left, disks that are full, what is kept.

  checkpoints.py FOLDER_OF_WRITE_FIXTURE
"""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import harness
from processes import ENVIRONMENT, wait_until
from training import Suite

TOOL = os.path.join(harness.BIN, "tcc-run")


def begin(suite, folder, *flags, **options):
    """A run that goes on until something happens."""
    command = [TOOL, "train", suite.package, "--data", suite.data, "--threads", "1", "--steps",
               str(10**9), "--checkpoint-dir", folder, *flags]  # fmt: skip
    return subprocess.Popen(command, env=ENVIRONMENT, text=True, stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, **options)  # fmt: skip


def list_names(folder):
    return sorted(os.listdir(folder))


def test_writers(suite):
    """One of three works; the others say which process writes there."""
    folder = suite.path("written")
    first = begin(suite, folder, "--checkpoint-every", "1000000")
    wait_until(lambda: os.path.exists(f"{folder}/lock"), 10)
    said = f"checkpoints in '{folder}' are written by process {first.pid} of host "
    for flags in ([], ["--resume-if-any"]):
        suite.train("--steps", 1, "--checkpoint-dir", folder, *flags, code=2, says=said)
    suite.tally.check("the first works", first.poll() is None)
    first.terminate()
    first.communicate(timeout=30)
    names = list_names(folder)
    suite.tally.check("given back", first.returncode == 143 and len(names) == 1, str(names))


def test_left(suite):
    """What a killed run left is taken over and removed."""
    folder = suite.path("killed")
    run = begin(suite, folder, "--checkpoint-every", "1")
    wait_until(lambda: os.path.exists(f"{folder}/step-3"), 10)
    run.send_signal(signal.SIGKILL)
    run.communicate()
    newest = max(int(name[5:]) for name in list_names(folder) if name[5:].isdigit())
    shutil.copytree(f"{folder}/step-1", f"{folder}/step-{newest + 1}.tmp77")
    says = f"note: taking '{folder}' over from process {run.pid} of host "
    done = suite.train("--steps", newest + 2, "--checkpoint-dir", folder, "--resume", says=says,
                       lines=2)  # fmt: skip
    suite.tally.check("goes on", f"resuming from {folder}/step-" in done.err, done.err)
    left = [name for name in list_names(folder) if not name[5:].isdigit()]
    suite.tally.check("nothing left", not left, str(left))


def limit_files():
    """To 100 bytes, as on a full disk."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))


def test_full(suite):
    """A save that fails is a warning, and an error when it is the third one in a row."""
    folder = suite.path("full")
    suite.train("--steps", 1, "--checkpoint-dir", folder)
    run = begin(suite, folder, "--checkpoint-every", "10", "--resume", preexec_fn=limit_files,
                restore_signals=False)  # fmt: skip
    error = run.communicate(timeout=30)[1]
    lines = [line for line in error.splitlines() if "resuming" not in line]
    said = [f"tcc-run: warning: no checkpoint after update {step}: cannot write" in line
            for step, line in zip((10, 20), lines)]  # fmt: skip
    ok = run.returncode == 5 and len(lines) == 3 and all(said)
    ok = ok and lines[2].startswith("tcc-run: error: ") and "step-30" in lines[2]
    suite.tally.check("three failed saves", ok, f"{run.returncode}: {error}")
    suite.tally.check("as it was", list_names(folder) == ["step-1"], str(list_names(folder)))


def test_full_log(suite):
    """Training goes on without it."""
    log = suite.path("full-log")
    done = harness.run_tool("tcc-run", "train", suite.package, "--data", suite.data, "--threads",
                            1, "--steps", 20, "--log-dir", log, "--export", "/dev/null",
                            preexec_fn=limit_files, restore_signals=False)  # fmt: skip
    path = f"{log}/metrics.jsonl"
    wanted = [f"tcc-run: warning: cannot write '{path}': File too large",
              f"tcc-run: warning: '{path}' lacks 20 lines: File too large",
              f"tcc-run: warning: cannot write '{log}/result.json': File too large"]  # fmt: skip
    ok = done.code == 0 and done.err.splitlines() == wanted
    suite.tally.check("full log", ok, f"{done.code}: {done.err}")
    suite.tally.check("no part of a result", not os.path.exists(f"{log}/result.json"))


def test_kept(suite):
    folder = suite.path("kept")
    suite.train("--steps", 9, "--checkpoint-dir", folder, "--checkpoint-every", 1, "--keep-last",
                2, "--keep-every", 4)  # fmt: skip
    names = list_names(folder)
    suite.tally.check("kept", names == ["step-4", "step-8", "step-9"], str(names))
    suite.train("--steps", 10, "--checkpoint-dir", folder, "--keep-every", 4, code=2,
                says="--keep-every requires --keep-last")  # fmt: skip
    suite.train("--steps", 10, "--keep-last", 4, code=2, says="--checkpoint-dir")


def test_time(suite):
    folder = suite.path("timed")
    since = time.monotonic()
    suite.train("--steps", 10**9, "--checkpoint-dir", folder, "--max-time", "0m1s",
                says="note: --max-time: stopped after update ")  # fmt: skip
    took, names = time.monotonic() - since, list_names(folder)
    suite.tally.check("a second", 1 <= took < 5 and len(names) == 1, f"{took}: {names}")
    for text in ("90", "1m1h", "0s", "1h 5m", "-1s", "99999999999999999999d", "5x"):
        suite.train("--steps", 1, "--checkpoint-dir", folder, f"--max-time={text}", code=2,
                    says=f"'{text}' must be a time as 23h50m")  # fmt: skip


def test_listing(suite):
    folder = suite.path("kept")
    listed = harness.run_tool("tcc-run", "checkpoints", folder)
    lines = listed.out.splitlines()
    ok = listed.code == 0 and lines[0].startswith(f"{folder}/step-9: 9 updates, 9 batches, ")
    suite.tally.check("listed", ok and len(lines) == 3 and lines[0].endswith(", whole"), listed.out)
    with open(f"{folder}/step-8/state.safetensors", "r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"\x7f")
    os.remove(f"{folder}/step-4/manifest.json")
    listed = harness.run_tool("tcc-run", "checkpoints", folder, "--json")
    rows = json.loads(listed.out)["checkpoints"]
    ok = [row["path"] for row in rows] == [f"{folder}/step-{n}" for n in (9, 8, 4)]
    ok = ok and rows[0]["problem"] is None and "is damaged" in rows[1]["problem"]
    ok = ok and "there is no" in rows[2]["problem"] and listed.code == 3
    suite.tally.check("problems", ok, listed.out)
    for place in (suite.path("none"), suite.folder):
        listed = harness.run_tool("tcc-run", "checkpoints", place)
        ok = listed.code == 5 and f"there is no checkpoint in '{place}'" in listed.err
        suite.tally.check("none", ok, listed.err)


def main(fixtures):
    tally = harness.Tally()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([f"{fixtures}/tcc_write_fixture", "line", f"{folder}/line.tcc"],
                       check=True)  # fmt: skip
        suite = Suite(tally, folder, "cpu")
        for test in (test_writers, test_left, test_full, test_full_log, test_kept, test_time,
                     test_listing):  # fmt: skip
            test(suite)
    tally.close()


if __name__ == "__main__":
    main(sys.argv[1])
