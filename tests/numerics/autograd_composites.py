"""Rows of norms, losses, products of windows, cells and attention, each with
the PyTorch function that means the same."""

import numpy as np

from numerics.autograd_rows import ROWS, array, case, known, values
from numerics.rows import Constant, ints, row

# --- norms and losses ---------------------------------------------------------


def norms():
    x, four = values(3, 4, 2, 3), values(3, 4)
    x[1] = 0.5
    scale, bias, mean = values(4), values(4), values(4)
    variance = values(4, low=0.5, high=2)
    yield case(lambda t, x, w, b: t.layer_norm(x, (2, 3), w, b), "LayerNormalization",
               x, values(2, 3), values(2, 3), axis=2)  # fmt: skip
    yield case(lambda t, x, w: t.rms_norm(x, (3,), w, 1e-5), "RMSNormalization", x,
               values(3))  # fmt: skip
    yield case(lambda t, x, w, b: t.instance_norm(x, weight=w, bias=b),
               "InstanceNormalization", x, scale, bias)  # fmt: skip
    for groups in (1, 2, 4):
        yield case(lambda t, x, w, b, g=groups: t.group_norm(x, g, w, b),
                   "GroupNormalization", x, scale, bias, name=str(groups),
                   num_groups=groups)  # fmt: skip
    yield case(lambda t, x, w, b: t.batch_norm(x, t.tensor(mean), t.tensor(variance), w, b),
               "BatchNormalization", x, scale, bias, Constant(mean),
               Constant(variance))  # fmt: skip
    for operand in (x, four):
        yield case(lambda t, x, w, b: t.batch_norm(x, None, None, w, b, True),
                   "BatchNormalization", operand, scale, bias, Constant(mean),
                   Constant(variance), name=f"of the batch {operand.ndim}",
                   training_mode=1)  # fmt: skip
    yield case(lambda t, x: t.local_response_norm(x, 3, 0.5, 0.75, 1), "LRN", x, size=3,
               alpha=0.5, beta=0.75, bias=1.0)  # fmt: skip


def losses():
    scores, weight = values(6, 5), values(5, low=0.2, high=1)
    scores[1, 2] = -np.inf
    image, dense = values(2, 5, 3), np.array([[0, 1, 4], [3, 3, 2]])
    labels, ignored = np.array([0, 4, 2, 2, 1, 3]), np.full(6, 2)

    def losses_of(x, labels, weight, ignore, reduction):
        options = dict(ignore_index=ignore, reduction=reduction)
        weights = [] if weight is None else [Constant(weight)]
        name = f"{x.ndim} {weight is not None} {ignore} {reduction} {np.ptp(labels)}"
        for op, f in (("SoftmaxCrossEntropyLoss", "cross_entropy"),
                      ("NegativeLogLikelihoodLoss", "nll_loss")):  # fmt: skip
            def function(t, x, f=f):
                w = None if weight is None else t.tensor(weight)
                return getattr(t, f)(x, t.tensor(labels), w, **options)

            yield case(function, op, x, labels, *weights, name=name, **options)

    for reduction in ("mean", "sum", "none"):
        yield from losses_of(scores, labels, None, -100, reduction)
        yield from losses_of(scores, labels, weight, 2, reduction)
        yield from losses_of(image, dense, weight, 3, reduction)
    yield from losses_of(scores, ignored, None, 2, "sum")


# --- windows ------------------------------------------------------------------


def windows():
    for rank, shape, kernel in ((1, (2, 2, 9), (2, 1, 3)), (2, (2, 2, 6, 5), (4, 1, 3, 2)),
                                (3, (1, 2, 3, 4, 3), (2, 1, 2, 3, 2))):  # fmt: skip
        options = dict(strides=[2] * rank, pads=[1] * (2 * rank), group=2)
        function = lambda t, x, w, b, r=rank: getattr(t, f"conv{r}d")(  # noqa: E731
            x, w, b, stride=2, padding=1, groups=2
        )
        yield case(function, "Conv", values(*shape), values(*kernel),
                   values(kernel[0]), name=f"{rank}-D", **options)  # fmt: skip
        function = lambda t, x, w, b, r=rank: getattr(t, f"conv_transpose{r}d")(  # noqa: E731
            x, w, b, stride=2, padding=1, output_padding=1, groups=2
        )
        yield case(function, "ConvTranspose", values(*shape), values(2, *kernel[1:]),
                   values(2), name=f"{rank}-D", output_padding=[1] * rank,
                   **options)  # fmt: skip
    yield case(lambda t, x, w: t.conv2d(x, w, dilation=2), "Conv", values(1, 2, 6, 5),
               values(2, 2, 3, 2), name="dilated", dilations=[2, 2])  # fmt: skip
    # Ties, which the first one of a window wins, and infinities.
    ties = np.round(values(2, 2, 6, 5, low=-2, high=2))
    ties[0, 0, 1:3] = -np.inf
    window = dict(kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    yield case(lambda t, x: t.max_pool2d(x, 3, 2, 1), "MaxPool", ties, **window)
    yield case(lambda t, x: t.max_pool2d(x, 2, 1, 0, 2), "MaxPool", ties, name="dilated",
               kernel_shape=[2, 2], dilations=[2, 2])  # fmt: skip
    for counts in (False, True):
        function = lambda t, x, c=counts: t.avg_pool2d(x, 3, 2, 1, True, c)  # noqa: E731
        yield case(function, "AveragePool", values(2, 2, 6, 5), name=str(counts),
                   count_include_pad=int(counts), ceil_mode=1, **window)  # fmt: skip
    x = values(1, 2, 4, 4)
    x[0, 0, :2, :2] = 0
    yield case(lambda t, x: t.lp_pool2d(x, 2, 2), "LpPool", x, kernel_shape=[2, 2],
               strides=[2, 2])  # fmt: skip
    yield case(lambda t, x: t.norm(x, 2, (2, 3), True), "GlobalLpPool", x * [[[[0]], [[1]]]])
    yield case(lambda t, x: t.amax(x, (2, 3), True), "GlobalMaxPool", ties[:1, 1:])
    yield case(lambda t, x: t.mean(x, (2, 3), True), "GlobalAveragePool", x)
    places = np.array([[[[1, 3], [8, 10]]]])
    yield case(lambda t, x: t.max_unpool2d(x, t.tensor(places), 2), "MaxUnpool",
               values(1, 1, 2, 2), Constant(places), kernel_shape=[2, 2],
               strides=[2, 2])  # fmt: skip


# --- cells --------------------------------------------------------------------


def run_cell(t, kind, order, x, w, r, b):
    """`order`: of PyTorch's gates among ONNX's."""
    size = r.shape[2]
    gates = [i for g in order for i in range(g * size, (g + 1) * size)]
    parameters = [
        part for d in range(w.shape[0])
        for part in (w[d][gates], r[d][gates], *(h[gates] for h in b[d].chunk(2)))
    ]  # fmt: skip
    state = t.zeros(w.shape[0], x.shape[1], size, dtype=x.dtype)
    start = (state, state) if kind == "lstm" else state
    found = getattr(t, kind)(
        x, start, parameters, True, 1, 0.0, False, w.shape[0] == 2, False
    )
    y = found[0].reshape(*x.shape[:2], w.shape[0], size).transpose(1, 2)
    return y, *found[1:]


def cells():
    for op, kind, order, options in (
        ("LSTM", "lstm", (0, 2, 3, 1), {}),
        ("GRU", "gru", (1, 0, 2), dict(linear_before_reset=1)),
        ("RNN", "rnn_tanh", (0,), {}),
    ):
        for count, direction in ((1, "forward"), (2, "bidirectional")):
            rows = len(order) * 3
            operands = values(4, 2, 2), values(count, rows, 2), values(count, rows, 3)
            function = lambda t, *x, k=kind, o=order: run_cell(t, k, o, *x)  # noqa: E731
            yield case(function, op, *operands, values(count, 2 * rows),
                       name=direction, direction=direction, hidden_size=3,
                       outputs=3 if op == "LSTM" else 2, **options)  # fmt: skip


# --- attention ----------------------------------------------------------------


def attend(**options):
    return lambda t, q, k, v: t.scaled_dot_product_attention(q, k, v, **{
        key: t.tensor(x) if isinstance(x, np.ndarray) else x for key, x in options.items()
    })  # fmt: skip


def attention():
    q, k, v = values(2, 4, 3, 4), values(2, 4, 3, 4), values(2, 4, 3, 2)
    mask = np.array([[1, 0, 1], [0, 1, 1], [1, 1, 1]], bool)
    empty = np.array([[1, 0, 1], [0, 0, 0], [1, 1, 1]], bool)
    yield case(attend(), "Attention", q, k, v)
    yield case(attend(is_causal=True), "Attention", q, k, v, name="causal", is_causal=1)
    yield case(attend(attn_mask=mask), "Attention", q, k, v, mask, name="mask")
    yield case(attend(attn_mask=empty), "Attention", q, k, v, empty, name="an empty row")
    yield case(attend(scale=0.25), "Attention", q, k, v, name="scaled", scale=0.25)
    yield case(attend(enable_gqa=True), "Attention", q, k[:, :2], v[:, :2], name="groups")
    biased = lambda t, q, k, v, b: t.scaled_dot_product_attention(q, k, v, b)  # noqa: E731
    yield case(biased, "Attention", q, k, v, values(3, 3), name="bias")
    bias = np.where(mask, 0.5, -np.inf)
    yield case(biased, "Attention", q, k, v, bias, name="bias of infinities")
    # The same, spelled out.
    scores = row("MatMul", q, row("Transpose", k, perm=[0, 1, 3, 2]))
    masked = row("Where", mask, row("Mul", scores, known(0.5)), known(-np.inf))
    yield case(attend(attn_mask=mask), "MatMul", row("Softmax", masked), v,
               name="of a softmax")  # fmt: skip


FAMILIES = (norms, losses, windows, cells, attention)


def models():
    for family in FAMILIES:
        yield family.__name__, list(family())
