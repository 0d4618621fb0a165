"""The loader's API: loader.py PROGRAM

A program of the C++ API, which stands on the C one, gives the parameters that tcc-run gives of the
same data: all kinds of sources, plans with transforms and damaged samples, and samples of its own.
"""

import json
import os
import subprocess
import sys
import tempfile

import numpy as np

import harness
import transforms
from bench.worker import status_bytes
from spine.loaders import Loader, describe
from training import run

SEED, STEPS = 7, 12


class Loaders:
    def __init__(self, suite, program):
        self.suite, self.program = suite, program

    def run(self, data, *settings):
        return subprocess.run(
            [self.program, self.suite.path("net.tcc"), data, str(STEPS), str(SEED),
             self.suite.path("own.safetensors"), *settings],
            capture_output=True, text=True, cwd=self.suite.folder)  # fmt: skip

    def compare(self, name, data, *settings, own=None):
        """With the parameters of tcc-run, which takes `data` for the samples of `own`."""
        flags = [word for setting in settings for word in ("--set", "data." + setting)]
        done = self.suite.train(data, "--export", self.suite.path("run.safetensors"), "-q", *flags,
                                steps=STEPS)  # fmt: skip
        assert done.code == 0, done.err
        mine = self.run(own or data, *settings)
        same = mine.returncode == 0 and run.read_tensors(
            self.suite.path("own.safetensors")
        ) == run.read_tensors(self.suite.path("run.safetensors"))
        self.suite.tally.check(f"{name}: the same parameters", same, mine.stderr)
        return mine

    def refuse(self, name, code, said, data, *settings):
        done = self.run(data, *settings)
        is_right = done.returncode == code and said in done.stderr
        self.suite.tally.check(f"{name}: refused", is_right, f"{done.returncode}: {done.stderr}")


def test_memory(tally, folder):
    """What is resident does not grow over 100,000 batches that two workers read."""
    path = os.path.join(folder, "tokens.bin")
    np.random.default_rng(0).integers(0, 1000, 1_000_000).astype("u2").tofile(path)
    loader = Loader("tokens:" + path, [describe("x", "int64", (4, 16), False, 0),
                                       describe("y", "int64", (4, 16), True, 1)], "workers=2")  # fmt: skip
    for number in range(1000):
        loader.read(number)
    before = status_bytes("VmRSS")
    for number in range(1000, 100_000):
        loader.read(number)
    added = status_bytes("VmRSS") - before
    tally.check("memory stays as it is", added <= 1 << 20, f"{added} bytes more")
    loader.close()


def main(program):
    tally = harness.Tally()
    with tempfile.TemporaryDirectory() as folder:
        suite = transforms.Suite(tally, folder)
        loaders = Loaders(suite, program)
        lines = ["random_resized_crop 24 20", "flip"]
        plan = suite.plan("plan", lines)
        loaders.compare("plan", plan)
        loaders.compare("setting", plan, "train.x=['resize 24 20']", "workers=1")
        crops = transforms.scaled(suite.pixels([lambda i, d: transforms.resize(i, 24, 20)]))
        arrays = suite.save("data.npz", crops)
        loaders.compare("arrays", arrays)
        damaged = suite.write("damaged.toml", f"""
[data]
source = ["webdataset:{suite.damage()}"]
map = {{labels = "num"}}
on_bad = "skip"
[data.train]
x = "resize 24 20"
""")  # fmt: skip
        skipped = loaders.compare("skipped", damaged).stdout.splitlines()
        is_told = skipped[0] == "2" and len(skipped) == 3 and "its JPEG is damaged" in skipped[1]
        tally.check("skipped: counted and named", is_told, str(skipped))
        numbers = [np.full((3, 24, 20), np.float32(i) / np.float32(40)) for i in range(40)]
        suite.labels = [i % 5 for i in range(40)]
        whole = suite.save("own.npz", numbers)
        loaders.compare("own", whole, own="own")
        loaders.refuse("damaged", 3, "this sample is damaged", "damaged")
        told = loaders.run("damaged", "on_bad=skip", "workers=2").stdout
        tally.check("damaged: skipped", told == "1\nthis sample is damaged\n", told)
        loaders.refuse("own: another key", 2, "workers, depth, mix, on_bad and split", "own",
                       "train.x=flip")  # fmt: skip
        loaders.refuse("no kind", 2, "of no known kind", "nothing:x")
        loaders.refuse("no file", 5, "none.npz", "npz:none.npz")
        loaders.refuse("no data", 2, "neither data nor a plan", "")
        loaders.refuse("no setting", 2, "unknown key 'data.speed'", whole, "speed=1")
        test_memory(tally, folder)
        with open(suite.path("recipe.toml"), "a", encoding="utf-8") as file:
            file.write(f"""
[data]
source = "webdataset:{suite.path('train.tar')}"
map = {{labels = "num"}}
[data.train]
x = {json.dumps(lines)}
""")
        harness.call("tcc", suite.path("net.onnx"), "-q", "-o", suite.path("net.tcc"),
                     "--train=" + suite.path("recipe.toml"))  # fmt: skip
        loaders.compare("recipe", "")
        loaders.compare("recipe, another source", arrays, "train={}", "map={}")
    tally.close()


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]))
