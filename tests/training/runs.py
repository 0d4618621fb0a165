"""Runs of one small package that are ended before their time, and go on."""

import hashlib
import json
import os

import numpy as np

import harness
from processes import ENVIRONMENT
from training import run

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


class Runs:
    """Of a perceptron of two layers, each with a folder of checkpoints and one of logs."""

    def __init__(self, tally, folder, name, updates, inputs, hidden, recipe="", flags=()):
        self.tally, self.name, self.updates, self.flags = tally, name, updates, flags
        self.folder = os.path.join(folder, name)
        os.mkdir(self.folder)
        run.save_mlp(self.path("model.onnx"), inputs, hidden)
        self.save_data("data.npz", 1000, inputs)
        with open(self.path("recipe.toml"), "w", encoding="utf-8") as file:
            file.write(RECIPE + recipe)
        harness.call("tcc", self.path("model.onnx"), "-q", "--train=" + self.path("recipe.toml"),
                     "-o", self.path("train.tcc"))  # fmt: skip

    def path(self, name):
        return os.path.join(self.folder, name)

    def save_data(self, name, count, inputs):
        samples = np.random.default_rng(4)
        np.savez(self.path(name), labels=samples.integers(0, run.CLASSES, count),
                 x=samples.standard_normal((count, inputs)).astype("f4"))  # fmt: skip

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
        """The digest of the weights at the end."""
        export = self.path(folder + ".safetensors")
        harness.call("tcc-run", *self.list_arguments(folder, "--export", export, *flags),
                     env=ENVIRONMENT)  # fmt: skip
        with open(export, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()

    def read_log(self, folder):
        """Whole lines, as there are."""
        try:
            with open(self.path(folder + "-log/metrics.jsonl"), encoding="utf-8") as file:
                return [json.loads(line) for line in file if line.endswith("\n")]
        except FileNotFoundError:
            return []

    def read_values(self, folder, key="loss"):
        """Of each update that has one, as it was made last."""
        return {row["step"]: row[key] for row in self.read_log(folder) if key in row}
