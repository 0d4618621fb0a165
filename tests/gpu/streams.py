"""Models of one kernel each that reads and writes its tensors once."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

OPSET = 20


def make(nodes, inputs, outputs, weights=()):
    """A model of f32 tensors by name and shape."""

    def describe(values):
        return [
            helper.make_tensor_value_info(name, kind, shape)
            for name, kind, shape in values
        ]

    weights = [
        numpy_helper.from_array(np.array(value, np.float32), name)
        for name, value in weights
    ]
    graph = helper.make_graph(
        nodes, "stream", describe(inputs), describe(outputs), weights
    )
    opsets = [helper.make_opsetid("", OPSET)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def unary(op, rows, columns, **attributes):
    shape = [rows, columns]
    return make(
        [helper.make_node(op, ["x"], ["y"], **attributes)],
        [("x", TensorProto.FLOAT, shape)],
        [("y", TensorProto.FLOAT, shape)],
    )


def layer_norm(rows, columns):
    shape = [rows, columns]
    return make(
        [helper.make_node("LayerNormalization", ["x", "scale"], ["y"])],
        [("x", TensorProto.FLOAT, shape), ("scale", TensorProto.FLOAT, [columns])],
        [("y", TensorProto.FLOAT, shape)],
    )


def cross_entropy(rows, columns):
    """Its gradient is asked for when it is compiled."""
    return make(
        [helper.make_node("SoftmaxCrossEntropyLoss", ["x", "target"], ["loss"])],
        [("x", TensorProto.FLOAT, [rows, columns]), ("target", TensorProto.INT64, [rows])],
        [("loss", TensorProto.FLOAT, [])],
    )


def adamw(rows, columns):
    """The arithmetic of a step: four tensors are read and three written."""
    numbers = {
        "keep1": 0.9, "new1": 0.1, "keep2": 0.999, "new2": 0.001, "epsilon": 1e-8,
        "rate": 1e-3, "decay": 1 - 1e-5,
    }  # fmt: skip
    nodes = [
        helper.make_node(op, inputs, [output])
        for op, inputs, output in (
            ("Mul", ["m", "keep1"], "m1"),
            ("Mul", ["g", "new1"], "m2"),
            ("Add", ["m1", "m2"], "mean"),
            ("Mul", ["g", "g"], "square"),
            ("Mul", ["v", "keep2"], "v1"),
            ("Mul", ["square", "new2"], "v2"),
            ("Add", ["v1", "v2"], "variance"),
            ("Sqrt", ["variance"], "root"),
            ("Add", ["root", "epsilon"], "scale"),
            ("Div", ["mean", "scale"], "step"),
            ("Mul", ["step", "rate"], "change"),
            ("Mul", ["p", "decay"], "kept"),
            ("Sub", ["kept", "change"], "parameter"),
        )
    ]
    shape = [rows, columns]
    return make(
        nodes,
        [(name, TensorProto.FLOAT, shape) for name in "pgmv"],
        [(name, TensorProto.FLOAT, shape) for name in ("parameter", "mean", "variance")],
        numbers.items(),
    )
