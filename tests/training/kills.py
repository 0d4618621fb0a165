"""Runs that are killed while they save: kills.py [KILLS [RANKED KILLS [SEED]]]

SIGKILL at random times, with a checkpoint after every update written beside training;
the run that goes on at last must have the bits, the losses and the batches of one that
was left alone, and leave nothing behind. Then two ranks that divide the optimizer's
state, of which all are killed, or one.
"""

import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import harness
from processes import ENVIRONMENT, find_descendants, wait_until
from training.runs import Runs

LONGEST = 0.05  # seconds from a new checkpoint to the kill
UPDATES_EACH = 12  # more than are kept from one kill to the next
WIDTH = 512


class Suite(Runs):
    def __init__(self, tally, folder, name, kills, chance, recipe="", flags=()):
        # A state of 3.2 MB: a save takes longer than an update.
        super().__init__(tally, folder, name, kills * UPDATES_EACH, WIDTH, WIDTH, recipe, flags)
        self.kills, self.chance = kills, chance

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

    def compare(self):
        expected = self.finish("whole")
        found = [self.kill_once("killed") for _ in range(self.kills)]
        last = max(self.list_steps("killed"))
        self.check("was killed before its end", last < self.updates, last)
        result = self.finish("killed", "--resume", "--keep-last", 1)
        self.check("the same weights", result == expected)
        names = os.listdir(self.path("killed"))
        self.check("nothing is left", names == [f"step-{self.updates}"], names)
        whole, killed = self.read_values("whole"), self.read_values("killed")
        lines = len(self.read_log("killed"))
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
