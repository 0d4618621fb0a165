"""tcc-run compare: packages against their models, and against others."""

import json
import os
import tempfile

import numpy as np
import onnx
from harness import Tally, first_line, run_tool
from onnx import helper, numpy_helper


def floats(name, *shape):
    return helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)


def make_model(path, factor=2.0, weight=1.0):
    """An LSTM over `steps` steps, and a matmul times `factor`."""
    random = np.random.RandomState(3)

    def weights(name, *shape):
        values = weight * random.rand(*shape) - 0.5
        return numpy_helper.from_array(values.astype(np.float32), name)

    nodes = [
        helper.make_node("LSTM", ["x", "w", "r", "b"], ["y", "h"], "lstm", hidden_size=16),
        helper.make_node("MatMul", ["h", "m"], ["p"], "product"),
        helper.make_node("Mul", ["p", "factor"], ["scaled"], "scale"),
        helper.make_node("Relu", ["scaled"], ["out"], "relu"),
    ]
    tensors = [weights("w", 1, 64, 8), weights("r", 1, 64, 16), weights("b", 1, 128)]
    tensors += [weights("m", 16, 24)]
    tensors += [numpy_helper.from_array(np.float32(factor), "factor")]
    graph = helper.make_graph(
        nodes, "g", [floats("x", "steps", 2, 8)],
        [floats("y", "steps", 1, 2, 16), floats("out", 1, 2, 24)], tensors,
    )  # fmt: skip
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=9), path)


def make_shared(path):
    """Two kernels of fixed sizes that are one but for these: launches give them."""
    nodes = [helper.make_node("Exp", [x], [y], y) for x, y in (("a", "c"), ("b", "d"))]
    graph = helper.make_graph(
        nodes, "g", [floats("a", 6, 200), floats("b", 5, 3, 90)],
        [floats("c", 6, 200), floats("d", 5, 3, 90)],
    )  # fmt: skip
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=9), path)


def main(tally, folder):
    def path(name):
        return os.path.join(folder, name)

    def compare(code, package, model, *flags, says=""):
        run = run_tool(
            "tcc-run", "compare", path(package), "--model", path(model),
            "--random-inputs", *flags,
        )  # fmt: skip
        ok = run.code == code and says in run.out + run.err
        tally.check(f"{package} {model}", ok, first_line(run) + run.out)
        return run

    make_model(path("model.onnx"))
    make_model(path("factor.onnx"), factor=3.0)
    make_model(path("weight.onnx"), weight=1.5)
    compiled = run_tool(
        "tcc", path("model.onnx"), "--dim", "steps=1..4", "-o", path("m.tcc"), "-q"
    )
    tally.check("compiles", compiled.code == 0, first_line(compiled))
    compare(0, "m.tcc", "model.onnx", "--dim", "steps=3", says="2 outputs agree")
    done = compare(0, "m.tcc", "model.onnx", "--dim", "steps=2", "--json")
    row = json.loads(done.out)
    tally.check("json", row["launches"] > 4 and row["skipped"] == [], done.out)
    # The factor is part of a kernel; weights are not.
    says = "'product', 'scale', 'relu': kernel"
    compare(1, "m.tcc", "factor.onnx", "--dim", "steps=3", says=says)
    says = "output 'y' departs from the reference, though no kernel does"
    compare(1, "m.tcc", "weight.onnx", "--dim", "steps=3", says=says)
    compare(5, "m.tcc", "absent.onnx", "--dim", "steps=3")
    compare(2, "m.tcc", "model.onnx", "--no-such-flag")
    make_shared(path("shared.onnx"))
    run_tool("tcc", path("shared.onnx"), "-o", path("s.tcc"), "-q")
    row = json.loads(compare(0, "s.tcc", "shared.onnx", "--json").out)
    tally.check("shared", row["launches"] == 2 and row["skipped"] == [], str(row))


if __name__ == "__main__":
    tally = Tally()
    with tempfile.TemporaryDirectory() as folder:
        main(tally, folder)
    tally.close()
