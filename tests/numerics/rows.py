"""One row: a node, its inputs and what its result must be.

Rows of a family and type are the nodes of one model, so that one compilation
checks them all. A new op is one more row.
"""

import collections
import os
import tempfile

import numpy as np
from onnx import helper, numpy_helper

from harness import SCHEDULES, TARGET, first_line, run_tool
from models.cases import reference, write_data_set

OPSET = 21
# All compute the same bits; the first is checked against what is expected.
CPUS = ("native", "x86-64-v3") if TARGET == "cpu" else ("native",)

# inputs: arrays that are graph inputs, Constant values that are initializers,
# rows that compute them, names of a body's inputs, None for absent ones.
# attributes: may be a Body. expected: the exact result, or None for ONNX
# Runtime's. ulp: the most units in the last place that a number may be off, or None:
# integers are then exact, floats may be off by 1e-5 of the largest and of each element.
# outputs: how many the node has; shown: which is the row's value.
Row = collections.namedtuple(
    "Row", "name op inputs attributes expected ulp outputs shown"
)

# The graph of an If, Loop or Scan: names of its inputs, and the operands that
# are its results. Arrays in it are values from outside.
Body = collections.namedtuple("Body", "inputs results")


class Constant(collections.namedtuple("Constant", "value")):
    """An input whose value the model holds."""


def ints(*values):
    return Constant(np.array(values, np.int64))


def row(op, *inputs, name="", expected=None, ulp=None, outputs=1, shown=0, **attributes):
    title = f"{op} {name}".strip()
    return Row(title, op, inputs, attributes, expected, ulp, outputs, shown)


def output_names(r, name):
    """Of a row's node whose value has the name; those between it and the first,
    which may not be absent, are."""
    names = [f"{name}_{i}" for i in range(r.outputs)]
    names[1 : r.shown] = [""] * (r.shown - 1 if r.shown else 0)
    names[r.shown] = name
    return names


class Model:
    """The rows as nodes; inputs that are one array are one graph input."""

    opsets = {"": OPSET}
    flags = ()  # of tcc

    def __init__(self, rows):
        self.feed, self.weights, self.nodes, self.outputs = {}, [], [], []
        self.names = {}
        for i, r in enumerate(rows):
            self.outputs.append(self.add(r, f"y{i}", str(i)))

    def add(self, r, name, suffix):
        operands = [self.operand(x, f"{suffix}_{k}") for k, x in enumerate(r.inputs)]
        attributes = {
            key: self.body(value, f"{suffix}_{key}") if isinstance(value, Body) else value
            for key, value in r.attributes.items()
        }
        outputs = output_names(r, name)
        node = helper.make_node(
            r.op, operands, outputs, name=f"/{suffix}/{r.op}", **attributes
        )
        self.nodes.append(node)
        return name

    def body(self, body, suffix):
        around, self.nodes = self.nodes, []
        results = [
            self.add(row("Identity", x), f"r{suffix}_{i}", f"{suffix}_{i}")
            for i, x in enumerate(body.results)
        ]
        nodes, self.nodes = self.nodes, around
        infos = (map(helper.make_empty_tensor_value_info, names)
                 for names in (body.inputs, results))  # fmt: skip
        return helper.make_graph(nodes, suffix, *map(list, infos))

    def operand(self, value, suffix):
        if value is None or isinstance(value, str):
            return value or ""
        if isinstance(value, Constant):
            name = f"c{suffix}"
            self.weights.append(numpy_helper.from_array(value.value, name))
            return name
        if isinstance(value, Row):
            return self.add(value, f"t{suffix}", suffix)
        if id(value) not in self.names:
            self.names[id(value)] = f"x{suffix}"
            self.feed[f"x{suffix}"] = value
        return self.names[id(value)]

    def shape_of(self, x):
        return x.shape

    def to_onnx(self):
        inputs = [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(x.dtype), self.shape_of(x)
            )
            for name, x in self.feed.items()
        ]
        outputs = [helper.make_empty_tensor_value_info(y) for y in self.outputs]
        graph = helper.make_graph(
            self.nodes, "rows", inputs, outputs, list(self.weights)
        )
        opsets = [helper.make_opsetid(*pair) for pair in self.opsets.items()]
        return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def ulps(actual, expected):
    """The largest distance in units in the last place of the actual type.

    `expected` is wider. NaN equals NaN, an infinity itself.
    """
    target = expected.astype(actual.dtype)
    same = (actual == target) | (np.isnan(actual) & np.isnan(target))
    if same.all():
        return 0.0
    if not np.isfinite(actual[~same]).all() or not np.isfinite(target[~same]).all():
        return np.inf
    unit = np.spacing(np.abs(target[~same])).astype(expected.dtype)
    return float(np.max(np.abs(actual[~same] - expected[~same]) / unit))


def mismatch(r, actual, expected):
    """What is wrong with a result, or None."""
    if actual.shape != expected.shape:
        return f"shape {actual.shape}, expected {expected.shape}"
    if actual.dtype.kind == "f" and r.ulp is not None:
        found = ulps(actual, expected)
        return None if found <= r.ulp else f"{found:.1f} ulp, at most {r.ulp}"
    if actual.dtype.kind in "iu" and r.ulp is not None:
        off = np.abs(actual.astype(np.int64) - expected.astype(np.int64)).max(initial=0)
        return None if off <= r.ulp else f"off by {off}, at most {r.ulp}"
    if actual.dtype.kind != "f":
        return None if (actual == expected).all() else "not equal"
    close = np.isclose(actual, expected, 0, 0, equal_nan=True)
    finite = np.abs(expected[np.isfinite(expected)])
    bound = 1e-5 * (np.abs(expected) + (finite.max() if finite.size else 0))
    with np.errstate(invalid="ignore"):
        close |= np.abs(actual - expected) <= bound
    return None if close.all() else f"largest error {np.nanmax(abs(actual - expected))}"


def write_model(model, folder):
    """The paths of the model and of the folder of its inputs."""
    path, data = os.path.join(folder, "m.onnx"), os.path.join(folder, "data")
    with open(path, "wb") as stream:
        stream.write(model.to_onnx().SerializeToString())
    write_data_set(data, model.feed, {})
    return path, data


def bits(array):
    """Its bytes but for the sign and payload of NaNs: LLVM may return any NaN."""
    if array.dtype.kind == "f":
        array = np.where(np.isnan(array), np.array(np.nan, array.dtype), array)
    return array.tobytes()


def run_model(model, path, data, cpu, precision="f32"):
    """tcc's outputs, or the line that says why there are none."""
    folder = os.path.join(os.path.dirname(path), f"{cpu} {precision}")
    package, out = os.path.join(folder, "m.tcc"), os.path.join(folder, "out")
    os.makedirs(folder)
    flags = ["--cpu", cpu, "--precision", precision, *model.flags]
    compiled = run_tool("tcc", path, "-q", "-o", package, *flags)
    if compiled.code != 0:
        return None, f"tcc {first_line(compiled)}"
    results = []
    for schedule in SCHEDULES[TARGET]:
        options = ["--inputs-dir", data, "--output-dir", out]
        ran = run_tool("tcc-run", "run", package, *options, schedule=schedule)
        if ran.code != 0:
            return None, f"tcc-run {schedule} {first_line(ran)}"
        names = [f"output_{i}.npy" for i in range(len(model.outputs))]
        results.append([np.load(os.path.join(out, name)) for name in names])
        if any(bits(x) != bits(y) for x, y in zip(results[0], results[-1])):
            return None, f"not the same bits on {schedule}"
    return results[0], ""


def check(tally, title, rows, kind=Model):
    """Compiles the rows as one model; without a package, each on its own."""
    with tempfile.TemporaryDirectory() as folder:
        model = kind(rows)
        path, data = write_model(model, folder)
        runs = [run_model(model, path, data, cpu) for cpu in CPUS]
        message = next((message for _, message in runs if message), "")
        if message:
            if len(rows) == 1:
                tally.check(f"{title}: {rows[0].name}", False, message)
            for r in rows if len(rows) > 1 else ():
                check(tally, title, [r], kind)
            return
        known = {}
        if any(r.expected is None for r in rows):
            known = reference(path, model.feed)
    actual, *others = [outputs for outputs, _ in runs]
    for i, r in enumerate(rows):
        expected = known[f"y{i}"] if r.expected is None else r.expected
        wrong = mismatch(r, actual[i], np.asarray(expected))
        if any(bits(other[i]) != bits(actual[i]) for other in others):
            wrong = f"not the same bits on {' and '.join(CPUS)}"
        tally.check(f"{title}: {r.name}", wrong is None, wrong)
