"""torchrun begins ranks again after one was killed: restarts.py

They resume from the newest checkpoint, and end with the bits of a run that nobody
disturbed. One that fails each time ends torchrun.
"""

import glob
import os
import shutil
import signal
import sys
import tempfile

import numpy as np

import harness
import launchers
import ranks
from processes import find_free_port, wait_until

STEPS, EVERY = 1600, 50
TORCHRUN = os.path.join(os.path.dirname(sys.executable), "torchrun")


def torchrun(*options):
    """One on each host, which says at MASTER_PORT who is there."""
    return [TORCHRUN, "--nproc-per-node", "1", *options, "--monitor-interval", "0.1",
            "--no-python"]  # fmt: skip


def flags(folder):
    return ["--steps", STEPS, "--checkpoint-every", EVERY, "--log-dir", folder,
            "--checkpoint-dir", folder, "--threads", 1]  # fmt: skip


def test_restart(suite, victim):
    first, second = (tempfile.mkdtemp(dir=suite.folder) for _ in range(2))
    with suite.begin([], "--ranks", launchers.WORLD, "-q", *flags(first)) as job:
        code, err = job.finish()
        suite.tally.check("undisturbed", code == 0, err)
    port = find_free_port()
    command = torchrun("--nproc-per-node", "2", "--max-restarts", "1", "--master-port", str(port))
    with suite.begin(command, *flags(second), "--resume-if-any") as job:
        wait_until(lambda: glob.glob(f"{second}/step-{3 * EVERY}"))
        (process,) = job.find(f"RANK={victim}", "TORCHELASTIC_RESTART_COUNT=0")
        os.kill(process, signal.SIGKILL)
        code, err = job.finish()
        suite.tally.check("restarted", code == 0, f"{code}: {err}")
        suite.tally.check("resumed", err.count("resuming from") == 1, err)
        launchers.check_end(suite, job, "torchrun")
    states = [ranks.read_run(folder, STEPS)[1] for folder in (first, second)]
    same = states[0].keys() == states[1].keys()
    same = same and all(np.array_equal(states[0][name], states[1][name]) for name in states[0])
    suite.tally.check(f"the same bits after the death of {victim}", same)


def test_end(suite):
    command = torchrun("--nproc-per-node", "2", "--max-restarts", "1", "--master-port",
                       str(find_free_port()))  # fmt: skip
    data = launchers.save_damaged(suite)
    with suite.begin(command, "--steps", 10**9, "-q", "--no-shuffle", data=data) as job:
        code, err = job.finish()
        ok = code == 1 and err.count("index 77 is out of range") == 2
        suite.tally.check("failed twice", ok, f"{code}: {err}")
        launchers.check_end(suite, job, "torchrun")


def main():
    tally = harness.Tally()
    if not shutil.which(TORCHRUN):
        print("skipped: there is no torchrun (tools/setup --exports)")
        tally.skipped += 1
        tally.close()
    with tempfile.TemporaryDirectory() as folder:
        suite = launchers.Suite(tally, folder)
        for victim in range(launchers.WORLD):
            test_restart(suite, victim)
        test_end(suite)
    tally.close()


if __name__ == "__main__":
    sys.exit(main())
