"""Training from photos beside a beginner's loop in PyTorch: beginner.py [--rounds N] [--steps N]

The network and the shards of examples/train-images: tcc compiles, trains and tests from the command
line; beginner_loop.py trains as many updates from the same first parameters, on the same pictures
in a folder for each class. Times are those of whole processes, in turns. Then resnet18 of 224 x 224
pixels: how much longer an update takes on shards than on an archive in memory.
"""

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time

import numpy as np
import onnx

import harness
from bench import load, torch_models

EXAMPLE = os.path.join(harness.ROOT, "examples/train-images")
BATCH, SIDE = 16, 224  # of resnet18
RESNET_RECIPE = """
[loss]
kind = "cross_entropy"
[optimizer]
kind = "sgd"
lr = 0.01
momentum = 0.9
"""


def unpack(shards, folder):
    """A folder for each class."""
    for shard in shards:
        name = os.path.basename(shard).removesuffix(".tar")
        with tarfile.open(shard) as archive:
            files = {member.name: archive.extractfile(member).read() for member in archive}
        for key in {file.split(".")[0] for file in files}:
            own = os.path.join(folder, files[key + ".cls"].decode())
            os.makedirs(own, exist_ok=True)
            with open(os.path.join(own, f"{name}-{key}.jpg"), "wb") as stream:
                stream.write(files[key + ".jpg"])


def clock(*command, **options):
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=True, **options)
    return time.perf_counter() - start, done.stdout


class Photos:
    def __init__(self, folder, steps):
        self.folder, self.steps = folder, steps
        sys.path.insert(0, EXAMPLE)
        importlib.import_module("prepare").main(folder)
        for name in ("data.toml", "test.toml", "recipe.toml"):
            with open(os.path.join(EXAMPLE, name)) as file, open(self.path(name), "w") as to:
                to.write(file.read().replace("steps = 500", f"steps = {steps}"))
        unpack([self.path(f"train-{i}.tar") for i in range(4)], self.path("train"))
        unpack([self.path("test.tar")], self.path("test"))
        model = onnx.load(self.path("model.onnx"))
        np.savez(self.path("model.npz"), **{tensor.name: onnx.numpy_helper.to_array(tensor)
                                            for tensor in model.graph.initializer})  # fmt: skip

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_tcc(self):
        """Seconds of compiling, and of training and testing; the accuracy."""
        tool = {name: os.path.join(harness.BIN, name) for name in ("tcc", "tcc-run")}
        compiled, _ = clock(tool["tcc"], "model.onnx", "--dim", f"batch={load.load_worker.BATCH}", "-q",
                            "--train=recipe.toml", "-o", "images.tcc", "--cache-dir=none", cwd=self.folder)  # fmt: skip
        trained, _ = clock(tool["tcc-run"], "train", "images.tcc", "--data", "data.toml", "-q", "--export",
                           "trained.safetensors", cwd=self.folder)  # fmt: skip
        tested, said = clock(tool["tcc-run"], "eval", "images.tcc", "--data", "test.toml", "--json",
                             "--init", "trained.safetensors", cwd=self.folder)  # fmt: skip
        return compiled, trained + tested, json.loads(said)["accuracy"]

    def run_loop(self):
        script = os.path.join(harness.ROOT, "tests/bench/beginner_loop.py")
        seconds, said = clock(sys.executable, script, self.path("model.npz"), self.path("train"),
                              self.path("test"), str(self.steps))  # fmt: skip
        return seconds, float(said)


def compare_loops(folder, options):
    photos = Photos(folder, options.steps)
    rounds = [(photos.run_tcc(), photos.run_loop()) for _ in range(options.rounds)]
    compiled, trained, accuracy = (statistics.median(tcc[i] for tcc, _ in rounds) for i in range(3))
    seconds, theirs = (statistics.median(loop[i] for _, loop in rounds) for i in range(2))
    ratio = statistics.median(loop[0] / tcc[1] for tcc, loop in rounds)
    whole = statistics.median(loop[0] / (tcc[0] + tcc[1]) for tcc, loop in rounds)
    print(f"tcc compiles for {compiled:.1f} s, trains and tests for {trained:.1f} s: {accuracy:.1%}; "
          f"the loop takes {seconds:.1f} s: {theirs:.1%}; {ratio:.2f} times as long, {whole:.2f} with "
          "compiling")  # fmt: skip


def time_updates(folder, package, data, steps, *settings):
    """The median of updates after the first ones, in seconds, and what they waited for data."""
    log = os.path.join(folder, "log")
    harness.call("tcc-run", "train", package, "--data", data, "--steps", steps, "-q", "--log-dir", log,
                 "--threads", 1, *settings, timeout=3000)  # fmt: skip
    with open(os.path.join(log, "metrics.jsonl"), encoding="utf-8") as file:
        rows = [json.loads(line) for line in file][3:]
    return (statistics.median(BATCH / row["samples_per_s"] for row in rows),
            statistics.median(row["data_wait_s"] for row in rows))  # fmt: skip


def compare_memory(folder, options):
    load.write_pictures(folder, 256)
    torch_models.export("resnet18", folder)
    recipe, package = os.path.join(folder, "recipe.toml"), os.path.join(folder, "resnet18.tcc")
    with open(recipe, "w") as file:
        file.write(RESNET_RECIPE)
    harness.call("tcc", os.path.join(folder, "model.onnx"), "-q", f"--train={recipe}", "-o", package,
                 timeout=3000)  # fmt: skip
    (entry,) = [e for e in json.loads(harness.call("tcc-run", "info", package, "--json"))["entries"]
                if e["name"] == "train_step"]  # fmt: skip
    image, label = (spec["name"] for spec in entry["inputs"])
    plan, arrays = os.path.join(folder, "data.toml"), os.path.join(folder, "data.npz")
    shards = "webdataset:" + ",".join(load.load_worker.shards(folder))
    with open(plan, "w") as file:
        file.write(f"""[data]
source = "{shards}"
map = {{"{image}" = "jpg", "{label}" = "cls"}}
[data.train]
"{image}" = ["random_resized_crop {SIDE}", "flip"]
""")
    pixels = np.random.default_rng(0).random((64, 3, SIDE, SIDE), "f4")
    np.savez(arrays, **{image: pixels, label: np.zeros(64, "i8")})
    rounds = [(time_updates(folder, package, plan, 12, "--set", "data.workers=1"),
               time_updates(folder, package, "npz:" + arrays, 12)) for _ in range(options.rounds)]  # fmt: skip
    ratio = statistics.median(shards[0] / memory[0] for shards, memory in rounds)
    wait = statistics.median(shards[1] for shards, _ in rounds)
    update = statistics.median(shards[0] for shards, _ in rounds)
    print(f"resnet18: an update of {update:.3f} s waits {wait:.4f} s for shards, and takes {ratio:.3f} "
          "times as long as on arrays in memory")  # fmt: skip


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=500)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        compare_loops(folder, options)
    with tempfile.TemporaryDirectory() as folder:
        compare_memory(folder, options)


if __name__ == "__main__":
    main()
