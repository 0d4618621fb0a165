"""Numbers that stop being finite at a planted place: nonfinite.py [all]

A model of which one node gets a value, in one sample of one batch, that makes its
result or its gradient NaN or infinite; training must name a kernel that computes that
node, and the batch. By default some nodes; `all` counts how often it does over all,
each in several surroundings.
"""

import collections
import os
import re
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import harness

MICRO, BATCHES, WIDTH, CLASSES, BROKEN = 4, 6, 16, 3, 3
LEAST = 0.95  # of all injections

RECIPE = """
[loss]
kind = "cross_entropy"
[optimizer]
kind = "adamw"
lr = 0.001
"""

# The value that breaks it, its inputs beside x and its attributes, and the shapes that x
# has before it and its result after it; all others are between 0.5 and 1.5.
Plant = collections.namedtuple("Plant", "op value inputs attributes shape after recipe")


def plant(op, value, *inputs, shape=(), after=WIDTH, recipe="", **attributes):
    return Plant(op, value, inputs, attributes, shape, after, recipe)


def full(value, *shape):
    return np.full(shape, value, "f4")


SQUARE = (1, 4, 4)
PLANTS = {
    "log": plant("Log", -1),
    "log-zero": plant("Log", 0),
    "sqrt": plant("Sqrt", -1),
    "sqrt-gradient": plant("Sqrt", 0),
    "exp": plant("Exp", 200),
    "pow": plant("Pow", -1, full(0.5)),
    "pow-gradient": plant("Pow", 0, full(0.5)),
    "reciprocal": plant("Reciprocal", 0),
    "div": plant("Div", 3e38, full(0.1, WIDTH)),
    "mul": plant("Mul", 3e38, full(2, WIDTH)),
    "acos": plant("Acos", 2),
    "atanh": plant("Atanh", -3),
    "elu": plant("Elu", 1e38, alpha=1.0),
    "matmul": plant("MatMul", 3e38, full(2, WIDTH, WIDTH)),
    "gemm": plant("Gemm", 3e38, full(2, WIDTH, WIDTH), full(1, WIDTH), transB=1),
    "conv": plant("Conv", 3e38, full(2, 1, 1, 3, 3), shape=SQUARE, pads=[1, 1, 1, 1]),
    "average": plant("AveragePool", 2e38, shape=SQUARE, after=9, kernel_shape=[2, 2]),
    "sum": plant("ReduceSum", 2e38, np.array([1]), after=1, keepdims=1),
    "mean": plant("ReduceMean", 2e38, np.array([1]), after=1, keepdims=1),
    "norm": plant("ReduceL2", 1e30, np.array([1]), after=1, keepdims=1),
    "product": plant("ReduceProd", 3e38, np.array([1]), after=1, keepdims=1),
    "squares": plant("ReduceSumSquare", 1e30, np.array([1]), after=1, keepdims=1),
    "cumsum": plant("CumSum", 2e38, np.array(1)),
    "cast": plant("Cast", 1e6, to=TensorProto.FLOAT16),
}


def save(path, planted, before, after):
    """x, a scale, `before`, the planted node, `after`, and logits."""
    weights = {"head": np.random.default_rng(1).standard_normal((planted.after, CLASSES))}
    nodes, value = [], "x"

    def add(op, name, *inputs, **attributes):
        nonlocal value
        names = []
        for i, array in enumerate(inputs):
            weights[f"{name}.{i}"] = array
            names.append(f"{name}.{i}")
        nodes.append(helper.make_node(op, [value, *names], [name + ".out"], name, **attributes))
        value = name + ".out"

    # What is trained before it asks for its gradient.
    add("Mul", "scale", np.ones(WIDTH))
    if before == "product":
        add("MatMul", "first", np.eye(WIDTH))
    if planted.shape:
        add("Reshape", "in", np.array([-1, *planted.shape]))
    add(planted.op, "planted", *planted.inputs, **planted.attributes)
    if planted.op == "Cast":
        add("Cast", "back", to=TensorProto.FLOAT)
    add("Reshape", "flat", np.array([-1, planted.after]))
    if after == "pointwise":
        add("Relu", "relu")
    if after == "product":
        add("MatMul", "middle", np.eye(planted.after))
    add("MatMul", "logits", weights.pop("head"))
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [MICRO, WIDTH])]
    outputs = [helper.make_tensor_value_info(value, TensorProto.FLOAT, [MICRO, CLASSES])]
    tensors = [
        numpy_helper.from_array(array if array.dtype == np.int64 else array.astype("f4"), name)
        for name, array in weights.items()
    ]
    graph = helper.make_graph(nodes, "model", inputs, outputs, tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    onnx.checker.check_model(model)
    onnx.save(model, path)


class Suite:
    def __init__(self, tally, folder, name, before="", after="product"):
        self.tally = tally
        self.name = f"{before or 'input'}-{name}-{after or 'loss'}"
        self.planted = PLANTS[name]
        self.folder = os.path.join(folder, self.name)
        os.mkdir(self.folder)
        save(self.path("model.onnx"), self.planted, before, after)
        random = np.random.default_rng(3)
        x = random.uniform(0.5, 1.5, (BATCHES * MICRO, WIDTH)).astype("f4")
        # Two in a window and in a row: what adds up needs both.
        x[BROKEN * MICRO + 1, 5:7] = self.planted.value
        labels = random.integers(0, CLASSES, len(x))
        np.savez(self.path("data.npz"), x=x, labels=labels)
        with open(self.path("recipe.toml"), "w", encoding="utf-8") as file:
            file.write(RECIPE)
            if any(value.dtype == np.float32 and value.size > 1 for value in self.planted.inputs):
                file.write('[params]\nconstant = ["planted.*"]\n')
        harness.call("tcc", self.path("model.onnx"), "-q", "--train=" + self.path("recipe.toml"),
                     "-o", self.path("train.tcc"))  # fmt: skip

    def path(self, name):
        return os.path.join(self.folder, name)

    def train(self, *flags, steps=BATCHES):
        return harness.run_tool("tcc-run", "train", self.path("train.tcc"), "--no-shuffle",
                                "--data", "npz:" + self.path("data.npz"), "--steps", steps,
                                *flags)  # fmt: skip

    def check(self, name, ok, message=""):
        return self.tally.check(f"{self.name}: {name}", ok, message)

    def is_named(self, err):
        """Whether the planted node is among those of the kernel."""
        found = re.search(r"first was kernel '[^']+' of nodes? ([^\n]*), of which", err)
        return bool(found) and "'planted'" in found[1].split(", ")


def check_rest(suite):
    """The batch, what is skipped, and a run of several batches an update."""
    done = suite.train()
    suite.check("ends", done.code == 6, f"{done.code}: {done.err}")
    suite.check("names the node", suite.is_named(done.err), done.err)
    suite.check("names the batch", f"with batch {BROKEN}" in done.err, done.err)
    done = suite.train("--set", "on_nan=skip")
    says = f"update {BROKEN + 1} was skipped, it is not finite; first was kernel"
    suite.check("goes on", done.code == 0 and says in done.err, f"{done.code}: {done.err}")
    suite.check("names it then", suite.is_named(done.err), done.err)
    done = suite.train("--set", "on_nan=skip", "--ranks", 2, steps=3)
    says = "rank 1: warning: update 2 was skipped, it is not finite; first was kernel"
    suite.check("by the rank that has it", done.code == 0 and says in done.err, done.err)
    done = suite.train("--set", "accumulate=3", steps=2)
    suite.check("of several batches", suite.is_named(done.err)
                and "step 2 is not finite" in done.err
                and f"with batch {BROKEN}" in done.err, done.err)  # fmt: skip


def check_bits(suite):
    """Looking for it changes nothing."""
    states = []
    for name, steps in (("stopped", BATCHES), ("before", BROKEN)):
        suite.train("-q", "--checkpoint-dir", suite.path(name), "--export",
                    suite.path(name + ".safetensors"), steps=steps)  # fmt: skip
        with open(suite.path(name + ".safetensors"), "rb") as file:
            states.append(file.read())
    suite.check("the parameters are those before it", states[0] == states[1])


def check_input(suite):
    """What the data have."""
    with np.load(suite.path("data.npz")) as file:
        arrays = dict(file)
    arrays["x"][BROKEN * MICRO + 1, 2] = np.nan
    np.savez(suite.path("data.npz"), **arrays)
    done = suite.train()
    says = f"first was input 'x', of which 1 of {MICRO * WIDTH} elements are NaN, with batch 3"
    suite.check("names the input", done.code == 6 and says in done.err, done.err)


def count_all(tally, folder):
    named, missed = 0, []
    for name in PLANTS:
        for before in ("", "product"):
            for after in ("", "pointwise", "product"):
                suite = Suite(tally, folder, name, before, after)
                done = suite.train()
                if done.code == 0:
                    print(f"{suite.name}: stays finite")
                elif done.code == 6 and suite.is_named(done.err):
                    named += 1
                else:
                    missed.append(suite.name)
                    print(f"{suite.name}: {done.err.strip()[:300]}")
    total = named + len(missed)
    print(f"named {named} of {total} injections")
    tally.check("named", total > 100 and named >= LEAST * total, f"{named} of {total}: {missed}")


def main():
    tally = harness.Tally()
    with tempfile.TemporaryDirectory() as folder:
        if sys.argv[1:] == ["all"]:
            count_all(tally, folder)
        else:
            suite = Suite(tally, folder, "log")
            check_rest(suite)
            check_bits(suite)
            check_input(suite)
            for name in ("sqrt-gradient", "conv", "norm"):
                suite = Suite(tally, folder, name)
                done = suite.train()
                suite.check("is named", suite.is_named(done.err), done.err)
    tally.close()


if __name__ == "__main__":
    main()
