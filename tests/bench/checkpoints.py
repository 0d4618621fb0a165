"""What checkpoints cost training: checkpoints.py [--megabytes N] [--rounds N]

A model whose variables have so many megabytes is trained on one thread: without
checkpoints, with those that a thread writes beside training, and with those that steps
wait for, in turns. Says how long the update waits at which a save begins, beside a copy of
as many bytes between memory that was touched before, and how much longer the updates are
during which it is written.
"""

import argparse
import json
import os
import statistics
import tempfile
import time

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import harness

LAYERS, SLOTS = 8, 3  # layers, and tensors of adamw for each parameter
BEFORE, SAVES = 4, 2  # updates that warm up, and saves that are measured

RECIPE = """
[loss]
kind = "mse"
[optimizer]
kind = "adamw"
lr = 1e-5
"""


def save_model(path, width):
    random = np.random.default_rng(0)
    nodes, weights, value = [], [], "x"
    for layer in range(LAYERS):
        name = f"layer{layer}.weight"
        matrix = random.standard_normal((width, width), dtype="f4") / np.sqrt(width)
        weights.append(numpy_helper.from_array(matrix.astype("f4"), name))
        nodes.append(helper.make_node("MatMul", [value, name], [f"y{layer}"]))
        value = f"y{layer}"
    shape = [1, width]
    graph = helper.make_graph(
        nodes, "model", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(value, TensorProto.FLOAT, shape)], weights)  # fmt: skip
    onnx.save(helper.make_model(graph, ir_version=10), path)


def time_copy(size):
    """Seconds of a copy on one thread."""
    source, target = np.ones(size, "u1"), np.zeros(size, "u1")
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        np.copyto(target, source)
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


class Bench:
    def __init__(self, folder, megabytes):
        self.folder = folder
        width = int((megabytes * 1e6 / (4 * LAYERS * SLOTS)) ** 0.5) // 16 * 16
        self.bytes = 4 * LAYERS * SLOTS * width * width
        save_model(self.path("model.onnx"), width)
        ones = np.ones((64, width), "f4")
        np.savez(self.path("data.npz"), x=ones, labels=ones)
        with open(self.path("recipe.toml"), "w", encoding="utf-8") as file:
            file.write(RECIPE)
        harness.call("tcc", self.path("model.onnx"), "--train=" + self.path("recipe.toml"), "-q",
                     "-o", self.path("train.tcc"), timeout=3000)  # fmt: skip

    def path(self, name):
        return os.path.join(self.folder, name)

    def train(self, name, updates, *flags):
        """The lines of the log, by update."""
        log = self.path(name)
        harness.call("tcc-run", "train", self.path("train.tcc"), "--data",
                     "npz:" + self.path("data.npz"), "--steps", BEFORE + updates, "-q",
                     "--threads", 1, "--log-dir", log, *flags, timeout=3000)  # fmt: skip
        with open(os.path.join(log, "metrics.jsonl"), encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def save(self, name, every, *flags):
        return self.train(name, every * SAVES + 1, "--checkpoint-every", every, "--keep-last", 1,
                          "--checkpoint-dir", self.path("checkpoints-" + name),
                          *flags)  # fmt: skip

    def measure(self, number):
        """Seconds: of an update alone, of those with a save beside them, of the waits."""
        alone = self.train(f"alone{number}", 10)
        update = statistics.median(1 / row["samples_per_s"] for row in alone[BEFORE:])
        waits = self.save(f"sync{number}", BEFORE, "--sync-checkpoints")
        wait = statistics.median(row["stall_s"] for row in waits if row["stall_s"] > 0)
        # A save comes to its end, with room to spare, before the next one begins.
        writing = max(1, int(wait / update))
        every = 4 * writing + BEFORE
        beside = self.save(f"beside{number}", every)
        begins = [i for i, row in enumerate(beside) if i > 0 and i % every == 0]
        during = [1 / beside[i]["samples_per_s"] for begin in begins
                  for i in range(begin, min(begin + writing, len(beside)))]  # fmt: skip
        return {
            "update": update,
            "during": statistics.median(during),
            "stall": statistics.median(beside[i]["stall_s"] for i in begins),
            "wait": wait,
            "copy": time_copy(self.bytes),
        }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=1500)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(folder, options.megabytes)
        rounds = [bench.measure(number) for number in range(options.rounds)]
    found = {key: statistics.median(one[key] for one in rounds) for key in rounds[0]}
    print(f"variables of {bench.bytes / 1e6:.0f} MB, an update takes {found['update']:.3f} s")
    print(f"a save begins: waits {found['stall']:.3f} s, "
          f"{found['stall'] / found['copy']:.2f} times a copy of {found['copy']:.3f} s")
    print(f"while it is written an update takes {found['during'] / found['update']:.3f} times "
          "as long")  # fmt: skip
    print(f"--sync-checkpoints: waits {found['wait']:.3f} s, "
          f"{found['wait'] / found['stall']:.1f} times as long")  # fmt: skip


if __name__ == "__main__":
    main()
