"""Operators with kernels of their own: results, gradients, launches.

What they compute is numpy's. Kernels for GPUs run on the emulated one. Without a kernel the
body serves, and what has none is refused.
"""

import os
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper

from harness import BIN, Tally, first_line, run_tool
from models.cases import write_data_set

PLUGINS = os.path.join(BIN, "../tests/plugins")
# That of examples/custom-op, and one with a kernel alone.
FLAGS = [f"--plugin={PLUGINS}/lib{name}.so" for name in ("row_swish", "kernels")]
# No PTX, which would need NVIDIA's functions.
CUDA = ("--target=cuda", "--arch=none", "--emulate=race")


def node(op, inputs, outputs, domain="mine", **attributes):
    return helper.make_node(op, inputs, outputs, domain=domain, **attributes)


def write_model(path, nodes, inputs, outputs, constants=()):
    """`inputs` and `outputs` are names with shapes, and element types if not floats."""

    def info(name, shape, dtype=TensorProto.FLOAT):
        return helper.make_tensor_value_info(name, dtype, shape)

    graph = helper.make_graph(
        nodes, "kernels", [info(*x) for x in inputs], [info(*y) for y in outputs],
        [onnx.numpy_helper.from_array(value, name) for name, value in constants],
    )  # fmt: skip
    sets = [helper.make_opsetid("", 17), *(helper.make_opsetid(d, 1) for d in ("mine", "tests"))]
    onnx.save(helper.make_model(graph, opset_imports=sets, ir_version=9), path)


def sigmoid(x):
    return 1 / (1 + np.exp(-x.astype(np.float64)))


def swish(x, scale, beta):
    return x * sigmoid(beta * x) * scale


class Model:
    """A model of a folder, compiled with flags."""

    def __init__(self, folder, *model):
        self.folder = folder
        self.path = f"{folder}/m.onnx"
        write_model(self.path, *model)

    def compile(self, *flags):
        package = f"{self.folder}/m.tcc"
        return run_tool("tcc", self.path, "-q", "-o", package, *FLAGS, *flags)

    def run(self, feed, count, *flags):
        write_data_set(f"{self.folder}/data", feed, {})
        out = f"{self.folder}/out"
        options = ["--inputs-dir", f"{self.folder}/data", "--output-dir", out, *flags]
        ran = run_tool("tcc-run", "run", f"{self.folder}/m.tcc", *options)
        if ran.code:
            return first_line(ran)
        return [np.load(f"{out}/output_{i}.npy") for i in range(count)]


def check(tally, name, results, expected, tolerance=1e-5):
    if isinstance(results, str):
        return tally.check(name, False, results)
    for i, (found, wanted) in enumerate(zip(results, expected)):
        off = np.abs(found - wanted).max(initial=0) / max(1, np.abs(wanted).max(initial=0))
        tally.check(f"{name}: {i}", off <= tolerance, f"off by {off:.1e}")


def check_results(tally, folder, random):
    """Behind and before built-in operators, with a symbolic dimension, constants for
    operands, one operand twice, and integers."""
    scale = random.standard_normal(17).astype(np.float32)
    model = Model(
        folder,
        [
            node("Relu", ["x"], ["positive"], ""),
            node("row_swish", ["positive", "scale"], ["y"], beta=0.5),
            node("Add", ["y", "x"], ["z"], ""),
            node("row_swish", ["x", "ones"], ["plain"]),
            node("Reshape", ["scale", "row"], ["line"], ""),
            node("row_swish", ["line", "scale"], ["twice"]),
            node("count_runs", ["n"], ["runs"], "tests"),
        ],
        [("x", ["rows", 17]), ("n", [9], TensorProto.INT64)],
        [("z", ["rows", 17]), ("plain", ["rows", 17]), ("twice", [1, 17]),
         ("runs", [1], TensorProto.INT64)],
        [("scale", scale), ("ones", np.ones(17, np.float32)), ("row", np.array([1, 17]))],
    )  # fmt: skip
    compiled = model.compile("--dim=rows=1..64")
    if not tally.check("compiles", compiled.code == 0, first_line(compiled)):
        return
    runs = np.array([1, 1, 2, 3, 3, 3, 1, 1, 0])
    for rows in (1, 5, 64):
        x = random.standard_normal((rows, 17)).astype(np.float32)
        expected = [swish(np.maximum(x, 0), scale, 0.5) + x, swish(x, 1, 1),
                    swish(scale[None], scale, 1), np.array([5])]  # fmt: skip
        for threads in (1, 2):
            results = model.run({"x": x, "n": runs}, 4, f"--threads={threads}")
            check(tally, f"{rows} rows, {threads} threads", results, expected)


def check_gradients(tally, folder, random):
    """The gradient is another operator's, of two results."""
    model = Model(
        folder,
        [node("row_swish", ["x", "s"], ["y"], beta=1.5), node("Mul", ["y", "w"], ["z"], "")],
        [("x", [6, 20]), ("s", [20]), ("w", [6, 20])],
        [("z", [6, 20])],
    )
    for flags in ((), ("--precision=f64",)):
        compiled = model.compile("--grad-of=z", "--wrt=x,s", *flags)
        if not tally.check(f"gradients {flags}", compiled.code == 0, first_line(compiled)):
            continue
        x, w = random.standard_normal((2, 6, 20)).astype(np.float32)
        s = random.standard_normal(20).astype(np.float32)
        gate = sigmoid(1.5 * x)
        slope = gate + 1.5 * x * gate * (1 - gate)
        expected = [x * gate * s * w, w * s * slope, (w * x * gate).sum(0)]
        check(tally, f"gradients {flags}", model.run({"x": x, "s": s, "w": w}, 3), expected)


def check_cuda(tally, folder, random):
    """On emulated CUDA bitcode runs, whose accesses are looked at: one launch each of the
    operator and of its gradient, with a symbolic dimension."""
    model = Model(
        folder,
        [node("Relu", ["x"], ["positive"], ""), node("row_swish", ["positive", "s"], ["y"], beta=1.5)],
        [("x", ["rows", 70]), ("s", [70])],
        [("y", ["rows", 70])],
    )  # fmt: skip
    flags = (*CUDA, "--dim=rows=1..64", "--grad-of=y", "--wrt=x,s")
    compiled = model.compile(*flags)
    if not tally.check("bitcode on cuda", compiled.code == 0, first_line(compiled)):
        return
    for rows in (1, 5, 64):
        x = random.standard_normal((rows, 70)).astype(np.float32)
        s = random.standard_normal(70).astype(np.float32)
        p = np.maximum(x, 0)
        gate = sigmoid(1.5 * p)
        slope = gate + 1.5 * p * gate * (1 - gate)
        expected = [swish(p, s, 1.5), s * slope * (x > 0), (p * gate).sum(0)]
        results = model.run({"x": x, "s": s}, 3, "--device=emulated")
        check(tally, f"bitcode on cuda, {rows} rows", results, expected)
    whole = [("n", [4], TensorProto.INT64)], [("y", [1], TensorProto.INT64)]
    model = Model(folder, [node("count_runs", ["n"], ["y"], "tests")], *whole)
    refused = model.compile(*CUDA)
    message = "(tests::count_runs): has no kernel for cuda, and no body"
    tally.check("no body on cuda", refused.code == 4 and message in refused.err, refused.err)


def check_types(tally, folder, _):
    """A kernel is for the element types that it names; a body serves for others."""
    rows = [("x", [6, 20], TensorProto.FLOAT16), ("n", [4], TensorProto.FLOAT)]
    runs = [("y", [1], TensorProto.INT64)]
    model = Model(folder, [node("count_runs", ["n"], ["y"], "tests")], rows, runs)
    refused = model.compile()
    message = "no kernel takes f32; there are i64 -> i64"
    tally.check("no such types", refused.code == 4 and message in refused.err, refused.err)


def main():
    tally = Tally()
    random = np.random.RandomState(3)
    for run in (check_results, check_gradients, check_cuda, check_types):
        with tempfile.TemporaryDirectory() as folder:
            run(tally, folder, random)
    tally.close()


if __name__ == "__main__":
    main()
