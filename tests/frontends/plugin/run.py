"""Operators of plugins from every format of models.

Results are PyTorch's (make.py); all formats have the same kernels, and those that are
formulas have none of their own.
"""

import json
import os
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper

from harness import BIN, Tally, call, first_line, run_tool

FOLDER = os.path.dirname(os.path.abspath(__file__))
PLUGINS = os.path.join(BIN, "../tests/plugins")
FORMULAS = f"--plugin={PLUGINS}/libformulas.so"


def make_onnx(path):
    """operators.Custom."""

    def node(op, inputs, outputs, domain="mine", **attributes):
        return helper.make_node(op, inputs, outputs, domain=domain, **attributes)

    nodes = [
        node("scaled_swish", ["x", "scale"], ["y"], beta=0.5),
        node("halves", ["y"], ["first", "second"]),
        node("Add", ["first", "one"], ["more"], ""),
        node("Relu", ["x"], ["positive"], ""),
        node("halves", ["positive"], ["top", "rest"], axis=0),
    ]
    shapes = {"y": (4, 6), "more": (4, 3), "second": (4, 3), "top": (2, 6), "rest": (2, 6)}
    graph = helper.make_graph(
        nodes,
        "custom",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (4, 6))],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in shapes.items()],
        [
            onnx.numpy_helper.from_array(np.linspace(0.5, 2, 6, dtype=np.float32), "scale"),
            onnx.numpy_helper.from_array(np.float32(1), "one"),
        ],
    )
    sets = [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)]
    onnx.save(helper.make_model(graph, opset_imports=sets, ir_version=9), path)


def get_work(package):
    """Flops and bytes of each launch, whatever their order."""
    entry = json.loads(call("tcc-run", "info", package, "--json"))["entries"][0]
    return sorted((each["flops"], each["bytes"]) for each in entry["launch_list"])


def check(tally, name, path, folder, options):
    """The work of its launches, or None."""
    kept = np.load(f"{FOLDER}/fixtures/custom.npz")
    package = f"{folder}/m.tcc"
    compiled = run_tool("tcc", path, "-q", "-o", package, FORMULAS, *options)
    if not tally.check(f"{name} compiles", compiled.code == 0, first_line(compiled)):
        return None
    for key, array in kept.items():
        np.save(f"{folder}/{key}.npy", array)
    flags = ["--inputs-dir", folder, "--expect-dir", folder, "--rtol=0", "--atol=1e-6"]
    ran = run_tool("tcc-run", "run", package, *flags)
    tally.check(name, ran.code == 0, first_line(ran))
    return get_work(package)


def check_record(tally, path, folder):
    """The package says which plugin it was made with, and compare asks for it."""
    package = f"{folder}/m.tcc"
    call("tcc", path, "-q", "-o", package, FORMULAS)
    np.save(f"{folder}/x.npy", np.load(f"{FOLDER}/fixtures/custom.npz")["input_0"])
    flags = [package, "--model", path, "--input", f"x={folder}/x.npy"]
    refused = run_tool("tcc-run", "compare", *flags)
    message = "made with plugin 'formulas' 1.0, digest"
    tally.check("compare without the plugin", refused.code == 2 and message in refused.err, refused.err)
    compared = run_tool("tcc-run", "compare", *flags, FORMULAS)
    tally.check("compare", compared.code == 0, first_line(compared))


def main():
    tally = Tally()
    with tempfile.TemporaryDirectory() as folder:
        model = f"{folder}/custom.onnx"
        make_onnx(model)
        works = {"onnx": check(tally, "onnx", model, folder, ())}
        for suffix in ("pt2", "traced.pt", "scripted.pt"):
            shapes = () if suffix == "pt2" else ("--input-shape=x=4x6",)
            path = f"{FOLDER}/fixtures/custom.{suffix}"
            works[suffix] = check(tally, suffix, path, folder, shapes)
        for suffix, work in works.items():
            tally.check(f"kernels of {suffix}", work == works["onnx"], f"{work}")
        # One for each shape: formulas are computed where they are read.
        tally.check("launches", len(works["onnx"]) == 3, f"{works['onnx']}")
        check_record(tally, model, folder)
    tally.close()


if __name__ == "__main__":
    main()
