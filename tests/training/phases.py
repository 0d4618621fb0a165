"""SIGTERM and SIGUSR1 to runs that do something else than updates: phases.py

While a package is opened, a checkpoint restored or written, or an evaluation under way:
a run ends as documented, and the one that goes on has the weights, the losses and the
evaluations of one that was left alone.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

import harness
from processes import ENVIRONMENT, find_descendants, wait_until
from training.runs import Runs

LONGEST = 30  # seconds from a signal to the end
PAUSE = 0.0003  # in which it goes on
TRIES = 40  # of a phase that a busy machine lets nobody see
EVERY = 4  # updates before an evaluation

EVALUATIONS = f"""
[params]
ema = 0.9
[eval]
every = {EVERY}
ema = true
metrics = ["accuracy"]
"""


def read_file(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def list_open_files(process):
    """Paths of files that it has open, or mapped."""
    paths = re.findall(r" (/.+)$", read_file(f"/proc/{process}/maps"), re.MULTILINE)
    folder = f"/proc/{process}/fd"
    try:
        for number in os.listdir(folder):
            paths.append(os.readlink(f"{folder}/{number}"))
    except OSError:  # the file was closed meanwhile, or the process ended
        pass
    return paths


def set_priority(nice):
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, nice)


def is_stopped(process):
    return "T" in re.findall(r"\) (\w)", read_file(f"/proc/{process}/stat"))


class Phases(Runs):
    def begin(self, folder, *flags):
        command = [os.path.join(harness.BIN, "tcc-run"), *self.list_arguments(folder, *flags)]
        return subprocess.Popen([*map(str, command)], env=ENVIRONMENT, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                preexec_fn=lambda: set_priority(0))  # fmt: skip

    def send_in(self, process, phase, number, to=lambda process: process.pid):
        """The signal, to a process that is stopped in that phase, or what it began; whether it
        was seen there."""
        while process.poll() is None:
            process.send_signal(signal.SIGSTOP)
            wait_until(lambda: process.poll() is not None or is_stopped(process.pid))
            is_in = phase(process.pid)
            if is_in:
                os.kill(to(process), number)
            process.send_signal(signal.SIGCONT)
            if is_in:
                return True
            time.sleep(PAUSE)
        return False

    def ends(self, what, process, code):
        start = time.monotonic()
        _, stderr = process.communicate(timeout=LONGEST)
        self.check(f"{what}: exit", process.returncode == code, f"{process.returncode}: {stderr}")
        return time.monotonic() - start

    def try_phase(self, what, phase, code, *flags, begun="", kept=None):
        """Of a run that begins anew, or goes on from the checkpoints of `begun`."""
        folder = begun or what
        before, path = self.list_steps(folder), self.path(folder)
        if begun:
            shutil.copytree(path, path + ".begun")
        for _ in range(TRIES):
            process = self.begin(folder, *flags)
            if self.send_in(process, phase, signal.SIGTERM):
                break
            process.wait()
            shutil.rmtree(path)
            if begun:
                shutil.copytree(path + ".begun", path)
        self.ends(what, process, code)
        after = self.list_steps(folder)
        ok = after > before if kept is None else after == kept
        self.check(f"{what}: checkpoints", ok, f"{before}, {after}")
        self.go_on(what, folder)

    def go_on(self, what, folder):
        digest = self.finish(folder, "--resume-if-any")
        self.check(f"{what}: the same weights", digest == self.expected)
        for key in ("loss", "eval"):
            found, values = self.read_values(folder, key), self.read_values("whole", key)
            self.check(f"{what}: the same {key}", found == values, f"{found}, not {values}")
        names = [name for name in os.listdir(self.path(folder)) if "." in name]
        self.check(f"{what}: nothing is left", not names, names)


def is_opening(process):
    names = [os.path.basename(path) for path in list_open_files(process)]
    return "train.tcc" in names and "lock" not in names


def is_restoring(process):
    """Not while another checkpoint is written, in a folder .tmp."""
    return any("state.safetensors" in path and ".tmp" not in path
               for path in list_open_files(process))  # fmt: skip


def test_beginning(tally, folder):
    runs = Phases(tally, folder, "beginning", 20, 512, 2048)
    runs.expected = runs.finish("whole")
    runs.try_phase("open", is_opening, -signal.SIGTERM, kept=[])
    process = runs.begin("init", "--checkpoint-every", 5)
    runs.send_in(process, lambda _: runs.list_steps("init"), signal.SIGTERM)
    runs.ends("step", process, 143)
    runs.try_phase("init", is_restoring, -signal.SIGTERM, "--resume", begun="init",
                   kept=runs.list_steps("init"))  # fmt: skip


def test_saving(tally, folder):
    runs = Phases(tally, folder, "saving", 400, 512, 512)
    runs.expected = runs.finish("whole")
    for what, flags in (("beside", ()), ("waiting", ("--sync-checkpoints",))):

        def is_saving(_, what=what):
            path = runs.path(what)
            return os.path.isdir(path) and any(".tmp" in name for name in os.listdir(path))

        runs.try_phase(what, is_saving, 143, "--checkpoint-every", 5, *flags)


class Evaluating(Phases):
    """An evaluation takes many times as long as the updates before it."""

    def __init__(self, tally, folder, name, updates, samples, flags=()):
        super().__init__(tally, folder, name, updates, 64, 4096, EVALUATIONS, flags)
        self.save_data("eval.npz", samples, 64)
        self.flags = (*self.flags, "--set", "eval.data=npz:" + self.path("eval.npz"))
        self.expected = self.finish("whole")

    def is_evaluating(self, folder):
        """Whether a stopped run is, long since: its line comes after that."""
        before = len(self.read_log(folder))
        if before % EVERY == EVERY - 1 and before == self.seen:
            return True
        self.seen = before
        return False

    def send_evaluating(self, process, folder, number, to=lambda process: process.pid):
        self.seen = -1
        self.send_in(process, lambda _: self.is_evaluating(folder), number, to)
        return self.seen + 1

    def leave(self, to=lambda process: process.pid):
        process = self.begin("left")
        step = self.send_evaluating(process, "left", signal.SIGTERM, to)
        self.ends("left", process, 143)
        self.check("left: checkpoint", self.list_steps("left") == [step])
        self.check("left: no values", step not in self.read_values("left", "eval"))
        self.go_on("left", "left")


def test_evaluation(tally, folder):
    runs = Evaluating(tally, folder, "evaluation", 2 * EVERY, 8_000)
    runs.leave()
    process = runs.begin("saved", "--checkpoint-every", 10**6)
    step = runs.send_evaluating(process, "saved", signal.SIGUSR1)
    wait_until(lambda: runs.list_steps("saved") or process.poll() is not None)
    process.kill()
    process.communicate()
    out = harness.call("tcc-run", "checkpoints", runs.path("saved"), "--json")
    found = [(one["step"], "evaluation" in one) for one in json.loads(out)["checkpoints"]]
    runs.check("saved: in the midst", found == [(step, step > EVERY)], found)
    runs.go_on("saved", "saved")


def test_ranks(tally, folder):
    """Whichever rank is asked, all leave the evaluation, which is the last one."""
    runs = Evaluating(tally, folder, "ranks", EVERY, 50_000, ("--ranks", 2))
    runs.leave(to=lambda process: find_descendants(process.pid)[-1])


def main():
    tally = harness.Tally()
    # What looks at a run stands behind nothing else that the machine does.
    set_priority(-10)
    with tempfile.TemporaryDirectory() as folder:
        for test in (test_beginning, test_saving, test_evaluation, test_ranks):
            test(tally, folder)
    tally.close()


if __name__ == "__main__":
    main()
