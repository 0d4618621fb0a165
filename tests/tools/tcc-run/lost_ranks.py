"""What launchers make of a run that loses a rank: the others end with exit 9 and a line
that names it, and nobody is left.

  lost_ranks.py FOLDER_OF_WRITE_FIXTURE [--long]

The launcher is `tcc-run --ranks`, with --long those of MPI. What ranks themselves make of
each kind of fault is in tests/training/faults.py.
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import harness
from processes import (ENVIRONMENT, die_with_parent, find_descendants, is_running,
                       read_environment, wait_until)  # fmt: skip
from ranks import RATE, Suite

RANKS = 3
LONGEST = 120  # seconds of a run that is to end by itself
ENDLESS = ("--steps", 10**9, "-q", *RATE)
HOST = socket.gethostname()
GATHERED = "(digests of the variables|what signals ask for)"
COLLECTIVE = rf"(all-reduce \d+( of gradient/w)?|all-gather \d+ of {GATHERED})"
LINE = (
    r"tcc-run: rank {rank}: error: rank {victim} \(host {host}\) was lost: {why}; it was last "
    rf"heard of at update \d+ (in|after) {COLLECTIVE}; "
    r"this is rank {rank} \(host {host}\) "
    rf"at update \d+ in {COLLECTIVE}"
)


def read_rank(process):
    """Which rank of `tcc-run train` it is, or None."""
    try:
        program = os.readlink(f"/proc/{process}/exe")
    except OSError:
        return None
    values = dict(pair.split("=", 1) for pair in read_environment(process) if "=" in pair)
    names = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
    found = [values[key] for key in names if key in values]
    return int(found[0]) if found and program.endswith("/tcc-run") else None


def count_lines(path):
    try:
        with open(path, "rb") as file:
            return file.read().count(b"\n")
    except FileNotFoundError:
        return 0


class Run:
    """Ranks that train until something ends them; their logs are in `logs`."""

    def __init__(self, suite, count=RANKS, launcher=(), arguments=(), **environment):
        self.logs = tempfile.mkdtemp(dir=suite.folder)
        command = suite.command("train", *ENDLESS, "--log-dir", self.logs, *arguments)
        command = [*launcher, *command] if launcher else [*command, "--ranks", str(count)]
        self.tally = suite.tally
        self.process = subprocess.Popen(command, env={**ENVIRONMENT, **environment}, text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        preexec_fn=die_with_parent)  # fmt: skip
        wait_until(lambda: len(self.find_ranks()) == count)
        self.ranks = self.find_ranks()
        self.everybody = find_descendants(self.process.pid)
        # More updates than a recorder keeps.
        wait_until(lambda: count_lines(f"{self.logs}/metrics.jsonl") > 100, 60)
        time.sleep(0.5)  # a beat of each says so

    def find_ranks(self):
        found = {read_rank(one): one for one in find_descendants(self.process.pid)}
        return {rank: one for rank, one in found.items() if rank is not None}

    def send(self, number, *ranks):
        self.began = time.monotonic()
        for rank in ranks:
            os.kill(self.ranks[rank], number)

    def await_end_of(self, ranks, seconds):
        """How long they took."""
        wait_until(lambda: not any(is_running(self.ranks[rank]) for rank in ranks), seconds)
        return time.monotonic() - self.began

    def close(self, name, code, expected=()):
        check_end(self.tally, name, self.process, code, expected)
        gone = wait_until(lambda: not any(map(is_running, self.everybody)), 5)
        self.tally.check(f"{name}: nobody left", gone)


def read_end(process):
    """What it says; it is killed if it does not end, and with it its ranks."""
    try:
        return process.communicate(timeout=LONGEST)[1]
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()[1] + "(it did not end)"


def check_end(tally, name, process, code, expected):
    """All that it says is so many lines that match, each once."""
    err = read_end(process)
    tally.check(f"{name}: code", process.returncode == code, f"{process.returncode}: {err}")
    lines = err.splitlines()
    ok = len(lines) == len(expected)
    ok &= all(sum(bool(re.fullmatch(e, line)) for line in lines) == 1 for e in expected)
    tally.check(f"{name}: lines", ok, f"{err}\nnot {expected}")


def lines_of(survivors, victim, why):
    return [LINE.format(rank=rank, victim=victim, why=why, host=re.escape(HOST))
            for rank in survivors]  # fmt: skip


def others_of(victim):
    return [rank for rank in range(RANKS) if rank != victim]


def test_death(suite):
    """The launcher says of which signal, and ends the others only after they said why."""
    victim = 0
    run = Run(suite)
    run.send(signal.SIGKILL, victim)
    took = run.await_end_of(others_of(victim), 5)
    suite.tally.check("death: time", took < 1, f"{took:.2f} s")
    killed = rf"tcc-run: error: rank {victim} was ended by signal 9 \(Killed\)"
    run.close("death", 9, [killed, *lines_of(others_of(victim), victim, "its process ended")])
    check_recorder(suite, f"{run.logs}/rank-1.jsonl")
    print(f"death: {took:.2f} s")


def check_recorder(suite, path):
    """Of the rank that lost another in a call."""
    with open(path) as file:
        calls = [json.loads(line) for line in file]
    numbers = [call["number"] for call in calls]
    ok = len(calls) == 64 and numbers == list(range(numbers[0], numbers[0] + 64))
    ok &= all(call["kind"] == "all-reduce" for call in calls)
    ok &= {call["of"] for call in calls} == {"gradient/w", ""}
    ok &= "end" not in calls[-1] and all(c["begin"] <= c["end"] for c in calls[:-1])
    suite.tally.check(f"{path}", ok, str(calls[-2:]))


def test_pause_of_all(suite):
    """As by Ctrl-Z and fg: nobody is lost."""
    run = Run(suite, TCC_HEARTBEAT="1")
    for number in (signal.SIGSTOP, signal.SIGCONT):
        run.send(number, *range(RANKS))
        time.sleep(2.5)
    ok = all(map(is_running, run.ranks.values()))
    suite.tally.check("goes on after a pause", ok)
    run.process.kill()
    run.close("launcher", -signal.SIGKILL)


def test_error(suite):
    """Of one rank, which alone writes the log: its code counts, and the others name it."""
    run = suite.begin("train", *ENDLESS, "--ranks", RANKS, "--log-dir",
                      suite.path("file/run"))  # fmt: skip
    own = r"tcc-run: rank 0: error: .*/file/run.*"
    others = [rf"tcc-run: rank {rank}: error: rank 0 \(host {re.escape(HOST)}\) was lost: it left "
              "after an error, or without close; .* before the first update .*"
              for rank in (1, 2)]  # fmt: skip
    check_end(suite.tally, "error of 0", run, 5, [own, *others])


def test_flags(suite):
    run = suite.begin("train", "--steps", 1, "--ranks", 2, TCC_HEARTBEAT="soon")
    err = read_end(run)
    says = [f"tcc-run: rank {rank}: error: TCC_HEARTBEAT is 'soon', expected 0.1 s to 86400 s, "
            "or 0" for rank in range(2)]  # fmt: skip
    ok = run.returncode == 2 and sorted(err.splitlines()) == says
    suite.tally.check("a wrong time", ok, err)


def test_launcher_death(suite):
    run = Run(suite)
    run.process.kill()
    run.close("death of the launcher", -signal.SIGKILL)


def find_launchers():
    for name, launcher in (
        ("openmpi", ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-np"]),
        ("mpich", ["mpiexec.mpich", "-n"]),
    ):
        if shutil.which(launcher[0]):
            yield name, [*launcher, str(RANKS)]
        else:
            print(f"{name}: not available")


def test_mpi(suite):
    """mpirun itself ends the others of a rank that dies; one that is stopped it leaves."""
    for name, launcher in find_launchers():
        for victim in (0, 2):
            run = Run(suite, launcher=launcher, TCC_HEARTBEAT="1")
            run.send(signal.SIGSTOP, victim)
            err = read_end(run.process)
            took = time.monotonic() - run.began
            wanted = lines_of(others_of(victim), victim, "no word of it for 1 s")
            # Who ends first ends the other, which may not come to its line.
            found = sum(bool(re.search(line, err)) for line in wanted)
            ok = found >= 1 and run.process.returncode != 0
            suite.tally.check(f"{name}: stop of {victim}", ok, err)
            gone = wait_until(lambda run=run: not any(map(is_running, run.everybody)), 5)
            suite.tally.check(f"{name}: nobody left", gone)
            print(f"{name}: stop of {victim}: {took:.2f} s, {found} lines, "
                  f"exit {run.process.returncode}")  # fmt: skip


def test_mpi_error(suite):
    """Of the rank that failed for a reason of its own; MPICH's launcher kills the others."""
    for name, launcher in find_launchers():
        command = [*launcher, *suite.command(
            "train", *ENDLESS, "--log-dir", suite.path("file/run"))]  # fmt: skip
        for attempt in range(5):
            done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True,
                                  timeout=LONGEST)  # fmt: skip
            ok = done.returncode in ((5,) if name == "openmpi" else (5, 9))
            ok &= "rank 0: error: " in done.stderr
            suite.tally.check(f"{name}: error {attempt}", ok, f"{done.returncode}: {done.stderr}")


def main(fixtures, is_long=False):
    tally = harness.Tally()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([f"{fixtures}/tcc_write_fixture", "ranked_line",
                        f"{folder}/ranked_line.tcc"], check=True)  # fmt: skip
        suite = Suite(tally, folder)
        with open(suite.path("file"), "w"):
            pass
        if is_long:
            test_mpi(suite)
            test_mpi_error(suite)
        else:
            for test in (test_death, test_pause_of_all, test_error, test_flags,
                         test_launcher_death):  # fmt: skip
                test(suite)
    tally.close()


if __name__ == "__main__":
    main(sys.argv[1], "--long" in sys.argv)
