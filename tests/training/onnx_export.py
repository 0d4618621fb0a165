"""Trained parameters written back into the ONNX model: onnx_export.py

ONNX Runtime, given the written model, says what tcc-run says of the exported
parameters; all else of the file is as it was.
"""

import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper
from safetensors.numpy import load_file, save_file

import harness
from training import cases, run

TOLERANCE = 2e-6  # of f32, over the largest value

RECIPE = """
[loss]
kind = "{loss}"
[optimizer]
kind = "adamw"
lr = 0.01
[batchnorm]
mode = "train"
"""


def save_folded(path):
    """One whose exporter stored the transpose of a weight."""
    script = os.path.join(harness.ROOT, "tests/tools/tcc/Inputs/make-folded.py")
    subprocess.run([sys.executable, script, path], check=True)


def copy_fixture(name):
    def save(path):
        onnx.save(onnx.load(os.path.join(cases.FIXTURES, name + ".onnx")), path)

    return save


def save_typed(path):
    """Values in typed fields, one of them in a Constant node."""
    run.save_mlp(path)
    model = onnx.load(path)
    tensors = list(model.graph.initializer)
    del model.graph.initializer[:]
    for i, tensor in enumerate(tensors):
        values = numpy_helper.to_array(tensor)
        typed = helper.make_tensor(tensor.name, tensor.data_type, values.shape, values.flatten())
        if i == 0:
            node = helper.make_node("Constant", [], [tensor.name], value=typed)
            model.graph.node.insert(0, node)
        else:
            model.graph.initializer.append(typed)
    onnx.save(model, path)


def save_external(path):
    """Values in another file, in a folder below."""
    run.save_cnn(path)
    folder = os.path.join(os.path.dirname(path), "data")
    os.makedirs(folder, exist_ok=True)
    onnx.save_model(onnx.load(path), path, save_as_external_data=True,
                    location="data/weights.bin", size_threshold=0)  # fmt: skip


def make_data(model, loss):
    """As many samples as two batches have."""
    random = np.random.default_rng(5)
    value = model.graph.input[0]
    shape = [d.dim_value or 8 for d in value.type.tensor_type.shape.dim]
    shape[0] *= 2
    if value.type.tensor_type.elem_type == onnx.TensorProto.INT64:
        x = random.integers(0, 10, shape)
        return {value.name: x, "labels": x}
    x = random.standard_normal(shape).astype("f4")
    if loss == "mse":
        out = [d.dim_value for d in model.graph.output[0].type.tensor_type.shape.dim]
        return {value.name: x, "labels": random.standard_normal((shape[0], *out[1:])).astype("f4")}
    return {value.name: x, "labels": random.integers(0, 5, shape[0])}


def strip(path):
    """All of a model but the values of its tensors of floats."""
    model = onnx.load(path, load_external_data=False)
    constants = [node.attribute[0].t for node in model.graph.node if node.op_type == "Constant"]
    for tensor in [*model.graph.initializer, *constants]:
        for field in ("raw_data", "float_data"):
            tensor.ClearField(field)
    return model.SerializeToString()


class Suite:
    def __init__(self, tally, folder, name, save, loss, flags=(), recipe=""):
        self.tally, self.name = tally, name
        self.folder = os.path.join(folder, name)
        os.makedirs(self.path("out"))
        save(self.path("model.onnx"))
        self.flags = ["--dim", "batch=8"] if "batch" in flags else []
        model = onnx.load(self.path("model.onnx"), load_external_data=False)
        model.ir_version = 10  # the highest that all readers know
        onnx.save(model, self.path("model.onnx"))
        self.input = model.graph.input[0].name
        self.data = make_data(model, loss)
        np.savez(self.path("data.npz"), **self.data)
        with open(self.path("recipe.toml"), "w", encoding="utf-8") as file:
            file.write(RECIPE.format(loss=loss) + recipe)
        harness.call("tcc", self.path("model.onnx"), "--train=" + self.path("recipe.toml"),
                  "-q", "-o", self.path("train.tcc"), *self.flags)  # fmt: skip

    def path(self, name):
        return os.path.join(self.folder, name)

    def check(self, name, ok, message=""):
        return self.tally.check(f"{self.name}: {name}", ok, message)

    def train(self):
        harness.call("tcc-run", "train", self.path("train.tcc"), "--data",
                  "npz:" + self.path("data.npz"), "--steps", 5, "-q", "--checkpoint-dir",
                  self.path("run"), "--export", self.path("out/trained.onnx"), "--onnx",
                  self.path("model.onnx"))  # fmt: skip
        harness.call("tcc-run", "export", self.path("train.tcc"), "--checkpoint-dir",
                  self.path("run"), "-q", "-o", self.path("trained.safetensors"))  # fmt: skip

    def predict(self):
        """What tcc-run says of the first batch with the exported parameters."""
        x = self.data[self.input]
        np.save(self.path("x.npy"), x[: len(x) // 2])
        tensors = load_file(self.path("trained.safetensors"))
        save_file({name: value.astype("f4") for name, value in tensors.items()},
                  self.path("trained.safetensors"))  # fmt: skip
        harness.call("tcc", self.path("model.onnx"), "-q", "-o", self.path("model.tcc"),
                     "--weights=" + self.path("trained.safetensors"), *self.flags)  # fmt: skip
        harness.call("tcc-run", "run", self.path("model.tcc"), "-q", "--input",
                     f"{self.input}={self.path('x.npy')}", "--output-dir",
                     self.path("out"))  # fmt: skip
        return np.load(self.path("out/output_0.npy"))

    def check_outputs(self):
        expected = self.predict()
        x = np.load(self.path("x.npy"))
        outputs = []
        for name in ("out/trained.onnx", "model.onnx"):
            options = onnxruntime.SessionOptions()
            options.log_severity_level = 3  # errors
            session = onnxruntime.InferenceSession(self.path(name), options)
            outputs.append(session.run(None, {self.input: x})[0])
        scale = np.abs(expected).max()
        error = np.abs(outputs[0] - expected).max() / scale
        change = np.abs(outputs[1] - expected).max() / scale
        self.check("ONNX Runtime agrees", error <= TOLERANCE, f"differs by {error:.1e}")
        self.check("has learned", change > 100 * TOLERANCE, f"differs by {change:.1e}")
        print(f"{self.name}: differs by {error:.1e}, from the model before by {change:.1e}")

    def check_rest(self):
        model, trained = self.path("model.onnx"), self.path("out/trained.onnx")
        onnx.checker.check_model(trained)
        self.check("the rest is the same", strip(model) == strip(trained))


CASES = [
    ("cnn", run.save_cnn, "cross_entropy", ["batch"]),
    ("tokens", copy_fixture("gpt2_tiny"), "causal_lm"),
    ("folded", save_folded, "mse", [], '[params]\nconstant = ["expand"]\n'),
    ("typed", save_typed, "cross_entropy", ["batch"], '[precision]\ncompute = "f64"\n'),
    ("external", save_external, "cross_entropy", ["batch"]),
]


def check_refusals(suite):
    """Before anything is trained: other models, and data that would be changed."""
    run.save_mlp(suite.path("mlp.onnx"))
    other = onnx.load(suite.path("model.onnx"))
    tensor = next(t for t in other.graph.initializer if t.name == "head.weight")
    tensor.CopyFrom(numpy_helper.from_array(np.zeros((6, 5), "f4"), "head.weight"))
    onnx.save(other, suite.path("other.onnx"))
    with open(suite.path("bytes.onnx"), "wb") as file:
        file.write(b"\x3a\x7f no model")
    for name, code, says in (
        ("mlp.onnx", 2, "is not the model of this package: it has no conv.weight, norm.weight"),
        ("other.onnx", 2, "has tensor 'head.weight' of f32 6x5, expected f32 5x6"),
        ("bytes.onnx", 3, "is no ONNX model"),
        ("none.onnx", 5, "none.onnx"),
    ):
        out = harness.run_tool("tcc-run", "train", suite.path("train.tcc"), "--data",
                               "npz:" + suite.path("data.npz"), "--steps", 10**9, "--export",
                               suite.path("refused.onnx"), "--onnx", suite.path(name))  # fmt: skip
        suite.check(f"refuses {name}", out.code == code and says in out.err, out.err)
    suite.check("writes nothing then", not os.path.exists(suite.path("refused.onnx")))


def check_shared(suite):
    """The model's own external data are never changed."""
    out = harness.run_tool("tcc-run", "export", suite.path("train.tcc"), "--checkpoint-dir",
                           suite.path("run"), "-o", suite.path("beside.onnx"), "--onnx",
                           suite.path("model.onnx"))  # fmt: skip
    says = "write it to another folder"
    suite.check("refuses its folder", out.code == 2 and says in out.err, out.err)


def main():
    tally = harness.Tally()
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            suite = Suite(tally, folder, *case)
            suite.train()
            suite.check_rest()
            suite.check_outputs()
            if suite.name == "cnn":
                check_refusals(suite)
            if suite.name == "external":
                check_shared(suite)
    tally.close()


if __name__ == "__main__":
    main()
