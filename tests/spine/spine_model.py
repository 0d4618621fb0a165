"""The spine model: small, and through every part of the house.

About 40 nodes: a symbolic batch, convolutions with batch normalisation to fold,
an If on an input, a Loop with a run-time trip count, shape arithmetic, softmax,
layer normalisation, a written-out GELU, and a state pair (state -> next_state).
"""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FEATURES = 16


def weights(seed):
    """The model's weights by name; other seeds give replacement weights."""
    random = np.random.RandomState(seed)

    def normal(*shape, scale=0.3):
        return (random.randn(*shape) * scale).astype(np.float32)

    def positive(*shape):
        return (0.5 + random.rand(*shape)).astype(np.float32)

    result = {
        "conv1.weight": normal(8, 3, 3, 3),
        "conv2.weight": normal(8, 8, 3, 3),
        "fc.weight": normal(FEATURES, 8),
        "fc.bias": normal(FEATURES),
        "norm.weight": positive(FEATURES),
        "norm.bias": normal(FEATURES),
        "proj.weight": normal(FEATURES, FEATURES),
        "proj.bias": normal(FEATURES),
        "decay": positive(8, 1, 1) * 0.5,
    }
    for bn in ("bn1", "bn2"):
        result |= {
            f"{bn}.weight": positive(8),
            f"{bn}.bias": normal(8),
            f"{bn}.running_mean": normal(8),
            f"{bn}.running_var": positive(8),
        }
    return result


class Graph:
    """Collects the nodes of one graph; value names start with `prefix`."""

    def __init__(self, prefix=""):
        self.nodes = []
        self.prefix = prefix

    def op(self, op, *inputs, out=None, **attributes):
        out = out or f"{self.prefix}{op.lower()}_{len(self.nodes)}"
        self.nodes.append(
            helper.make_node(op, inputs, [out], name=f"/{out}", **attributes)
        )
        return out

    def constant(self, value, dtype):
        return self.op(
            "Constant", value=numpy_helper.from_array(np.array(value, dtype))
        )


def norm(g, x, bn):
    names = ("weight", "bias", "running_mean", "running_var")
    return g.op("BatchNormalization", x, *(f"{bn}.{n}" for n in names))


def branches(x):
    """The regions of the If: both give a tensor of x's shape."""
    shape = ["batch", 8, 8, 8]
    info = helper.make_tensor_value_info
    then, other = Graph("then_"), Graph("else_")
    two = then.constant(2.0, np.float32)
    then.op("Sigmoid", then.op("Mul", x, two), out="then_out")
    one = other.constant(1.0, np.float32)
    other.op("Tanh", other.op("Sub", x, one), out="else_out")
    make = lambda g, name: helper.make_graph(
        g.nodes, name, [], [info(name, TensorProto.FLOAT, shape)]
    )
    return dict(then_branch=make(then, "then_out"), else_branch=make(other, "else_out"))


def loop_body():
    """y <- y * decay + i / 10, while i < trips."""
    g = Graph("body_")
    info = helper.make_tensor_value_info
    step = g.op("Cast", "i", to=TensorProto.FLOAT)
    step = g.op("Mul", step, g.constant(0.1, np.float32))
    g.op("Add", g.op("Mul", "y_in", "decay"), step, out="y_out")
    g.op("Identity", "cond_in", out="cond_out")
    shape = ["batch", 8, 8, 8]
    return helper.make_graph(
        g.nodes,
        "body",
        [
            info("i", TensorProto.INT64, []),
            info("cond_in", TensorProto.BOOL, []),
            info("y_in", TensorProto.FLOAT, shape),
        ],
        [
            info("cond_out", TensorProto.BOOL, []),
            info("y_out", TensorProto.FLOAT, shape),
        ],
    )


def head(g, y):
    """[batch, 8, 8, 8] -> features [batch, 16]."""
    pooled = g.op("Flatten", g.op("GlobalAveragePool", y))
    z = g.op("Gemm", pooled, "fc.weight", "fc.bias", transB=1)
    half, one = g.constant(0.5, np.float32), g.constant(1.0, np.float32)
    erf = g.op("Erf", g.op("Div", z, g.constant(np.sqrt(2), np.float32)))
    z = g.op("Mul", g.op("Mul", z, g.op("Add", erf, one)), half)
    z = g.op("LayerNormalization", z, "norm.weight", "norm.bias", epsilon=1e-5)
    return g.op("Add", g.op("MatMul", z, "proj.weight"), "proj.bias")


def attend(g, z):
    """features as [batch, 4, 4]: softmax(t t^T) t, back to [batch, 16]."""
    batch = g.op(
        "Gather", g.op("Shape", z), g.constant([0], np.int64), axis=0
    )
    square = g.op("Concat", batch, g.constant([4, 4], np.int64), axis=0)
    t = g.op("Reshape", z, square)
    scores = g.op("MatMul", t, g.op("Transpose", t, perm=[0, 2, 1]))
    mixed = g.op("MatMul", g.op("Softmax", scores, axis=-1), t)
    flat = g.op("Concat", batch, g.constant([FEATURES], np.int64), axis=0)
    return g.op("Reshape", mixed, flat)


def build(seed=0):
    g = Graph()
    x = g.op("Conv", "x", "conv1.weight", pads=[1, 1, 1, 1])
    x = g.op("Relu", norm(g, x, "bn1"))
    y = norm(g, g.op("Conv", x, "conv2.weight", pads=[1, 1, 1, 1]), "bn2")
    y = g.op("Relu", g.op("Add", x, y))
    y = g.op("MaxPool", y, kernel_shape=[2, 2], strides=[2, 2])
    y = g.op("If", "flag", **branches(y))
    true = g.constant(True, np.bool_)
    y = g.op("Loop", "trips", true, y, body=loop_body())
    z = head(g, y)
    g.op("Concat", z, attend(g, z), axis=1, out="y")
    mean = g.op("ReduceMean", z, g.constant([0], np.int64), keepdims=1)
    decayed = g.op("Mul", "state", g.constant(0.5, np.float32))
    g.op("Tanh", g.op("Add", decayed, mean), out="next_state")
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        g.nodes,
        "spine",
        [
            info("x", TensorProto.FLOAT, ["batch", 3, 16, 16]),
            info("flag", TensorProto.BOOL, []),
            info("trips", TensorProto.INT64, []),
            info("state", TensorProto.FLOAT, [1, FEATURES]),
        ],
        [
            info("y", TensorProto.FLOAT, ["batch", 2 * FEATURES]),
            info("next_state", TensorProto.FLOAT, [1, FEATURES]),
        ],
        [numpy_helper.from_array(v, k) for k, v in weights(seed).items()],
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9
    )
    onnx.checker.check_model(model)
    return model
