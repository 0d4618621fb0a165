"""Rows of what exporters write out with several operators, some of which the
compiler finds again, each with the PyTorch function that means the same."""

import math

import numpy as np

from numerics.autograd_rows import array, case, known, values
from numerics.rows import Constant, ints, row


def mul(x, y):
    return row("Mul", x, y)


def add(x, y):
    return row("Add", x, y)


def activations():
    x = array(0, 0.5, -0.5, 1, -1, 2.5, -2.5, 7, -7)
    grown = add(row("Erf", row("Div", x, known(math.sqrt(2)))), known(1))
    yield case(lambda t, x: t.gelu(x), "Mul", mul(x, grown), known(0.5), name="gelu")
    cubic = add(x, mul(row("Pow", x, known(3)), known(0.044715)))
    bent = row("Tanh", mul(cubic, known(math.sqrt(2 / math.pi))))
    yield case(lambda t, x: t.gelu(x, approximate="tanh"), "Mul",
               mul(x, add(bent, known(1))), known(0.5), name="gelu by tanh")  # fmt: skip
    yield case(lambda t, x: t.silu(x), "Mul", x, row("Sigmoid", x), name="silu")
    yield case(lambda t, x: t.sigmoid(x), "Div", known(1),
               add(known(1), row("Exp", row("Neg", x))), name="sigmoid")  # fmt: skip
    clipped = row("Clip", add(x, known(3)), known(0), known(6))
    yield case(lambda t, x: t.hardswish(x), "Div", mul(x, clipped), known(6),
               name="hard swish")  # fmt: skip
    # PyTorch's own hardsigmoid has a sixth in f32.
    yield case(lambda t, x: t.clamp(x + 3, 0, 6) / 6, "Div", clipped, known(6),
               name="hard sigmoid")  # fmt: skip
    yield case(lambda t, x: t.softplus(x), "Log", add(known(1), row("Exp", x)),
               name="softplus")  # fmt: skip
    yield case(lambda t, x: t.mish(x), "Mul", x, row("Tanh", row("Softplus", x)),
               name="mish")  # fmt: skip
    gate = row("Split", values(3, 8), axis=1, num_outputs=2, outputs=2)
    yield case(lambda t, x: t.relu(x[:, :4]) ** 2, "Pow", row("Relu", gate), known(2),
               name="squared relu")  # fmt: skip


def written_norms():
    x, scale, shift = values(3, 2, 5), values(5), values(5)
    x[1] = 0.25
    centered = row("Sub", x, row("ReduceMean", x, ints(-1)))
    variance = row("ReduceMean", mul(centered, centered), ints(-1))
    root = row("Sqrt", add(variance, known(1e-5)))
    norm = add(mul(row("Div", centered, root), scale), shift)
    function = lambda t, x, w, b: t.layer_norm(x, (5,), w, b, 1e-5)  # noqa: E731
    yield case(function, "Identity", norm, name="layer norm")
    square = row("ReduceMean", row("Pow", x, known(2)), ints(-1))
    inverse = row("Reciprocal", row("Sqrt", add(square, known(1e-5))))
    yield case(lambda t, x, w: t.rms_norm(x, (5,), w, 1e-5), "Mul", mul(x, inverse),
               scale, name="rms norm")  # fmt: skip
    shifted = row("Sub", x, row("ReduceMax", x, ints(-1)))
    grown = row("Exp", shifted)
    total = row("ReduceSum", grown, ints(-1))
    yield case(lambda t, x: t.softmax(x, -1), "Div", grown, total, name="softmax")
    yield case(lambda t, x: t.log_softmax(x, -1), "Sub", shifted, row("Log", total),
               name="log softmax")  # fmt: skip
    longest = row("Max", row("ReduceL2", x, ints(-1)), known(1e-3))
    yield case(lambda t, x: t.normalize(x, dim=-1, eps=1e-3), "Div", x, longest,
               name="normalize")  # fmt: skip
    v, length = values(4, 3), values(4, 1)
    weight = mul(v, row("Div", length, row("ReduceL2", v, ints(1))))
    function = lambda t, x, v, g: t.linear(x, g * v / v.norm(dim=1, keepdim=True))  # noqa: E731
    yield case(function, "Gemm", values(2, 3), weight, transB=1, name="weight norm")


def attention_of(q, k, v, mask=None):
    scores = row("MatMul", q, row("Transpose", k, perm=[0, 1, 3, 2]))
    scores = row("Div", scores, known(2))
    if mask is not None:
        scores = row("Where", mask, scores, known(-np.inf))
    return row("MatMul", row("Softmax", scores, axis=-1), v)


def networks():
    q, k, v = values(2, 4, 3, 4), values(2, 4, 3, 4), values(2, 4, 3, 4)
    attend = lambda t, *x, **o: t.scaled_dot_product_attention(*x, **o)  # noqa: E731
    yield case(attend, "Identity", attention_of(q, k, v), name="attention")
    causal = np.tril(np.ones((3, 3), bool))
    yield case(lambda t, *x: attend(t, *x, is_causal=True), "Identity",
               attention_of(q, k, v, causal), name="causal attention")  # fmt: skip
    few = [
        row("Reshape", row("Expand", row("Unsqueeze", x, ints(2)), ints(2, 2, 2, 3, 4)),
            ints(2, 4, 3, 4))
        for x in (k[:, :2], v[:, :2])
    ]  # fmt: skip
    yield case(lambda t, *x: attend(t, *x, enable_gqa=True), "Identity",
               attention_of(q, *few), name="attention of groups")  # fmt: skip
    conv = row("Conv", values(2, 2, 5, 5), values(3, 2, 3, 3), pads=[1] * 4)
    mean, variance = Constant(values(3)), Constant(values(3, low=0.5, high=2))
    norm = row("BatchNormalization", conv, values(3), values(3), mean, variance)
    of_batch = lambda t, x, w, a, b: t.relu(  # noqa: E731
        t.batch_norm(t.conv2d(x, w, padding=1), t.tensor(mean.value),
                     t.tensor(variance.value), a, b)
    )  # fmt: skip
    yield case(of_batch, "Relu", norm, name="of a convolution and norm")
    # One table that both embeds and tells the tokens' scores.
    tokens, table = np.array([[2, 0, 1], [2, 2, 4]]), values(5, 3)
    embedded = row("Tanh", row("Gather", table, tokens))
    scores = row("MatMul", embedded, row("Transpose", table, perm=[1, 0]))
    yield case(lambda t, w: t.linear(t.tanh(w[t.tensor(tokens)]), w), "Identity", scores,
               name="tied table")  # fmt: skip
    labels, s = np.array([[1], [0], [3]]), 0.125
    logs = row("LogSoftmax", values(3, 4))
    chosen = mul(row("GatherElements", logs, labels, axis=1), known(s - 1))
    spread = mul(row("ReduceMean", logs, ints(1)), known(-s))
    function = lambda t, x: t.cross_entropy(  # noqa: E731
        x, t.tensor(labels[:, 0]), label_smoothing=s
    )
    yield case(function, "ReduceMean", add(chosen, spread), name="smoothed cross entropy",
               keepdims=0)  # fmt: skip
    # Messages along the edges of graphs: slices, by one index for each.
    x, w = values(2, 5, 3), values(3, 3)
    ends = [np.array([[0, 4, 2, 4], [3, 3, 1, 0]]), np.array([[1, 1, 0, 3], [2, 0, 2, 4]])]
    whole = [row("Expand", row("Unsqueeze", end, ints(-1)), ints(2, 4, 3)) for end in ends]
    sent = row("MatMul", row("GatherElements", x, whole[0], axis=1), w)
    received = row("ScatterElements", x, whole[1], sent, axis=1, reduction="add")

    def pass_messages(t, x, w):
        source, target = (t.tensor(end)[..., None].expand(2, 4, 3) for end in ends)
        return t.tanh(x.scatter_add(1, target, x.gather(1, source) @ w))

    yield case(pass_messages, "Tanh", received, name="messages of graphs")
    x, w = values(3, 4), values(4, 4)
    h = add(x, row("Tanh", row("MatMul", x, w)))
    h = add(h, row("Tanh", row("MatMul", h, w)))
    block = lambda t, x, w: x + t.tanh(x @ w)  # noqa: E731
    yield case(lambda t, x, w: block(t, block(t, x, w), w), "Identity", h,
               name="residual blocks")  # fmt: skip


FAMILIES = (activations, written_norms, networks)


def models():
    for family in FAMILIES:
        yield family.__name__, list(family())
