"""Writes model.onnx, and the data as npz and csv: prepare.py [FOLDER]

The digits are those in scikit-learn's wheel (UCI optdigits, CC BY 4.0), 1797
pictures of 8 x 8. Needs numpy, onnx and pip.
"""

import glob
import gzip
import os
import subprocess
import sys
import tempfile
import zipfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SCIKIT = "scikit-learn==1.9.1"
TEST = 256
# Channels of the convolutions, then the classes.
CHANNELS = 1, 16, 32
CLASSES = 10


def read_digits():
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps"]
        subprocess.run([*pip, "-d", folder, SCIKIT], check=True)
        (wheel,) = glob.glob(folder + "/*.whl")
        with zipfile.ZipFile(wheel) as archive:
            packed = archive.read("sklearn/datasets/data/digits.csv.gz")
    lines = gzip.decompress(packed).decode().splitlines()
    table = np.array([line.split(",") for line in lines], np.float32)
    pictures = table[:, :64].reshape(-1, 1, 8, 8) / 16
    return pictures, table[:, 64].astype(np.int64)


def write_data(folder, random):
    pictures, labels = read_digits()
    order = random.permutation(len(labels))
    for name, part in (("test", order[:TEST]), ("train", order[TEST:])):
        path = os.path.join(folder, name)
        np.savez(path + ".npz", image=pictures[part], labels=labels[part])
        rows = np.column_stack([pictures[part].reshape(-1, 64), labels[part]])
        np.savetxt(path + ".csv", rows, "%g", ",")


def make_model(random):
    """Two convolutions, one pooling and one linear layer."""
    weights = []

    def parameters(name, *shape):
        bound = np.prod(shape[1:]) ** -0.5
        for suffix, sizes in (("weight", shape), ("bias", shape[:1])):
            values = random.uniform(-bound, bound, sizes).astype(np.float32)
            weights.append(numpy_helper.from_array(values, f"{name}.{suffix}"))
        return [f"{name}.weight", f"{name}.bias"]

    nodes, last = [], "image"

    def add(op, inputs=(), **attributes):
        nonlocal last
        output = f"value{len(nodes)}"
        nodes.append(helper.make_node(op, [last, *inputs], [output], **attributes))
        last = output

    for i, (before, after) in enumerate(zip(CHANNELS, CHANNELS[1:], strict=False)):
        inputs = parameters(f"conv{i + 1}", after, before, 3, 3)
        add("Conv", inputs, pads=[1, 1, 1, 1])
        add("Relu")
    add("MaxPool", kernel_shape=[2, 2], strides=[2, 2])
    add("Flatten")
    add("Gemm", parameters("head", CLASSES, CHANNELS[-1] * 16), transB=1)
    nodes[-1].output[0] = "logits"
    image = helper.make_tensor_value_info(
        "image", TensorProto.FLOAT, ["batch", 1, 8, 8]
    )
    logits = helper.make_tensor_value_info(
        "logits", TensorProto.FLOAT, ["batch", CLASSES]
    )
    graph = helper.make_graph(nodes, "digits", [image], [logits], weights)
    opset = helper.make_opsetid("", 20)
    return helper.make_model(graph, ir_version=10, opset_imports=[opset])


def main(folder="."):
    os.makedirs(folder, exist_ok=True)
    random = np.random.RandomState(0)
    model = make_model(random)
    onnx.checker.check_model(model)
    onnx.save(model, os.path.join(folder, "model.onnx"))
    write_data(folder, random)


if __name__ == "__main__":
    main(*sys.argv[1:])
