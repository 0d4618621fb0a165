"""Losses that jump, and runs that return to the state before: spikes.py

A batch whose inputs are many deviations larger than all others is left out: the run must
have the bits of one whose data never had it, over an interruption and by two ranks, too.
"""

import hashlib
import json
import os
import re
import tempfile

import numpy as np

import harness
from training import run

MICRO, UPDATES, BROKEN, Z, EVERY = 8, 120, 60, 8, 25
SETTINGS = ["--set", f"spike_z={Z}", "--set", f"rollback_every={EVERY}"]

RECIPE = """
[loss]
kind = "cross_entropy"
[optimizer]
kind = "sgd"
lr = 0.05
momentum = 0.9
[batch]
micro = 8
"""


def make_data():
    """Of as many batches as two ranks take, of a relation that can be learned."""
    random = np.random.default_rng(2)
    x = random.standard_normal(((2 * UPDATES + 8) * MICRO, 7)).astype("f4")
    labels = (x @ random.standard_normal((7, run.CLASSES))).argmax(1)
    return x, labels


def batches(first, count=1):
    return slice(first * MICRO, (first + count) * MICRO)


class Suite:
    def __init__(self, tally, folder):
        self.tally, self.folder = tally, folder
        run.save_mlp(self.path("model.onnx"))
        x, labels = make_data()
        self.save("clean", np.delete(x, batches(BROKEN), 0), np.delete(labels, batches(BROKEN)))
        self.save("ranks", np.delete(x, batches(BROKEN, 2), 0),
                  np.delete(labels, batches(BROKEN, 2)))  # fmt: skip
        broken = x.copy()
        broken[batches(BROKEN)] *= 100
        self.save("broken", broken, labels)
        broken[batches(BROKEN, 10)] *= 100
        self.save("hopeless", broken, labels)
        with open(self.path("recipe.toml"), "w", encoding="utf-8") as file:
            file.write(RECIPE)
        self.compile("train.tcc")

    def path(self, name):
        return os.path.join(self.folder, name)

    def save(self, name, x, labels):
        np.savez(self.path(name + ".npz"), x=x, labels=labels)

    def compile(self, package, *flags):
        harness.call("tcc", self.path("model.onnx"), "--train=" + self.path("recipe.toml"),
                     "-q", "-o", self.path(package), *flags)  # fmt: skip

    def check(self, name, ok, message=""):
        return self.tally.check(name, bool(ok), str(message))

    def evaluate(self, name):
        """The loss over all clean data of what was trained."""
        out = harness.call("tcc-run", "eval", self.path("train.tcc"), "--data",
                           "npz:" + self.path("clean.npz"), "--init",
                           self.path(name + ".safetensors"), "--json")  # fmt: skip
        return json.loads(out)["loss"]

    def train(self, name, data, *flags, steps=UPDATES, code=0, package="train.tcc"):
        """The SHA-256 of what was trained, the final loss and stderr."""
        export = self.path(name + ".safetensors")
        out = harness.run_tool("tcc-run", "train", self.path(package), "--no-shuffle", "--data",
                               "npz:" + self.path(data + ".npz"), "--steps", steps, "--threads",
                               1, "--export", export, "--json", *flags)  # fmt: skip
        self.check(f"{name}: exit {code}", out.code == code, f"{out.code}: {out.err}")
        if code != 0:
            return None, None, out.err
        with open(export, "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
        return digest, json.loads(out.out), out.err


def check_left_out(suite):
    clean, _, _ = suite.train("clean", "clean", *SETTINGS)
    left, _, err = suite.train("left out", "broken", *SETTINGS, "--log-dir",
                                   suite.path("log"))  # fmt: skip
    says = (rf"the loss of update {BROKEN + 1} is \S+, and \S+ \+- \S+ before it: "
            rf"returning to update {BROKEN // EVERY * EVERY} and leaving out its batches")
    suite.check("says so", re.search(says, err), err)
    suite.check("the bits of a run without it", left == clean)
    suite.train("kept", "broken")
    expected, found, hurt = map(suite.evaluate, ("clean", "left out", "kept"))
    print(f"loss {expected:.4f} without the batch, {found:.4f} with it left out, {hurt:.4f} "
          "with it")  # fmt: skip
    suite.check("within 2 %", abs(found - expected) <= 0.02 * expected, found)
    suite.check("it matters", abs(hurt - expected) > 0.02 * expected, hurt)
    plain, _, _ = suite.train("plain", "clean")
    suite.check("nothing else changes", plain == clean)
    with open(suite.path("log/metrics.jsonl"), encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    spikes = [row["step"] for row in rows if "spike" in row]
    redone = [row["step"] for row in rows if "redone" in row]
    suite.check("the spike in the log", spikes == [BROKEN + 1], spikes)
    first = BROKEN // EVERY * EVERY + 1
    suite.check("made again", redone[0] == first and redone == sorted(redone), redone)
    return clean


def check_resumes(suite, clean):
    """Interrupted between the copy and the spike, at the spike, and after it."""
    for steps in (BROKEN - 5, BROKEN, BROKEN + 20):
        folder = suite.path(f"run-{steps}")
        flags = [*SETTINGS, "--checkpoint-dir", folder]
        suite.train(f"until {steps}", "broken", *flags, steps=steps)
        resumed, _, _ = suite.train(f"from {steps}", "broken", *flags, "--resume")
        suite.check(f"the same bits after an interruption at {steps}", resumed == clean)
    # Whoever looks for spikes no more does not take what was left out, either.
    folder = suite.path("kept out")
    suite.train("with", "broken", *SETTINGS, "--checkpoint-dir", folder, steps=BROKEN + 20)
    without, _, _ = suite.train("without", "broken", "--checkpoint-dir", folder, "--resume")
    suite.check("stays left out without spike_z", without == clean)


def check_ranks(suite):
    flags = [*SETTINGS, "--ranks", 2]
    clean, _, _ = suite.train("clean ranks", "ranks", *flags)
    left, _, _ = suite.train("ranks", "broken", *flags)
    suite.check("two ranks leave out the same", left == clean)


def check_refusals(suite):
    _, _, err = suite.train("hopeless", "hopeless", *SETTINGS, code=6)
    suite.check("gives up", "for the 4th time since update 50" in err, err)
    for setting, says in (("spike_z=x", "spike_z is 'x', expected a number of deviations"),
                          ("rollback_every=0", "rollback_every is '0', expected a number")):
        _, _, err = suite.train(setting, "clean", "--set", setting, code=2)
        suite.check(f"refuses {setting}", says in err, err)
    done = harness.run_tool("tcc", suite.path("model.onnx"), "--memory-budget=1",
                            "--train=" + suite.path("recipe.toml"))  # fmt: skip
    smallest = re.search(r"the smallest budget is (\d+) bytes", done.err)[1]
    suite.compile("tight.tcc", "--memory-budget=" + smallest)
    _, _, err = suite.train("tight", "clean", *SETTINGS, package="tight.tcc", code=7)
    suite.check("no room", "spike_z: with a copy of the variables" in err, err)


def main():
    tally = harness.Tally()
    with tempfile.TemporaryDirectory() as folder:
        suite = Suite(tally, folder)
        clean = check_left_out(suite)
        check_resumes(suite, clean)
        check_ranks(suite)
        check_refusals(suite)
    tally.close()


if __name__ == "__main__":
    main()
