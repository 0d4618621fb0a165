"""Random graphs against ONNX Runtime: of reductions, broadcasts and movement, and
of casts, integers, constants, branches and loops.

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
MAX_DEPTH = 2


class RandomGraph:
    """Each step adds an op on a tensor that is there already."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.nodes, self.constants, self.count = [], [], 0
        shape = [self.random.randint(1, 5) for _ in range(self.random.randint(1, 3))]
        shape.append(self.random.choice((1, 4, 16, 70)))
        self.inputs = {"x": tuple(shape), "y": tuple(shape)}
        self.shapes = dict(self.inputs)
        steps = self.steps()
        while len(self.nodes) < 4:
            for _ in range(self.random.randint(4, 12)):
                tensor = self.random.choice(list(self.shapes))
                self.random.choice(steps)(tensor, self.shapes[tensor])

    def steps(self):
        steps = (self.unary, self.binary, self.reduce, self.softmax, self.center)
        return steps + (self.transpose, self.reshape, self.slice, self.concat)

    def feed(self, seed):
        values = np.random.RandomState(seed)
        return {
            name: values.uniform(-1, 1, shape).astype(np.float32)
            for name, shape in self.inputs.items()
        }

    def add(self, op, operands, shape, **attributes):
        name = f"t{self.count}"
        self.count += 1
        self.nodes.append(helper.make_node(op, operands, [name], f"/{name}", **attributes))
        self.shapes[name] = tuple(shape)
        return name

    def constant(self, value):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(value, name))
        return name

    def ints(self, *values):
        return self.constant(np.array(values, np.int64))

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

    def info(self, name):
        shape = self.shapes[name]
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    def to_onnx(self):
        read = {name for node in self.nodes for name in node.input}
        made = [n.output[0] for n in self.nodes if n.output[0] in self.shapes]
        outputs = [n for n in made if n not in read or self.random.random() < 0.3]
        graph = helper.make_graph(
            self.nodes,
            "random",
            [self.info(name) for name in self.feed(0)],
            [self.info(name) for name in outputs],
            self.constants,
        )
        opsets = [helper.make_opsetid("", OPSET)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=9)


class MixedGraph(RandomGraph):
    """Also ops on other types, on constants, and on what a body captures."""

    def steps(self):
        self.depth = 0
        # No floats, and read by branches and loops only.
        self.scalars = {"flag": TensorProto.BOOL, "n": TensorProto.INT64}
        mixed = (self.cast, self.integers, self.shift, self.unit, self.choose)
        mixed += (self.branch, self.loop, self.loop)
        return super().steps() + mixed

    def info(self, name):
        if name in self.scalars:
            return helper.make_tensor_value_info(name, self.scalars[name], ())
        return super().info(name)

    def feed(self, seed):
        flag, trips = np.array(seed % 2 == 0), np.array(seed % 4, np.int64)
        return {**super().feed(seed), "flag": flag, "n": trips}

    def float(self, value, rank=0):
        return self.constant(np.full((1,) * rank, value, np.float32))

    def to_integers(self, x, shape, type):
        """x scaled to at most 100, and away from where a sum would be whole."""
        scaled = self.add("Mul", [x, self.float(7.3)], shape)
        moved = self.add("Add", [scaled, self.float(0.37)], shape)
        limits = [self.float(0), self.float(100)]
        return self.node("Cast", [self.add("Clip", [moved, *limits], shape)], to=type)

    def node(self, op, operands, **attributes):
        """One that no other step reads."""
        name = self.add(op, operands, (), **attributes)
        del self.shapes[name]
        return name

    def to_float(self, x, shape):
        self.add("Cast", [x], shape, to=TensorProto.FLOAT)

    def cast(self, x, shape):
        types = ("INT8", "UINT8", "INT16", "INT32", "INT64", "DOUBLE", "FLOAT16")
        x = self.to_integers(x, shape, TensorProto.INT32)
        for _ in range(self.random.randint(1, 4)):
            to = getattr(TensorProto, self.random.choice(types))
            x = self.node("Cast", [x], to=to)
        self.to_float(x, shape)

    def integers(self, x, shape):
        type, dtype = self.random.choice(
            ((TensorProto.INT32, np.int32), (TensorProto.INT64, np.int64))
        )
        x = self.to_integers(x, shape, type)
        for _ in range(self.random.randint(1, 4)):
            op = self.random.choice(("Add", "Sub", "Mul", "Div", "Max", "Min"))
            rank = self.random.randint(0, len(shape))
            value = np.full((1,) * rank, self.random.choice((1, 2, 3, -2)), dtype)
            x = self.node(op, [x, self.constant(value)])
        self.to_float(x, shape)

    def shift(self, x, shape):
        """With a constant of one element, or a function of it."""
        rank = self.random.randint(0, len(shape))
        value = self.float(self.random.choice((0.5, 1, 2, 4)), rank)
        if self.random.random() < 0.5:
            op = self.random.choice(("Sqrt", "Neg", "Reciprocal"))
            value = self.node(op, [value])
        operands = [x, value] if self.random.random() < 0.7 else [value, x]
        op = self.random.choice(("Mul", "Add", "Sub", "Max"))
        self.add(op, operands, shape)

    def unit(self, x, shape):
        """Adds an axis and moves it, or drops those that are there."""
        if 1 in shape and self.random.random() < 0.5:
            self.add("Squeeze", [x], [d for d in shape if d != 1])
            return
        axis = self.random.randint(0, len(shape))
        wider = [*shape[:axis], 1, *shape[axis:]]
        y = self.add("Unsqueeze", [x, self.ints(axis)], wider)
        self.transpose(y, wider)

    def choose(self, x, shape):
        y = self.random.choice(self.fitting(shape))
        above = self.node("Greater", [x, self.float(0.123)])
        self.add("Where", [above, x, y], shape)

    def fitting(self, shape):
        """Tensors that broadcast to `shape`."""

        def fits(other):
            tail = shape[len(shape) - len(other) :]
            pairs = zip(other, tail)
            return len(other) <= len(shape) and all(a in (1, b) for a, b in pairs)

        return [t for t in self.shapes if fits(self.shapes[t])]

    def body(self, x, shape, inputs=(), first=()):
        """A graph from `first` and ops that end in a tensor of x's shape."""
        outer = self.nodes, self.shapes
        self.nodes, self.shapes, shape = [*first], dict(self.shapes), tuple(shape)
        self.depth += 1
        for _ in range(self.random.randint(1, 3)):
            steps = [self.tanh, self.combine, self.shift, self.choose, self.integers]
            steps += [self.branch, self.loop] if self.depth < MAX_DEPTH else []
            before = self.count
            self.random.choice(steps)(x, shape)
            x = f"t{self.count - 1}" if self.count > before else x
        result = self.add("Identity", [x], shape)
        outputs = [n.output[0] for n in first] + [result]
        infos = [self.info(name) for name in outputs]
        name = f"body{self.count}"
        graph = helper.make_graph(self.nodes, name, list(inputs), infos)
        self.depth -= 1
        self.nodes, self.shapes = outer
        return graph

    def tanh(self, x, shape):
        self.add("Tanh", [x], shape)

    def combine(self, x, shape):
        y = self.random.choice(self.fitting(shape))
        self.add(self.random.choice(("Add", "Sub", "Max")), [x, y], shape)

    def branch(self, x, shape):
        bodies = {f"{b}_branch": self.body(x, shape) for b in ("then", "else")}
        self.add("If", ["flag"], shape, **bodies)

    def loop(self, x, shape):
        i, go, carried, on = (f"{c}{self.count}" for c in ("i", "g", "s", "o"))
        self.count += 1
        self.scalars.update({i: TensorProto.INT64, go: TensorProto.BOOL})
        self.scalars[on] = TensorProto.BOOL
        outer = self.shapes
        self.shapes = {**outer, carried: tuple(shape)}
        inputs = [self.info(name) for name in (i, go, carried)]
        first = [helper.make_node("Identity", [go], [on])]
        body = self.body(carried, shape, inputs, first)
        self.shapes = outer
        trips = "n" if self.random.random() < 0.5 else self.trips()
        self.add("Loop", [trips, "", x], shape, body=body)

    def trips(self):
        return self.constant(np.array(self.random.randint(0, 3), np.int64))


def check(tally, kind, seed, folder):
    graph, data = kind(seed), os.path.join(folder, "data")
    model, package = (os.path.join(folder, n) for n in ("m.onnx", "m.tcc"))
    with open(model, "wb") as stream:
        stream.write(graph.to_onnx().SerializeToString())
    feed, title = graph.feed(seed), f"{kind.__name__} {seed}"
    write_data_set(data, feed, reference(model, feed))
    run = run_tool("tcc", model, "-q", "-o", package)
    if tally.check(f"{title} compiles", run.code == 0, first_line(run)):
        options = ["--inputs-dir", data, "--expect-dir", data]
        run = run_tool("tcc-run", "run", package, *options)
        tally.check(title, run.code == 0, first_line(run))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=30)
    options = parser.parse_args()
    tally = Tally()
    for seed in {*SEEDS, *range(options.first, options.first + options.count)}:
        for kind in (RandomGraph, MixedGraph):
            with tempfile.TemporaryDirectory() as folder:
                check(tally, kind, seed, folder)
    tally.close()


if __name__ == "__main__":
    main()
