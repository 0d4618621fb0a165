"""Makes the golden packages of the format's present version and what they give.

  make.py               compiles and runs them with $TCC_BIN, writes beside itself

Once for each version: what is there must load for ever, with the bits that were
written with it. NAME-checkpoint-V is what that training had after two updates, in a manifest
of version V; make it before the version changes.
"""

import gzip
import os
import shutil
import subprocess
import tempfile

import numpy as np
import onnx
import onnx.helper as oh
from harness import BIN
from onnx import TensorProto

FOLDER = os.path.dirname(os.path.abspath(__file__))
VERSION = "2.5"
CPU = "x86-64-v3"
STEPS = 6

RECIPE = """
steps = 6
[loss]
kind = "cross_entropy"
label_smoothing = 0.1
[optimizer]
kind = "adamw"
lr = 0.01
[schedule]
kind = "cosine"
[batch]
micro = 4
clip_norm = 1.0
[params]
ema = 0.9
[numerics]
grad_norms = true
"""


def tensor(name, *shape):
    generator = np.random.default_rng(sum(map(ord, name)))
    values = generator.standard_normal(shape).astype(np.float32) / 2
    return onnx.numpy_helper.from_array(values, name)


def save(path, nodes, inputs, outputs, weights):
    def describe(values):
        return [oh.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in values]

    graph = oh.make_graph(nodes, "golden", describe(inputs), describe(outputs), weights)
    model = oh.make_model(graph, opset_imports=[oh.make_opsetid("", 20)], ir_version=9)
    onnx.save(model, path)


def mlp(path, batch, dropout=False):
    middle = "dropped" if dropout else "active"
    nodes = [
        oh.make_node("Gemm", ["x", "fc1.weight", "fc1.bias"], ["h"], transB=1),
        oh.make_node("Relu", ["h"], ["active"]),
        oh.make_node("Gemm", [middle, "fc2.weight", "fc2.bias"], ["logits"], transB=1),
    ]
    outputs = [("logits", [batch, 5])]
    if dropout:
        nodes.insert(2, oh.make_node("Dropout", ["active", "p"], ["dropped"], name="drop"))
    else:
        nodes.append(oh.make_node("Softmax", ["logits"], ["shares"], axis=-1))
        outputs = [("shares", [batch, 5])]
    weights = [tensor("fc1.weight", 12, 8), tensor("fc1.bias", 12)]
    weights += [tensor("fc2.weight", 5, 12), tensor("fc2.bias", 5)]
    if dropout:
        weights.append(onnx.numpy_helper.from_array(np.float32(0.25), "p"))
    save(path, nodes, [("x", [batch, 8])], outputs, weights)


def call(tool, *arguments):
    subprocess.run([os.path.join(BIN, tool), *map(str, arguments)], check=True)


def inputs(seed, **shapes):
    generator = np.random.default_rng(seed)
    return {k: generator.standard_normal(s).astype(np.float32) for k, s in shapes.items()}


def keep(package, name):
    """Compressed: a file of the repository is small."""
    with open(package, "rb") as stream, open(f"{FOLDER}/{name}.tcc.gz", "wb") as to:
        to.write(gzip.compress(stream.read(), mtime=0))


def make_inference(folder, name, batch, run_batch, *flags):
    model, package = f"{folder}/{name}.onnx", f"{folder}/{name}.tcc"
    mlp(model, batch)
    call("tcc", model, "-o", package, f"--cpu={CPU}", "-q", *flags)
    given = inputs(1, x=(run_batch, 8))
    np.savez(f"{folder}/in.npz", **given)
    call("tcc-run", "run", package, "--input", f"x={folder}/in.npz",
         "--output-dir", f"{folder}/out")  # fmt: skip
    keep(package, f"{VERSION}-{name}")
    found = np.load(f"{folder}/out/output_0.npy")
    np.savez(f"{FOLDER}/{VERSION}-{name}.npz", **given, shares=found)


def make_training(folder):
    name, package = f"{FOLDER}/{VERSION}-training", f"{folder}/training.tcc"
    mlp(f"{folder}/training.onnx", 4, dropout=True)
    with open(f"{folder}/recipe.toml", "w", encoding="utf-8") as stream:
        stream.write(RECIPE)
    call("tcc", f"{folder}/training.onnx", "-o", package, f"--cpu={CPU}", "-q",
         f"--train={folder}/recipe.toml")  # fmt: skip
    keep(package, f"{VERSION}-training")
    data = inputs(2, x=(32, 8))
    data["labels"] = np.random.default_rng(3).integers(0, 5, 32)
    np.savez(f"{name}-data.npz", **data)
    call("tcc-run", "train", package, "--data", f"npz:{name}-data.npz", "--steps",
         STEPS, "--set", "accumulate=2", "--checkpoint-dir", f"{folder}/run", "-q",
         "--no-shuffle")  # fmt: skip
    state = f"{folder}/run/step-{STEPS}/state.safetensors"
    shutil.copy(state, f"{name}.safetensors")


def main():
    with tempfile.TemporaryDirectory() as folder:
        make_inference(folder, "static", 3, 3)
        make_inference(folder, "dynamic", "batch", 5, "--dim", "batch=1..8")
        make_training(folder)


if __name__ == "__main__":
    main()
