"""An operator with a kernel and a gradient kernel inside of training steps.

Beside the same model of built-in operators: weights after some updates, with batches
that are accumulated, in bf16, and within the smallest memory budget, whose bits are those
of a step that keeps all values.
"""

import json
import os
import re
import tempfile

import numpy as np
import onnx
from onnx import helper

import harness
from training import run

PLUGIN = os.path.join(harness.BIN, "../tests/plugins/librow_swish.so")
WIDTH, LAYERS, MICRO, UPDATES = 64, 4, 32, 12
# Where a parameter is that only an operator of a plugin reads, no model says.
RECIPE = """
[loss]
kind = "cross_entropy"
[optimizer]
kind = "sgd"
lr = 0.2
[batch]
micro = 32
accumulate = 2
[params]
train = ["*"]
"""


def activate(layer, isCustom):
    """row_swish, and what it is made of."""
    x, scale, y = f"x{layer}", f"{layer}.scale", f"y{layer}"
    if isCustom:
        return [helper.make_node("row_swish", [x, scale], [y], domain="mine")]
    return [
        helper.make_node("Sigmoid", [x], [f"gate{layer}"]),
        helper.make_node("Mul", [x, f"gate{layer}"], [f"swish{layer}"]),
        helper.make_node("Mul", [f"swish{layer}", scale], [y]),
    ]


def save(path, isCustom):
    random = np.random.default_rng(5)
    nodes, weights, x = [], {}, "x"
    for layer in range(LAYERS):
        weights[f"{layer}.weight"] = random.standard_normal((WIDTH, WIDTH)) / 8
        weights[f"{layer}.scale"] = np.linspace(0.5, 2, WIDTH)
        nodes += [helper.make_node("Gemm", [x, f"{layer}.weight"], [f"x{layer}"])]
        nodes += activate(layer, isCustom)
        x = f"y{layer}"
    weights["last.weight"] = random.standard_normal((WIDTH, run.CLASSES)) / 8
    nodes += [helper.make_node("Gemm", [x, "last.weight"], ["logits"])]
    weights = {name: value.astype("f4") for name, value in weights.items()}
    run.save_model(path, nodes, weights, [WIDTH])
    model = onnx.load(path)
    model.opset_import.append(helper.make_opsetid("mine", 1))
    onnx.save(model, path)


class Suite:
    def __init__(self, tally, folder):
        self.tally, self.folder = tally, folder
        save(self.path("custom.onnx"), True)
        save(self.path("plain.onnx"), False)
        x = np.random.default_rng(6).standard_normal((1024, WIDTH)).astype("f4")
        np.savez(self.path("data.npz"), x=x, labels=x[:, : run.CLASSES].argmax(1))

    def path(self, name):
        return os.path.join(self.folder, name)

    def compile(self, model, precision, *flags):
        with open(self.path("recipe.toml"), "w", encoding="utf-8") as file:
            file.write(RECIPE + f'[precision]\ncompute = "{precision}"\n')
        return harness.run_tool("tcc", self.path(f"{model}.onnx"), "-q", "--plugin", PLUGIN,
                                "--train=" + self.path("recipe.toml"), "-o",
                                self.path("m.tcc"), *flags)  # fmt: skip

    def train(self, model, precision, *flags):
        """What was trained, by name; None if it was not."""
        compiled = self.compile(model, precision, *flags)
        name = f"{model} in {precision} {' '.join(flags)}"
        if not self.tally.check(f"{name} compiles", compiled.code == 0, compiled.err):
            return None
        export = self.path("trained.safetensors")
        data = "npz:" + self.path("data.npz")
        ran = harness.run_tool("tcc-run", "train", self.path("m.tcc"), "--no-shuffle", "--data",
                               data, "--steps", UPDATES, "--threads", 2, "--export", export,
                               "-q")  # fmt: skip
        if not self.tally.check(f"{name} trains", ran.code == 0, ran.err):
            return None
        return {k: np.frombuffer(v, "f4") for k, v in run.read_tensors(export).items()}

    def check_launches(self):
        """Each operator of a pass is its own kernel's, and so is its gradient."""
        info = json.loads(harness.call("tcc-run", "info", self.path("m.tcc"), "--json"))
        launches = [x for entry in info["entries"] for x in entry["launch_list"]
                    if entry["name"] == "train_step"]  # fmt: skip
        # What the plugin says of them.
        flops = [MICRO * WIDTH * each for each in (20, 30)]
        count = sum(launch["flops"] in flops for launch in launches)
        self.tally.check("launches of kernels", count >= 2 * LAYERS, f"{count}")

    def compare(self, name, found, expected, tolerance):
        if not found or not expected:
            return
        for key, wanted in expected.items():
            off = np.abs(found[key] - wanted).max() / np.abs(wanted).max()
            self.tally.check(f"{name}: {key}", off <= tolerance, f"off by {off:.1e}")


def main():
    tally = harness.Tally()
    with tempfile.TemporaryDirectory() as folder:
        suite = Suite(tally, folder)
        for precision, tolerance in (("f32", 1e-4), ("bf16", 3e-2)):
            plain = suite.train("plain", precision)
            custom = suite.train("custom", precision)
            suite.check_launches()
            suite.compare(precision, custom, plain, tolerance)
            refused = suite.compile("custom", precision, "--memory-budget=1KiB")
            found = re.search(r"the smallest budget is (\d+) bytes", refused.err)
            if tally.check("has a smallest budget", bool(found), refused.err):
                tight = suite.train("custom", precision, f"--memory-budget={found[1]}")
                suite.compare(f"{precision} in a budget", tight, custom, 0)
    tally.close()


if __name__ == "__main__":
    main()
