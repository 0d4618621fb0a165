"""Random graphs of reductions, broadcasts and movement against ONNX Runtime.

  graphs.py [--first SEED] [--count N]

What matters is which ops share a kernel and how it reads its values, so shapes
are small and most ops have several readers.
"""

import argparse
import os
import random
import tempfile

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from harness import Tally, first_line, run_tool
from models.cases import reference, write_data_set

OPSET = 20
# They found a defect once, and always run.
SEEDS = (62,)
UNARY = ("Relu", "Abs", "Tanh", "Neg")
BINARY = ("Add", "Mul", "Sub", "Max")
REDUCTIONS = ("ReduceMax", "ReduceSum", "ReduceMean", "ReduceMin")


class RandomGraph:
    """Each step adds an op on a tensor that is there already."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.nodes, self.constants = [], []
        shape = [self.random.randint(1, 5) for _ in range(self.random.randint(1, 3))]
        shape.append(self.random.choice((1, 4, 16, 70)))
        self.inputs = {"x": tuple(shape), "y": tuple(shape)}
        self.shapes = dict(self.inputs)
        steps = (self.unary, self.binary, self.reduce, self.softmax, self.center)
        steps += (self.transpose, self.reshape, self.slice, self.concat)
        while len(self.nodes) < 4:
            for _ in range(self.random.randint(4, 12)):
                tensor = self.random.choice(list(self.shapes))
                self.random.choice(steps)(tensor, self.shapes[tensor])

    def add(self, op, operands, shape, **attributes):
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, operands, [name], f"/{name}", **attributes))
        self.shapes[name] = tuple(shape)
        return name

    def ints(self, *values):
        name = f"c{len(self.constants)}"
        tensor = numpy_helper.from_array(np.array(values, np.int64), name)
        self.constants.append(tensor)
        return name

    def axes(self, shape):
        count = self.random.randint(1, len(shape))
        return sorted(self.random.sample(range(len(shape)), count))

    def unary(self, x, shape):
        self.add(self.random.choice(UNARY), [x], shape)

    def binary(self, x, shape):
        y = self.random.choice(list(self.shapes))
        try:
            result = np.broadcast_shapes(shape, self.shapes[y])
        except ValueError:
            return
        self.add(self.random.choice(BINARY), [x, y], result)

    def reduce(self, x, shape):
        if not shape:
            return
        axes, keep = self.axes(shape), self.random.randint(0, 1)
        kept = [1 if i in axes else d for i, d in enumerate(shape)]
        dropped = [d for i, d in enumerate(shape) if i not in axes]
        op = self.random.choice(REDUCTIONS)
        operands = [x, self.ints(*axes)]
        self.add(op, operands, kept if keep else dropped, keepdims=keep)

    def softmax(self, x, shape):
        if shape:
            op = self.random.choice(("Softmax", "LogSoftmax"))
            self.add(op, [x], shape, axis=self.random.randrange(len(shape)))

    def center(self, x, shape):
        """x - max(x), e to that power, and its sum: two stages of a row."""
        if not shape:
            return
        axes = self.axes(shape)
        row = [1 if i in axes else d for i, d in enumerate(shape)]
        largest = self.add("ReduceMax", [x, self.ints(*axes)], row)
        power = self.add("Exp", [self.add("Sub", [x, largest], shape)], shape)
        self.add("ReduceSum", [power, self.ints(*axes)], row)

    def transpose(self, x, shape):
        permutation = self.random.sample(range(len(shape)), len(shape))
        if shape:
            result = [shape[i] for i in permutation]
            self.add("Transpose", [x], result, perm=permutation)

    def reshape(self, x, shape):
        """Merges two axes, or adds one of extent 1."""
        result = list(shape)
        i = self.random.randint(0, len(shape))
        if i + 2 <= len(shape):
            result[i : i + 2] = [shape[i] * shape[i + 1]]
        else:
            result.insert(i, 1)
        self.add("Reshape", [x, self.ints(*result)], result)

    def slice(self, x, shape):
        axis = self.random.randrange(len(shape) or 1)
        if not shape or shape[axis] == 1:
            return
        result = [d - (i == axis) for i, d in enumerate(shape)]
        bounds = [self.ints(v) for v in (1, shape[axis], axis)]
        self.add("Slice", [x, *bounds], result)

    def concat(self, x, shape):
        if not shape:
            return
        y = self.random.choice([t for t in self.shapes if self.shapes[t] == shape])
        axis = self.random.randrange(len(shape))
        result = [d * (1 + (i == axis)) for i, d in enumerate(shape)]
        self.add("Concat", [x, y], result, axis=axis)

    def to_onnx(self):
        def info(name):
            shape = self.shapes[name]
            return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

        read = {name for node in self.nodes for name in node.input}
        outputs = [n.output[0] for n in self.nodes]
        outputs = [n for n in outputs if n not in read or self.random.random() < 0.3]
        graph = helper.make_graph(
            self.nodes,
            "random",
            [info(name) for name in self.inputs],
            [info(name) for name in outputs],
            self.constants,
        )
        opsets = [helper.make_opsetid("", OPSET)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def check(tally, seed, folder):
    graph, data = RandomGraph(seed), os.path.join(folder, "data")
    model, package = (os.path.join(folder, n) for n in ("m.onnx", "m.tcc"))
    with open(model, "wb") as stream:
        stream.write(graph.to_onnx().SerializeToString())
    values = np.random.RandomState(seed)
    feed = {
        name: values.uniform(-1, 1, shape).astype(np.float32)
        for name, shape in graph.inputs.items()
    }
    write_data_set(data, feed, reference(model, feed))
    run = run_tool("tcc", model, "-q", "-o", package)
    if tally.check(f"seed {seed} compiles", run.code == 0, first_line(run)):
        options = ["--inputs-dir", data, "--expect-dir", data]
        run = run_tool("tcc-run", "run", package, *options)
        tally.check(f"seed {seed}", run.code == 0, first_line(run))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=30)
    options = parser.parse_args()
    tally = Tally()
    for seed in {*SEEDS, *range(options.first, options.first + options.count)}:
        with tempfile.TemporaryDirectory() as folder:
            check(tally, seed, folder)
    tally.close()


if __name__ == "__main__":
    main()
