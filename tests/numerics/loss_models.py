"""Rows with their losses and gradients as one package."""

import os
import re

import numpy as np
from onnx import TensorProto, helper

from harness import first_line, run_tool
from models.cases import write_data_set
from numerics.rows import Constant, Model, output_names


class LossModel(Model):
    """Rows whose outputs are the losses, first their sum."""

    opsets = {"": 28, "ai.onnx.preview": 1}

    def __init__(self, rows):
        self.copies = {}  # by row and operand
        super().__init__(rows)
        losses = [
            self.node("Sum", list(map(self.add_loss, output_names(r, y))), f"{y}loss")
            for r, y in zip(rows, self.outputs)
        ]
        self.outputs = [self.node("Sum", losses, "loss"), *losses]

    def operand(self, value, suffix):
        """Rows share no inputs: each has gradients of its own."""
        if isinstance(value, np.ndarray):
            key = suffix.split("_")[0], id(value)
            value = self.copies.setdefault(key, value.copy())
        return super().operand(value, suffix)

    def node(self, op, inputs, output, **attributes):
        node = helper.make_node(op, inputs, [output], name=f"/{output}", **attributes)
        self.nodes.append(node)
        return output

    def add_loss(self, y):
        """sum_i y[i] (0.5 + cos(1.7 i)), whatever y's shape and type, as weigh."""

        def add(op, *inputs, **attributes):
            names = [
                x if isinstance(x, str) else self.operand(Constant(np.array(x)), name)
                for x, name in ((x, f"{y}{op}{i}") for i, x in enumerate(inputs))
            ]
            return self.node(op, names, f"{y}{op}", **attributes)

        places = add("Range", 0, add("Size", y), 1)
        phases = add("Mul", add("Cast", places, to=TensorProto.DOUBLE), 1.7)
        factors = add("Add", add("Cos", phases), 0.5)
        flat = add("Flatten", y, axis=0)
        wide = self.node("Cast", [flat], f"{y}wide", to=TensorProto.DOUBLE)
        product = self.node("Mul", [wide, factors], f"{y}terms")
        return add("ReduceSum", product, keepdims=0)


def row_of(name):
    """Of a model's input."""
    return int(name[1:].split("_")[0])


class Package:
    """The losses of rows and their gradients, compiled in `folder`."""

    def __init__(self, rows, folder):
        self.folder, self.rows, self.model = folder, rows, LossModel(rows)
        self.feed = self.model.feed
        # numpy knows no bf16: its kind is that of raw bytes.
        self.wanted = [name for name, x in self.feed.items() if x.dtype.kind in "fV"]
        path = os.path.join(folder, "m.onnx")
        with open(path, "wb") as stream:
            stream.write(self.model.to_onnx().SerializeToString())
        self.path = os.path.join(folder, "m.tcc")
        flags = ["--grad-of=loss", "--wrt=" + ",".join(self.wanted)]
        self.compiled = run_tool("tcc", path, "-q", "-o", self.path, *flags)

    def run(self, feed):
        """The losses of rows and, by input, the gradients."""
        data, out = (os.path.join(self.folder, name) for name in ("data", "out"))
        write_data_set(data, feed, {})
        options = ["--inputs-dir", data, "--output-dir", out]
        ran = run_tool("tcc-run", "run", self.path, *options)
        if ran.code:
            raise RuntimeError(f"tcc-run {first_line(ran)}")
        count = len(self.model.outputs) + len(self.wanted)
        results = [np.load(f"{out}/output_{i}.npy") for i in range(count)]
        losses = np.array(results[1 : len(self.model.outputs)])
        return losses, dict(zip(self.wanted, results[len(self.model.outputs) :]))


def weigh(count):
    """What the elements of an output are multiplied with in a loss."""
    return 0.5 + np.cos(1.7 * np.arange(count))


def refusals(rows, compiled):
    """What the compiler said, by the index of the row."""
    found = {}
    for line in compiled.err.splitlines():
        if named := re.search(r"'/(\d+)[_/]", line):
            found.setdefault(int(named[1]), line)
    if not found:
        found = dict.fromkeys(range(len(rows)), first_line(compiled))
    return found


def compile_rows(tally, title, rows, folder):
    """The package of those rows that are not refused, or None."""
    package = Package(rows, folder)
    if package.compiled.code == 0:
        return package
    refused = refusals(rows, package.compiled)
    for i, message in refused.items():
        tally.check(f"{title}: {rows[i].name}", False, message)
    rest = [r for i, r in enumerate(rows) if i not in refused]
    return compile_rows(tally, title, rest, folder) if rest else None
