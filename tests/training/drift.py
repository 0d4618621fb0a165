"""Runs that go on elsewhere than they began: drift.py [long]

From a checkpoint in the midst of a run: with other threads, a memory budget that makes
segments compute again, in bfloat16 and between the CPU and the emulated GPU, each way,
the losses are those of the run that was left alone, within the precision's bound. Where
the recipe or the model is another one, the run is refused by the keys that differ, and
the checkpoint stays as it is.
"""

import filecmp
import json
import os
import re
import shutil
import sys
import tempfile

import numpy as np

import harness
from training import run

HALF, ALL = 6, 18
SAME, CLOSE, HALVES = 0, 2e-5, 2e-2  # of a loss, relative

PARTS = {
    "loss": 'kind = "cross_entropy"',
    "optimizer": 'kind = "adamw"\nlr = 0.004\nweight_decay = 0.01',
    "schedule": 'kind = "cosine"\ntotal_steps = 40',
    "params": "ema = 0.9",
    "batch": "micro = 8",
    "precision": 'compute = "f32"',
}
# What is compiled in otherwise, and what the refusal says of it.
REFUSED = [
    ({"optimizer": 'kind = "adam"\nlr = 0.004\nweight_decay = 0.01'},
     ['optimizer.kind = "adam", was "adamw"']),
    ({"precision": 'compute = "bf16"'}, ['precision.compute = "bf16", was "f32"']),
    ({"params": "ema = 0.9\nfreeze = ['*bias']"}, ["params.freeze = "]),
    ({"params": ""}, ["params.ema"]),
    ({"optimizer": 'kind = "lion"\nlr = 0.004', "precision": 'compute = "f16"'},
     ["optimizer.kind", "optimizer.eps", "precision.compute"]),
    ({"batch": "micro = 16"}, ['batch.micro = "16", was "8"']),
    ({"loss": 'kind = "cross_entropy"\nlabel_smoothing = 0.1'}, ["label_smoothing"]),
]  # fmt: skip


def write_recipe(path, parts):
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(f"[{name}]\n{text}\n" for name, text in parts.items() if text)


class Suite:
    def __init__(self, tally, folder):
        self.tally, self.folder = tally, folder
        self.data = "npz:" + self.path("data.npz")
        run.save_cnn(self.path("model.onnx"))
        samples = np.random.default_rng(5)
        np.savez(self.path("data.npz"), x=samples.standard_normal((100, 2, 6, 5)).astype("f4"),
                 labels=samples.integers(0, run.CLASSES, 100))  # fmt: skip

    def path(self, name):
        return os.path.join(self.folder, name)

    def compile(self, name, *flags, **parts):
        """The path of the package."""
        package, done = self.try_compile(name, *flags, **parts)
        self.tally.check(f"{name}: compiles", done.code == 0, done.err)
        return package

    def try_compile(self, name, *flags, **parts):
        write_recipe(self.path("recipe.toml"), {**PARTS, **parts})
        package = self.path(name + ".tcc")
        return package, harness.run_tool("tcc", self.path("model.onnx"), "-q", "--train",
                                         self.path("recipe.toml"), *flags, "-o",
                                         package)  # fmt: skip

    def find_smallest_budget(self):
        _, done = self.try_compile("none", "--memory-budget=1KiB")
        return re.search(r"the smallest budget is (\d+) bytes", done.err)[1]

    def run(self, package, folder, steps, *flags):
        device = ["--device", "emulated"] if "cuda" in os.path.basename(package) else []
        return harness.run_tool("tcc-run", "train", package, "--data", self.data, "--steps", steps,
                                "--checkpoint-dir", self.path(folder), "--log-dir",
                                self.path(folder), *device, *flags)  # fmt: skip

    def train(self, package, folder, steps, *flags):
        """The loss of each update that it made."""
        done = self.run(package, folder, steps, *flags)
        self.tally.check(f"{folder}: trains", done.code == 0, done.err)
        with open(self.path(f"{folder}/metrics.jsonl"), encoding="utf-8") as file:
            rows = [json.loads(line) for line in file]
        return np.array([row["loss"] for row in rows])

    def begin_like(self, begun, folder):
        """A run that has done what another one had, HALF updates."""
        shutil.copytree(self.path(begun), self.path(folder))

    def check_goes_on(self, name, begun, package, losses, bound, *flags):
        self.begin_like(begun, name)
        found = self.train(package, name, ALL, "--resume", *flags)
        error = np.max(np.abs(found / losses - 1)) if len(found) == len(losses) else np.inf
        self.tally.check(f"{name}: the same losses", error <= bound, f"{error:.1e}, not {bound}")
        print(f"{name}: losses differ by {error:.1e}")

    def check_refused(self, name, package, says, folder="cpu-half"):
        before, after = self.path(f"{folder}/step-{HALF}"), self.path(f"{name}/step-{HALF}")
        self.begin_like(folder, name)
        done = self.run(package, name, ALL, "--resume")
        ok = done.code == 2 and all(text in done.err for text in says)
        self.tally.check(f"{name}: refused", ok, f"{done.code}: {done.err}")
        keys = re.findall(r"^  (?:no )?([a-z_.]+)", done.err, re.MULTILINE)
        self.tally.check(f"{name}: those keys alone", len(keys) <= len(says), keys)
        same = filecmp.dircmp(before, after)
        same = not same.diff_files and not same.left_only and not same.right_only
        self.tally.check(f"{name}: nothing is changed", same)


def test_continuing(suite):
    cpu, cuda = suite.compile("cpu"), suite.compile("cuda", "--target=cuda", "--emulate")
    losses = suite.train(cpu, "whole", ALL)
    for package, folder in ((cpu, "cpu-half"), (cuda, "cuda-half")):
        suite.train(package, folder, HALF)
    tight = suite.compile("tight", f"--memory-budget={suite.find_smallest_budget()}")
    info = json.loads(harness.call("tcc-run", "info", tight, "--json"))
    suite.tally.check("a budget computes again", len(info["memory"]["recomputed"]) > 0)
    suite.check_goes_on("threads", "cpu-half", cpu, losses, SAME, "--threads", 1)
    suite.check_goes_on("budget", "cpu-half", tight, losses, CLOSE)
    suite.check_goes_on("to cuda", "cpu-half", cuda, losses, CLOSE)
    suite.check_goes_on("to cpu", "cuda-half", cpu, losses, CLOSE)


def test_halves(suite):
    parts = {"precision": 'compute = "bf16"'}
    cpu = suite.compile("cpu-bf16", **parts)
    cuda = suite.compile("cuda-bf16", "--target=cuda", "--emulate", **parts)
    losses = suite.train(cpu, "whole-bf16", ALL)
    suite.train(cpu, "bf16-half", HALF)
    suite.check_goes_on("bf16 to cuda", "bf16-half", cuda, losses, HALVES)


def test_refusals(suite, count):
    for number, (parts, says) in enumerate(REFUSED[:count]):
        suite.check_refused(f"refused-{number}", suite.compile("other", **parts), says)


def change_manifest(path, change):
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    change(document)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(document, file)


def test_order(suite):
    """Another order of samples is refused; other samples are noted."""
    cpu = suite.compile("cpu")
    changes = {
        "order": lambda document: document["data"].update(order=1),
        "no record": lambda document: document.pop("data"),
        "samples": lambda document: document["data"].update(samples=99),
    }
    for name, change in changes.items():
        for flags in ((), ("--no-shuffle",)):
            folder = " ".join((name, *flags))
            suite.begin_like("cpu-half", folder)
            change_manifest(suite.path(f"{folder}/step-{HALF}/manifest.json"), change)
            done = suite.run(cpu, folder, ALL, "--resume", *flags)
            is_refused = name != "samples" and not flags
            ok = done.code == (2 if is_refused else 0)
            ok &= ("has order 1 of shuffled samples" in done.err) == is_refused
            ok &= ("had 99: they come" in done.err) == (name == "samples" and not flags)
            suite.tally.check(folder, ok, f"{done.code}: {done.err}")


def main(is_long):
    tally = harness.Tally()
    with tempfile.TemporaryDirectory() as folder:
        suite = Suite(tally, folder)
        test_continuing(suite)
        if is_long:
            test_halves(suite)
        test_refusals(suite, None if is_long else 2)
        test_order(suite)
    tally.close()


if __name__ == "__main__":
    main(sys.argv[1:] == ["long"])
