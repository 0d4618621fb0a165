"""Checks gradients: gradients.py [TITLE...] [--table FILE]

Rows are those of gradient_rows.py, in f64. The loss of a row is the sum of its
result's elements times fixed numbers; one model holds many rows, so that their
gradients are one package. They are compared with difference quotients.
"""

import argparse
import os
import re
import tempfile

import numpy as np
from onnx import TensorProto, helper

from harness import ROOT, Tally, first_line, run_tool
from models.cases import write_data_set
from numerics import (
    gradient_bodies,
    gradient_rows,
    gradient_table,
    gradient_windows,
)
from numerics.rows import Constant, Model, output_names

OPSETS = {"": 28, "ai.onnx.preview": 1}
MODULES = (gradient_rows, gradient_windows, gradient_bodies)
# Of difference quotients of fourth order, which are off by about STEP^4 and the
# last place divided by STEP.
STEP = 1e-4
TOLERANCE = 1e-8


def models():
    for module in MODULES:
        yield from module.models()


class LossModel(Model):
    """Rows whose outputs are the losses, first their sum."""

    opsets = OPSETS

    def __init__(self, rows):
        super().__init__(rows)
        losses = [
            self.node("Sum", list(map(self.add_loss, output_names(r, y))), f"{y}loss")
            for r, y in zip(rows, self.outputs)
        ]
        self.outputs = [self.node("Sum", losses, "loss"), *losses]

    def operand(self, value, suffix):
        """Rows share no inputs: each has gradients of its own."""
        is_array = isinstance(value, np.ndarray)
        return super().operand(value.copy() if is_array else value, suffix)

    def node(self, op, inputs, output, **attributes):
        node = helper.make_node(op, inputs, [output], name=f"/{output}", **attributes)
        self.nodes.append(node)
        return output

    def add_loss(self, y):
        """sum_i y[i] cos(1.7 i + 0.3), whatever y's shape and type."""

        def add(op, *inputs, **attributes):
            names = [
                x if isinstance(x, str) else self.operand(Constant(np.array(x)), name)
                for x, name in ((x, f"{y}{op}{i}") for i, x in enumerate(inputs))
            ]
            return self.node(op, names, f"{y}{op}", **attributes)

        places = add("Range", 0, add("Size", y), 1)
        phases = add("Mul", add("Cast", places, to=TensorProto.DOUBLE), 1.7)
        factors = add("Cos", add("Add", phases, 0.3))
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
        self.folder, self.model = folder, LossModel(rows)
        self.feed = self.model.feed
        self.wanted = [name for name, x in self.feed.items() if x.dtype.kind == "f"]
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


def differentiate(package, gradients):
    """For each row the derivative along a direction: from its losses, from its
    gradients, and what these may be off by."""
    random = np.random.RandomState(5)
    direction = {
        name: random.standard_normal(package.feed[name].shape)
        for name in package.wanted
    }
    quotient = 0
    for factor, weight in ((1, 8), (-1, -8), (2, -1), (-2, 1)):
        moved = {
            name: x + factor * STEP * direction[name] if name in direction else x
            for name, x in package.feed.items()
        }
        quotient = quotient + weight * package.run(moved)[0] / (12 * STEP)
    products, magnitudes = np.zeros_like(quotient), np.zeros_like(quotient)
    for name, gradient in gradients.items():
        terms = gradient * direction[name]
        products[row_of(name)] += terms.sum()
        magnitudes[row_of(name)] += np.abs(terms).sum()
    return quotient, products, TOLERANCE * (magnitudes + 1e-2)


def refusals(rows, compiled):
    """What the compiler said, by the index of the row."""
    found = {}
    for line in compiled.err.splitlines():
        if named := re.search(r"'/(\d+)[_/]", line):
            found.setdefault(int(named[1]), line)
    if not found:
        found = dict.fromkeys(range(len(rows)), first_line(compiled))
    return found


def check(tally, title, rows):
    """Compiles the rows as one model; those refused are left out."""
    with tempfile.TemporaryDirectory() as folder:
        package = Package(rows, folder)
        if package.compiled.code != 0:
            refused = refusals(rows, package.compiled)
            for i, message in refused.items():
                tally.check(f"{title}: {rows[i].name}", False, message)
            rest = [r for i, r in enumerate(rows) if i not in refused]
            return check(tally, title, rest) if rest else None
        gradients = package.run(package.feed)[1]
        quotients, products, bounds = differentiate(package, gradients)
    for r, expected, found, bound in zip(rows, quotients, products, bounds):
        message = f"{found}, expected {expected}"
        tally.check(f"{title}: {r.name}", abs(found - expected) <= bound, message)


def check_table(tally, rows):
    """Every operator has a row or a reason, and the table says which."""
    gaps = gradient_table.find_gaps(rows)
    for op, message in gaps.items():
        tally.check(op, False, message)
    with open(os.path.join(ROOT, gradient_table.PATH)) as stream:
        message = f"write it with --table {gradient_table.PATH}"
        is_written = stream.read() == gradient_table.make_table(rows)
        tally.check(gradient_table.PATH, is_written, message)


def main(titles, table):
    families = list(models())
    rows = [r for _, family in families for r in family]
    if table:
        with open(table, "w") as stream:
            stream.write(gradient_table.make_table(rows))
        return
    tally = Tally()
    for title, family in families:
        if not titles or title in titles:
            check(tally, title, family)
    if not titles:
        check_table(tally, rows)
    tally.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("titles", nargs="*")
    parser.add_argument("--table", metavar="FILE")
    arguments = parser.parse_args()
    main(arguments.titles, arguments.table)
