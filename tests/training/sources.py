"""Training on data of each kind: sources.py

The same samples from an npz archive, a folder of npy files (in narrower types, too) and a
safetensors file give the same weights, also over an interruption and by tcc-run eval.
Files that lack something, lie about their sizes, or shrink while they are read end a run
with one line and the documented code.
"""

import json
import os
import shutil
import tempfile

import numpy as np
from safetensors.numpy import save_file

import harness
from training import run

COUNT, STEPS = 100, 12


class Suite:
    def __init__(self, tally, folder):
        self.tally, self.folder = tally, folder
        run.save_mlp(self.path("model.onnx"))
        with open(self.path("recipe.toml"), "w", encoding="utf-8") as file:
            file.write(run.RECIPE.format(micro=8))
        harness.call("tcc", self.path("model.onnx"), "-q", "--train=" + self.path("recipe.toml"),
                     "-o", self.path("train.tcc"))  # fmt: skip
        samples = np.random.default_rng(6)
        # Values that f16 has, so that it may hold them.
        x = samples.integers(-99, 99, (COUNT, 7)).astype("f4") / 32
        arrays = {"x": x, "labels": samples.integers(0, run.CLASSES, COUNT)}
        narrow = {"x": x.astype("f2"), "labels": arrays["labels"].astype("u1")}
        np.savez(self.path("data.npz"), **arrays)
        np.savez_compressed(self.path("narrow.npz"), **narrow)
        for name, of in (("npy", arrays), ("narrow", narrow)):
            os.mkdir(self.path(name))
            for key, array in of.items():
                np.save(self.path(f"{name}/{key}.npy"), array)
        save_file(arrays, self.path("data.safetensors"))
        self.specs = {
            "npz": "npz:" + self.path("data.npz"),
            "narrow npz": "npz:" + self.path("narrow.npz"),
            "npy": "npy:" + self.path("npy"),
            "narrow npy": "npy:" + self.path("narrow"),
            "safetensors": "safetensors:" + self.path("data.safetensors"),
        }

    def path(self, name):
        return os.path.join(self.folder, name)

    def train(self, spec, folder, steps, *flags):
        return harness.run_tool("tcc-run", "train", self.path("train.tcc"), "--data", spec, "--steps",
                                steps, "--checkpoint-dir", self.path(folder), *flags)  # fmt: skip

    def read_state(self, folder):
        return run.read_tensors(self.path(f"{folder}/step-{STEPS}/state.safetensors"))


def test_kinds(suite):
    whole, results = {}, {}
    for name, spec in suite.specs.items():
        suite.train(spec, f"{name} whole", STEPS)
        done = suite.train(spec, f"{name} half", STEPS // 2, "--json")
        wait = json.loads(done.out)["data_wait_s"]
        suite.tally.check(f"{name}: says how long it waits", 0 < wait < 1, wait)
        suite.train(spec, f"{name} half", STEPS, "--resume")
        whole[name] = suite.read_state(f"{name} whole")
        resumed = suite.read_state(f"{name} half")
        suite.tally.check(f"{name}: the same weights", whole[name] == whole["npz"])
        suite.tally.check(f"{name}: over an interruption", resumed == whole[name])
        results[name] = harness.call("tcc-run", "eval", suite.path("train.tcc"), "--data", spec)
        suite.tally.check(f"{name}: evaluates", results[name] == results["npz"], results[name])


def change(path, to):
    """The file with other bytes than it has."""
    with open(path, "rb") as file:
        data = file.read()
    with open(path, "wb") as file:
        file.write(to(data))


HOSTILE = {
    "empty": (lambda data: b"", 3),
    "half": (lambda data: data[: len(data) // 2], 3),
    "no header": (lambda data: b"\xff" * len(data), 3),
    "more than it says": (lambda data: data + b"\0" * 64, 3),
}


def test_hostile(suite):
    for kind, place, file in (("npz", "data.npz", ""), ("npy", "npy", "x.npy"),
                              ("safetensors", "data.safetensors", "")):  # fmt: skip
        for name, (to, code) in HOSTILE.items():
            if kind != "npy" and name == "more than it says":
                continue  # which both may have: an archive as a comment
            copy = suite.path("copy-" + place)
            if file:
                shutil.copytree(suite.path(place), copy, dirs_exist_ok=True)
            else:
                shutil.copy(suite.path(place), copy)
            change(os.path.join(copy, file) if file else copy, to)
            done = suite.train(f"{kind}:{copy}", "none", 1)
            ok = done.code == code and done.err.count("\n") == 1 and (file or place) in done.err
            suite.tally.check(f"{kind}, {name}", ok, f"{done.code}: {done.err}")
        done = suite.train(f"{kind}:{suite.path('nowhere')}", "none", 1)
        ok = done.code in (3, 5) and done.err.count("\n") == 1 and "nowhere" in done.err
        suite.tally.check(f"{kind}, none", ok, f"{done.code}: {done.err}")


def main():
    tally = harness.Tally()
    with tempfile.TemporaryDirectory() as folder:
        suite = Suite(tally, folder)
        test_kinds(suite)
        test_hostile(suite)
    tally.close()


if __name__ == "__main__":
    main()
