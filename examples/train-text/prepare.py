"""Writes model.onnx and the text, as bytes and as npz: prepare.py [FOLDER]

The text is the King James Bible out of Debian's package (in the public domain).
Needs apt-get and dpkg, numpy and onnx.
"""

import glob
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

BATCH, SEQUENCE = 16, 64
WIDTH, HEADS, LAYERS, VOCABULARY = 128, 4, 2, 256
TRAIN, TEST = 1 << 20, 1 << 16  # bytes


def read_text():
    with tempfile.TemporaryDirectory() as folder:
        packages = "bible-kjv", "bible-kjv-text"
        subprocess.run(["apt-get", "download", "-qq", *packages], cwd=folder, check=True)
        for package in glob.glob(folder + "/*.deb"):
            subprocess.run(["dpkg", "-x", package, folder], check=True)
        bible = [folder + "/usr/bin/bible", "-p", folder + "/usr/lib/", "-f"]
        return subprocess.check_output([*bible, "gen1:1-rev22:21"])


def write_data(folder):
    text = read_text()
    parts = {"train": text[:TRAIN], "test": text[TRAIN : TRAIN + TEST]}
    for name, part in parts.items():
        rows = np.frombuffer(part, np.uint8).reshape(-1, SEQUENCE)
        np.savez(os.path.join(folder, name + ".npz"), bytes=rows.astype(np.int64))
        with open(os.path.join(folder, name + ".txt"), "wb") as stream:
            stream.write(part)


class Builder:
    """A graph under construction; a method adds nodes and names their result."""

    def __init__(self):
        self.nodes, self.tensors = [], []
        self.random = np.random.RandomState(0)

    def op(self, kind, *inputs, **attributes):
        output = f"value{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    def tensor(self, name, values):
        self.tensors.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def normal(self, name, *shape, scale=0.02):
        values = self.random.normal(0, scale, shape)
        return self.tensor(name, values.astype(np.float32))

    def linear(self, x, name, inputs, outputs, scale=0.02):
        weight = self.normal(f"{name}.weight", inputs, outputs, scale=scale)
        bias = self.tensor(f"{name}.bias", np.zeros(outputs, np.float32))
        return self.op("Add", self.op("MatMul", x, weight), bias)

    def norm(self, x, name):
        weight = self.tensor(f"{name}.weight", np.ones(WIDTH, np.float32))
        bias = self.tensor(f"{name}.bias", np.zeros(WIDTH, np.float32))
        return self.op("LayerNormalization", x, weight, bias)

    def attention(self, x, name):
        # [batch, sequence, 3 * width] -> 3 of [batch, heads, sequence, width / heads]
        joint = self.linear(x, f"{name}.qkv", WIDTH, 3 * WIDTH)
        split = self.op("Reshape", joint, "split")
        query, key, value = (
            self.op("Gather", self.op("Transpose", split, perm=perm), index, axis=0)
            for index, perm in (
                ("first", [2, 0, 3, 1, 4]),
                ("second", [2, 0, 3, 4, 1]),
                ("third", [2, 0, 3, 1, 4]),
            )
        )
        scores = self.op("Mul", self.op("MatMul", query, key), "scale")
        scores = self.op("Softmax", self.op("Add", scores, "mask"), axis=-1)
        mixed = self.op("MatMul", scores, value)
        mixed = self.op("Transpose", mixed, perm=[0, 2, 1, 3])
        mixed = self.op("Reshape", mixed, "joined")
        return self.linear(mixed, f"{name}.out", WIDTH, WIDTH, 0.02 / (2 * LAYERS) ** 0.5)

    def constants(self):
        self.tensor("split", np.array([BATCH, SEQUENCE, 3, HEADS, WIDTH // HEADS]))
        self.tensor("joined", np.array([BATCH, SEQUENCE, WIDTH]))
        for i, name in enumerate(("first", "second", "third")):
            self.tensor(name, np.int64(i))
        self.tensor("positions", np.arange(SEQUENCE))
        self.tensor("scale", np.float32((WIDTH // HEADS) ** -0.5))
        mask = np.triu(np.full((SEQUENCE, SEQUENCE), -np.inf, np.float32), 1)
        self.tensor("mask", mask)


def make_model():
    """A decoder with norms before its layers, and a head of its own."""
    b = Builder()
    b.constants()
    x = b.op("Gather", b.normal("embedding.weight", VOCABULARY, WIDTH), "bytes")
    position = b.normal("position.weight", SEQUENCE, WIDTH)
    x = b.op("Add", x, b.op("Gather", position, "positions"))
    for i in range(LAYERS):
        name = f"layers.{i}"
        x = b.op("Add", x, b.attention(b.norm(x, f"{name}.norm1"), f"{name}.attention"))
        h = b.linear(b.norm(x, f"{name}.norm2"), f"{name}.up", WIDTH, 4 * WIDTH)
        h = b.op("Gelu", h, approximate="tanh")
        scale = 0.02 / (2 * LAYERS) ** 0.5
        x = b.op("Add", x, b.linear(h, f"{name}.down", 4 * WIDTH, WIDTH, scale))
    b.op("MatMul", b.norm(x, "norm"), b.normal("head.weight", WIDTH, VOCABULARY))
    b.nodes[-1].output[0] = "logits"
    shape = [BATCH, SEQUENCE]
    given = helper.make_tensor_value_info("bytes", TensorProto.INT64, shape)
    logits = helper.make_tensor_value_info(
        "logits", TensorProto.FLOAT, [*shape, VOCABULARY]
    )
    graph = helper.make_graph(b.nodes, "text", [given], [logits], b.tensors)
    opset = helper.make_opsetid("", 20)
    return helper.make_model(graph, ir_version=10, opset_imports=[opset])


def main(folder="."):
    os.makedirs(folder, exist_ok=True)
    model = make_model()
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, os.path.join(folder, "model.onnx"))
    write_data(folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
