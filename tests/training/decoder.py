"""A small decoder of any batch and length: its inputs are `tokens` [batch, seq]."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WIDTH, HEADS, VOCABULARY = 32, 4, 256


class Builder:
    """A graph under construction; a method adds nodes and names their result."""

    def __init__(self, width, longest):
        self.width, self.nodes, self.tensors = width, [], []
        self.random = np.random.RandomState(0)
        for name, value in {
            "zero": np.int64(0), "one": np.int64(1), "rows": np.array([0]), "columns": np.array([1]),
            "split": np.array([0, 0, 3, HEADS, width // HEADS]), "joined": np.array([0, 0, width]),
            "scale": np.float32((width // HEADS) ** -0.5), "minus": np.float32(-1e9),
        }.items():  # fmt: skip
            self.tensor(name, value)
        for i, name in enumerate(("first", "second", "third")):
            self.tensor(name, np.int64(i))
        self.longest = longest

    def op(self, kind, *inputs, **attributes):
        output = f"value{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    def tensor(self, name, values):
        self.tensors.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def normal(self, name, *shape, scale=0.1):
        return self.tensor(name, self.random.normal(0, scale, shape).astype(np.float32))

    def linear(self, x, name, inputs, outputs):
        weight = self.normal(f"{name}.weight", inputs, outputs)
        bias = self.tensor(f"{name}.bias", np.zeros(outputs, np.float32))
        return self.op("Add", self.op("MatMul", x, weight), bias)

    def norm(self, x, name):
        weight = self.tensor(f"{name}.weight", np.ones(self.width, np.float32))
        bias = self.tensor(f"{name}.bias", np.zeros(self.width, np.float32))
        return self.op("LayerNormalization", x, weight, bias)

    def attention(self, x, name, mask):
        split = self.op("Reshape", self.linear(x, f"{name}.qkv", self.width, 3 * self.width), "split")
        query, key, value = (
            self.op("Gather", self.op("Transpose", split, perm=perm), index, axis=0)
            for index, perm in (
                ("first", [2, 0, 3, 1, 4]),
                ("second", [2, 0, 3, 4, 1]),
                ("third", [2, 0, 3, 1, 4]),
            )
        )
        scores = self.op("Mul", self.op("MatMul", query, key), "scale")
        scores = self.op("Softmax", self.op("Add", scores, mask), axis=-1)
        mixed = self.op("Transpose", self.op("MatMul", scores, value), perm=[0, 2, 1, 3])
        return self.linear(self.op("Reshape", mixed, "joined"), f"{name}.out", self.width, self.width)


def make(layers=1, width=WIDTH, longest=256):
    b = Builder(width, longest)
    length = b.op("Gather", b.op("Shape", "tokens"), "one", axis=0)
    places = b.op("Range", "zero", length, "one")
    x = b.op("Gather", b.normal("embedding.weight", VOCABULARY, width), "tokens")
    table = b.normal("position.weight", longest, width)
    x = b.op("Add", x, b.op("Gather", table, places))
    later = b.op("Greater", b.op("Unsqueeze", places, "rows"), b.op("Unsqueeze", places, "columns"))
    mask = b.op("Mul", b.op("Cast", later, to=TensorProto.FLOAT), "minus")
    for i in range(layers):
        name = f"layers.{i}"
        x = b.op("Add", x, b.attention(b.norm(x, f"{name}.norm1"), f"{name}.attention", mask))
        h = b.op("Gelu", b.linear(b.norm(x, f"{name}.norm2"), f"{name}.up", width, 4 * width),
                 approximate="tanh")  # fmt: skip
        x = b.op("Add", x, b.linear(h, f"{name}.down", 4 * width, width))
    b.op("MatMul", b.norm(x, "norm"), b.normal("head.weight", width, VOCABULARY))
    b.nodes[-1].output[0] = "logits"
    given = helper.make_tensor_value_info("tokens", TensorProto.INT64, ["batch", "seq"])
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", "seq", VOCABULARY])
    graph = helper.make_graph(b.nodes, "decoder", [given], [logits], b.tensors)
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 20)])
    onnx.checker.check_model(model)
    return model
