"""Runs that are killed while they save: kills.py [KILLS [RANKED KILLS [SEED]]]

SIGKILL at random times, with a checkpoint after every update written beside training;
the run that goes on at last must have the bits, the losses and the batches of one that
was left alone, and leave nothing behind. Then two ranks that divide the optimizer's
state, of which all are killed, or one.
"""

import hashlib
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

import harness
from processes import ENVIRONMENT, find_descendants, wait_until
from training import run

LONGEST = 0.05  # seconds from a new checkpoint to the kill
UPDATES_EACH = 12  # more than are kept from one kill to the next
WIDTH = 512

RECIPE = """
seed = 3
[loss]
kind = "cross_entropy"
[optimizer]
kind = "adamw"
lr = 0.001
[batch]
micro = 4
"""


class Suite:
    def __init__(self, tally, folder, name, kills, chance, recipe="", flags=()):
        self.tally, self.name, self.chance, self.flags = tally, name, chance, flags
        self.kills, self.updates = kills, kills * UPDATES_EACH
        self.folder = os.path.join(folder, name)
        os.mkdir(self.folder)
        # A state of 3.2 MB: a save takes longer than an update.
        run.save_mlp(self.path("model.onnx"), WIDTH, WIDTH)
        samples = np.random.default_rng(4)
        np.savez(self.path("data.npz"), labels=samples.integers(0, run.CLASSES, 1000),
                 x=samples.standard_normal((1000, WIDTH)).astype("f4"))  # fmt: skip
        with open(self.path("recipe.toml"), "w", encoding="utf-8") as file:
            file.write(RECIPE + recipe)
        harness.call("tcc", self.path("model.onnx"), "-q", "--train=" + self.path("recipe.toml"),
                     "-o", self.path("train.tcc"))  # fmt: skip

    def path(self, name):
        return os.path.join(self.folder, name)

    def check(self, what, ok, found=""):
        self.tally.check(f"{self.name}: {what}", bool(ok), str(found))

    def list_arguments(self, folder, *flags):
        return ["train", self.path("train.tcc"), "--data", "npz:" + self.path("data.npz"),
                "--steps", self.updates, "--threads", 1, "-q", "--checkpoint-dir",
                self.path(folder), "--log-dir", self.path(folder + "-log"), *self.flags,
                *flags]  # fmt: skip

    def list_steps(self, folder):
        try:
            names = os.listdir(self.path(folder))
        except FileNotFoundError:
            return []
        return sorted(int(name[5:]) for name in names if name[:5] == "step-" and name[5:].isdigit())

    def finish(self, folder, *flags):
        export = self.path(folder + ".safetensors")
        harness.call("tcc-run", *self.list_arguments(folder, "--export", export, *flags),
                     env=ENVIRONMENT)  # fmt: skip
        with open(export, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()

    def kill_once(self, folder):
        """Seconds to the first new checkpoint, and what was left half written."""
        before = max(self.list_steps(folder), default=0)
        start = time.monotonic()
        flags = self.list_arguments(folder, "--checkpoint-every", 1, "--keep-last", 3,
                                    "--resume-if-any")  # fmt: skip
        process = subprocess.Popen([os.path.join(harness.BIN, "tcc-run"), *map(str, flags)],
                                   env=ENVIRONMENT, start_new_session=True,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)  # fmt: skip
        has_begun = wait_until(lambda: max(self.list_steps(folder), default=0) > before
                               or process.poll() is not None)  # fmt: skip
        seconds = time.monotonic() - start
        self.check("goes on", has_begun and process.poll() is None, process.poll())
        time.sleep(self.chance.uniform(0, LONGEST))
        children = find_descendants(process.pid)
        if children and self.chance.random() < 0.5:
            os.kill(self.chance.choice(children), signal.SIGKILL)
        else:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)
        left = [name for name in os.listdir(self.path(folder)) if "." in name]
        return seconds, bool(left)

    def read_losses(self, folder):
        """Of each update, as it was made last."""
        with open(self.path(folder + "-log/metrics.jsonl"), encoding="utf-8") as file:
            rows = [json.loads(line) for line in file]
        return {row["step"]: row["loss"] for row in rows}, len(rows)

    def compare(self):
        expected = self.finish("whole")
        found = [self.kill_once("killed") for _ in range(self.kills)]
        last = max(self.list_steps("killed"))
        self.check("was killed before its end", last < self.updates, last)
        result = self.finish("killed", "--resume", "--keep-last", 1)
        self.check("the same weights", result == expected)
        names = os.listdir(self.path("killed"))
        self.check("nothing is left", names == [f"step-{self.updates}"], names)
        whole, _ = self.read_losses("whole")
        killed, lines = self.read_losses("killed")
        self.check("each update", list(whole) == [*range(1, self.updates + 1)], len(whole))
        self.check("the same batches", whole == killed)
        seconds = statistics.median(seconds for seconds, _ in found)
        partial = sum(is_left for _, is_left in found)
        print(f"{self.name}: {self.kills} kills, {partial} of them in a save, after {last} of "
              f"{self.updates} updates, {lines - self.updates} of them made again; "
              f"{seconds:.2f} s to the first new checkpoint")  # fmt: skip
        return partial


def main(kills=10, ranked=2, seed=None):
    seed = random.randrange(10**6) if seed is None else int(seed)
    print(f"seed {seed}")
    chance = random.Random(seed)
    tally = harness.Tally()
    with tempfile.TemporaryDirectory() as folder:
        partial = Suite(tally, folder, "one", int(kills), chance).compare()
        tally.check("some kills are in a save", partial > 0)
        Suite(tally, folder, "ranks", int(ranked), chance,
              "[parallel]\nzero = 1\ndata = 2\n", ["--ranks", 2]).compare()  # fmt: skip
    tally.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
