"""What signals make of `tcc-run train`: a checkpoint at the next update, by one rank and
by several, and the same bits as those of a run that was left alone.

  signals.py FOLDER_OF_WRITE_FIXTURE
"""

import os
import signal
import subprocess
import sys
import tempfile
import time

import harness
from processes import find_free_port, wait_until
from ranks import RATE, Suite
from training import read_safetensors

ENDLESS = ("--steps", 10**9, "-q", "--no-shuffle", *RATE)
LONGEST = 20  # seconds of whatever is to happen soon


def find_steps(folder):
    names = os.listdir(folder) if os.path.isdir(folder) else []
    return sorted(int(name[5:]) for name in names if name.startswith("step-") and name[5:].isdigit())


class Case:
    """A run that only a signal ends, once it has written a checkpoint."""

    def __init__(self, suite, name, *arguments, begin=None, keeps=True):
        self.suite, self.name = suite, name
        self.folder = suite.path(name)
        kept = ("--checkpoint-dir", self.folder, "--checkpoint-every", 1000) if keeps else ()
        begin = begin or suite.begin
        self.processes = begin("train", *ENDLESS, *kept, *arguments)
        if not isinstance(self.processes, list):
            self.processes = [self.processes]
        self.check("begins", not keeps or wait_until(lambda: find_steps(self.folder)))

    def check(self, what, ok, found=""):
        self.suite.tally.check(f"{self.name}: {what}", bool(ok), str(found))

    def ends(self, code):
        for process in self.processes:
            try:
                _, stderr = process.communicate(timeout=LONGEST)
            except subprocess.TimeoutExpired:
                process.kill()
                _, stderr = process.communicate()
            self.check("exit", process.returncode == code, f"{process.returncode}: {stderr}")
            self.check("says nothing", stderr == "", stderr)

    def is_whole(self, *arguments):
        """The last checkpoint is one that no other flag asks for, and the run that
        goes on from it has the bits of one that was not stopped."""
        last = find_steps(self.folder)[-1]
        self.check("checkpoint", last % 1000 != 0, last)
        whole = self.suite.path(f"{self.name}-whole")
        for folder, more in ((self.folder, ("--resume",)), (whole, ())):
            self.suite.expect(0, "train", "--steps", last + 10, "-q", "--no-shuffle", *RATE,
                              "--checkpoint-dir", folder, *more, *arguments)  # fmt: skip
        states = [read_safetensors(f"{folder}/step-{last + 10}/state.safetensors")
                  for folder in (self.folder, whole)]  # fmt: skip
        self.check("same bits", states[0] == states[1])


def test_one_rank(suite):
    for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
        case = Case(suite, f"{number.name} of one")
        case.processes[0].send_signal(number)
        case.ends(code)
        case.is_whole()


def test_going_on(suite):
    case = Case(suite, "SIGUSR1")
    case.processes[0].send_signal(signal.SIGUSR1)
    saved = wait_until(lambda: any(step % 1000 for step in find_steps(case.folder)))
    case.check("checkpoint", saved, find_steps(case.folder))
    case.check("goes on", case.processes[0].poll() is None)
    case.processes[0].send_signal(signal.SIGTERM)
    case.ends(143)


def test_at_once(suite):
    """Both come while the process is stopped: the second one ends it."""
    case = Case(suite, "two signals")
    process = case.processes[0]
    process.send_signal(signal.SIGSTOP)
    for number in (signal.SIGTERM, signal.SIGINT):
        process.send_signal(number)
    process.send_signal(signal.SIGCONT)
    process.communicate(timeout=LONGEST)
    ok = process.returncode in (-signal.SIGTERM, -signal.SIGINT)
    case.check("exit", ok, process.returncode)


def test_ignored(suite):
    """A signal that whoever began the run ignores, as for jobs in the background, asks for
    nothing."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        case = Case(suite, "ignored")
    finally:
        signal.signal(signal.SIGINT, before)
    case.processes[0].send_signal(signal.SIGINT)
    time.sleep(0.3)
    case.check("goes on", case.processes[0].poll() is None)
    case.processes[0].send_signal(signal.SIGTERM)
    case.ends(143)


def test_nothing_to_keep(suite):
    case = Case(suite, "nothing kept", keeps=False)
    time.sleep(0.3)
    case.processes[0].send_signal(signal.SIGTERM)
    case.ends(-signal.SIGTERM)


def test_ranks(suite):
    """The launcher passes on what it is sent; a terminal sends it to all."""
    case = Case(suite, "launcher", "--ranks", 2)
    case.processes[0].send_signal(signal.SIGUSR1)
    saved = wait_until(lambda: any(step % 1000 for step in find_steps(case.folder)))
    case.check("checkpoint", saved, find_steps(case.folder))
    case.processes[0].send_signal(signal.SIGTERM)
    case.ends(143)
    case.is_whole("--ranks", 2)


def test_one_of_ranks(suite):
    """Whichever rank is asked, all stop after the same update."""
    place = f"127.0.0.1:{find_free_port()}"

    def begin(*arguments):
        return [suite.begin(*arguments, RANK=str(rank), WORLD_SIZE="2", TCC_RENDEZVOUS=place)
                for rank in range(2)]  # fmt: skip

    case = Case(suite, "one of two", begin=begin)
    case.processes[1].send_signal(signal.SIGINT)
    case.ends(130)
    case.is_whole("--ranks", 2)


def main(fixtures):
    tally = harness.Tally()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([f"{fixtures}/tcc_write_fixture", "ranked_line",
                        f"{folder}/ranked_line.tcc"], check=True)  # fmt: skip
        suite = Suite(tally, folder)
        for test in (test_one_rank, test_going_on, test_at_once, test_ignored,
                     test_nothing_to_keep, test_ranks, test_one_of_ranks):  # fmt: skip
            test(suite)
    tally.close()


if __name__ == "__main__":
    main(sys.argv[1])
