"""Rows of operators whose gradients are checked, all floats f64."""

import numpy as np

from onnx import TensorProto

from numerics import pointwise
from numerics.rows import Body, Constant, ints, row

random = np.random.RandomState(17)


def values(*shape, low=-1.0, high=1.0):
    return np.asarray(random.uniform(low, high, shape))


def known(*numbers):
    return Constant(np.array(numbers, np.float64))


def spread(x):
    """Values in x's order, at even distances: no two are close, nor one to 0."""
    if x.size < 2:
        return x
    places = (np.argsort(np.argsort(x, axis=None)) + 0.5) / x.size
    low, step = x.min(), (x.max() - x.min()) / x.size
    found = low + step * x.size * places
    if abs(found).min() < step / 4:
        found += step / 2
    return found.reshape(x.shape)


# --- pointwise ----------------------------------------------------------------

UNARY = {
    "Identity": {},
    "Asin": dict(low=-0.9, high=0.9),
    "Acos": dict(low=-0.9, high=0.9),
    "Atanh": dict(low=-0.9, high=0.9),
    "Acosh": dict(low=1.1, high=3),
    "Tan": dict(low=-1.3, high=1.3),
    "Atan": {},
    "Asinh": {},
    "Sinh": {},
    "Cosh": {},
    "Softplus": {},
    "Softsign": {},
    "Gelu": {},
    "Elu": {},
    "Selu": {},
    "Celu": {},
    "LeakyRelu": {},
    "ThresholdedRelu": {},
    "HardSigmoid": dict(low=-4.1, high=4.2),
    "HardSwish": dict(low=-4.1, high=4.2),
    "Swish": {},
    "Shrink": {},
    "Dropout": {},
}
VARIANTS = (
    ("Gelu", dict(approximate="tanh")),
    ("Elu", dict(alpha=0.3)),
    ("Selu", dict(alpha=0.7, gamma=1.2)),
    ("Celu", dict(alpha=0.4)),
    ("LeakyRelu", dict(alpha=0.2)),
    ("ThresholdedRelu", dict(alpha=0.3)),
    ("HardSigmoid", dict(alpha=0.4, beta=0.3)),
    ("Swish", dict(alpha=1.7)),
    ("Shrink", dict(lambd=0.3, bias=0.1)),
)


def unary():
    for op, (function, _, low, high) in pointwise.FLOAT_UNARY.items():
        if op in UNARY:
            continue
        x = spread(values(41, low=max(low, -2), high=min(high, 2)))
        with np.errstate(invalid="ignore"):
            yield row(op, x[np.isfinite(function(x).astype(float))])
    for op, options in UNARY.items():
        yield row(op, spread(values(3, 1, 13, low=-2, high=2) if not options else
                             values(3, 1, 13, **options)))
    for op, attributes in VARIANTS:
        yield row(op, spread(values(37)), name=str(attributes), **attributes)
    yield row("Hardmax", spread(values(3, 5)))
    yield row("Cast", values(7), to=TensorProto.DOUBLE)
    numbers = Constant(np.array([[3, -7], [0, 120]], np.int8))
    yield row("DequantizeLinear", numbers, values(2), axis=1)
    # Not near to what rounds to another integer.
    yield row("DynamicQuantizeLinear", np.array([-0.52, 2.03, 0.7]), outputs=3)
    yield row("CastLike", values(7), values(2))
    x = values(5, 7)
    yield row("Reciprocal", row("Sqrt", x + 2), name="of Sqrt")
    yield row("Log", row("Add", x, known(1.5)), name="of a sum")
    yield row("Sqrt", row("Abs", spread(values(6, 6))), name="of Abs")


def binary():
    x, y = values(3, 1, 5), values(4, 1)
    for op in pointwise.BINARY:
        far = np.sign(y) * (1 + np.abs(y)) if op == "Div" else y
        yield row(op, x, far, name="both ways")
        yield row(op, values(7), values(), name="scalar")
    for op in pointwise.COMPARE:
        yield row(op, x, y)
    for op in ("Sum", "Mean", "Max", "Min"):
        yield row(op, x, y, values(5), name="of three")
    yield row("Mod", values(4, 5, high=9), values(5, low=1, high=3), fmod=1)
    base = values(3, 5, low=0.2, high=2)
    yield row("Pow", base, values(3, 1))
    for exponent in (0, 1, 2, 3, -1, -2, 0.5, -0.5):
        yield row("Pow", base, known(exponent), name=str(exponent))
    yield row("Pow", spread(values(6)), ints(3), name="integers")
    yield row("Pow", spread(values(6)), known(2.0), name="of negative ones")
    condition = random.rand(4, 5) < 0.5
    yield row("Where", condition, x, y)
    yield row("SwiGLU", values(3, 7), values(3, 7), alpha=1.2)
    yield row("PRelu", spread(values(2, 3, 5)), values(3, 1))
    yield row("Clip", spread(values(23)), known(-0.53125), known(0.53125))
    yield row("Clip", spread(values(23)), None, values(low=0.3, high=0.5), name="upper")
    yield row("Clip", spread(values(4, 5)), values(low=-0.5, high=-0.3), name="lower")


# --- reductions and products --------------------------------------------------


def reductions():
    x = spread(values(2, 3, 1, 5, low=0.5, high=2))
    for op in ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum",
               "SumSquare", "LogSumExp"):  # fmt: skip
        yield row(f"Reduce{op}", x, ints(-1, 1), keepdims=0)
        yield row(f"Reduce{op}", x, name="of all")
    zeros = x * (x > 1)
    yield row("ReduceProd", zeros, ints(1, 3), name="of zeros", keepdims=0)
    yield row("ReduceSum", x, ints(), name="of nothing", noop_with_empty_axes=1)
    for exclusive in (0, 1):
        for reverse in (0, 1):
            flags = dict(exclusive=exclusive, reverse=reverse)
            yield row("CumSum", values(3, 5), ints(1), name=str(flags), **flags)
    for exclusive in (0, 1):
        for reverse in (0, 1):
            flags = dict(exclusive=exclusive, reverse=reverse)
            yield row("CumProd", values(3, 1, 5), ints(-1), name=str(flags), **flags)
    x = values(2, 4) * np.array([1, 0, 1, 0])
    yield row("CumProd", x, ints(1), name="of zeros")
    yield row("TopK", spread(values(3, 7)), ints(3), axis=1, outputs=2)
    yield row("TopK", spread(values(5, 2)), ints(4), name="least", axis=0, largest=0,
              outputs=2)  # fmt: skip
    yield row("Einsum", values(2, 3), values(3, 4), values(4), equation="ij,jk,k->ik")
    yield row("Einsum", values(3, 3), name="diagonal", equation="ii->i")
    yield row("Einsum", values(2, 3, 4), name="sum", equation="ijk->kj")
    yield row("Det", values(2, 3, 3))
    yield row("DFT", values(2, 5, 2), None, ints(-2))
    yield row("DFT", values(2, 6, 1), ints(5), ints(1), name="onesided", onesided=1)
    yield row("DFT", values(2, 3, 2), None, ints(1), name="inverse", inverse=1)
    frames = Constant(np.array(3)), values(5), Constant(np.array(5))
    yield row("STFT", values(1, 12, 1), *frames)


def products():
    yield row("MatMul", values(1, 1), values(1, 1))
    yield row("MatMul", values(5), values(5), name="of vectors")
    yield row("MatMul", values(4, 1, 5, 7), values(3, 7, 2), name="broadcast")
    yield row("MatMul", values(1, 5, 7), values(2, 7, 3), name="of one")
    yield row("MatMul", values(2, 1, 7), values(7), name="by a vector")
    yield row("MatMul", values(0, 3), values(3, 2), name="of nothing")
    yield row("MatMul", values(2, 0), values(0, 3), name="over nothing")
    for flags in (dict(transA=1), dict(transB=1), dict(transA=1, transB=1)):
        a = values(7, 5) if "transA" in flags else values(5, 7)
        b = values(3, 7) if "transB" in flags else values(7, 3)
        yield row("Gemm", a, b, values(5, 1), name=str(flags), alpha=0.7, **flags)


# --- norms, losses, cells -----------------------------------------------------


def norms():
    x = values(3, 4, 1, 5)
    for axis in (1, -1, 0, 2):
        extents = x.shape[axis:]
        yield row("LayerNormalization", x, values(*extents), values(*extents),
                  name=str(axis), axis=axis)  # fmt: skip
        yield row("RMSNormalization", x, values(*extents), name=str(axis), axis=axis)
        for op in ("Softmax", "LogSoftmax"):
            yield row(op, x, name=str(axis), axis=axis)
    yield row("LayerNormalization", x, values(5), name="without bias")
    four = [values(4) for _ in range(3)]
    variance = values(4, low=0.5, high=2)
    yield row("InstanceNormalization", x, *four[:2])
    yield row("BatchNormalization", x, *four, variance)
    yield row("BatchNormalization", values(5, 4), *four, variance, name="2-D")
    yield row("BatchNormalization", x, *four, variance, name="of the batch",
              training_mode=1)  # fmt: skip
    for groups in (1, 2, 4):
        yield row("GroupNormalization", x, *four[:2], name=str(groups),
                  num_groups=groups)  # fmt: skip
    yield row("LpNormalization", spread(x), p=1, axis=1)
    yield row("LpNormalization", x, name="2", p=2)
    yield row("LRN", x, size=3, alpha=0.5)
    yield row("MeanVarianceNormalization", x)


def panels():
    """Rows and the columns of 64 panels in one kernel, short rows and long ones. The
    values that other families draw stay what they are."""
    own = np.random.RandomState(18)
    for width in (23, 1300):
        x, scale, shift = (own.uniform(-1, 1, (*rows, width)) for rows in ((64, 12), (), ()))
        yield row("LayerNormalization", x, scale, shift, name=str(width), axis=-1)


def losses():
    scores, labels = values(6, 5), np.array([0, 4, 2, 2, 1, 3])
    weight = values(5, low=0.2, high=1)
    for reduction in ("mean", "sum", "none"):
        options = dict(name=reduction, reduction=reduction)
        for op in ("SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"):
            yield row(op, scores, labels, **options)
    yield row("SoftmaxCrossEntropyLoss", scores, labels, weight, name="weighted",
              ignore_index=2)  # fmt: skip
    image = values(2, 5, 3)
    yield row("SoftmaxCrossEntropyLoss", image, np.array([[0, 1, 4], [3, 3, 2]]),
              name="of images", ignore_index=3)  # fmt: skip


def cells():
    x = values(4, 2, 3)
    for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        for direction in ("forward", "reverse", "bidirectional"):
            count = 2 if direction == "bidirectional" else 1
            w, r = values(count, 5 * gates, 3), values(count, 5 * gates, 5)
            bias = values(count, 10 * gates)
            yield row(op, x, w, r, bias, None, values(count, 2, 5), name=direction,
                      hidden_size=5, direction=direction)  # fmt: skip
        w, r = values(1, 5 * gates, 3), values(1, 5 * gates, 5)
        yield row(op, x, w, r, None, np.array([4, 2], np.int32), name="lengths",
                  hidden_size=5)  # fmt: skip
    yield row("GRU", x, values(1, 15, 3), values(1, 15, 5), values(1, 30),
              name="before", hidden_size=5, linear_before_reset=1)  # fmt: skip
    state = None, values(1, 2, 5), values(1, 2, 5)
    yield row("LSTM", x, values(1, 20, 3), values(1, 20, 5), None, *state,
              values(1, 15), name="peepholes", hidden_size=5)  # fmt: skip


def attention():
    q, k, v = values(2, 4, 5, 8), values(2, 4, 7, 8), values(2, 4, 7, 6)
    mask = random.rand(5, 7) < 0.6
    mask[:, 0] = True
    yield row("Attention", q, k, v)
    yield row("Attention", q, k, v, values(5, 7), name="bias")
    yield row("Attention", q, k, v, mask, name="mask")
    yield row("Attention", q, k, v, name="causal", is_causal=1, scale=0.3)
    yield row("Attention", q, k, v, name="softcap", softcap=0.5)
    yield row("Attention", q, k[:, :2], v[:, :2], name="groups")
    mask = mask.copy()
    mask[1] = False
    yield row("Attention", q, k, v, mask, name="an empty row")
    yield row("Attention", values(2, 5, 16), values(2, 5, 16), values(2, 5, 16),
              name="3-D", q_num_heads=4, kv_num_heads=4)  # fmt: skip
    past = values(2, 4, 3, 8), values(2, 4, 3, 6)
    yield row("Attention", q, k, v, None, *past, name="past", outputs=3)
    # Of the scores' type, which is another one than the operands'.
    factor = row("CastLike", known(0.7), "s")
    scaled = Body(["s"], [row("Tanh", row("Mul", "s", factor))])
    yield row("FlexAttention", q, k, v, domain="ai.onnx.preview", score_mod=scaled)
    caches = values(2, 5, 4), values(2, 5, 4)
    yield row("RotaryEmbedding", values(2, 3, 5, 8), *caches)
    yield row("RotaryEmbedding", values(2, 5, 24), *caches, name="of some",
              interleaved=1, num_heads=3, rotary_embedding_dim=8)  # fmt: skip
    q, k, v, decay = values(2, 3, 8), values(2, 3, 4), values(2, 3, 6), values(2, 3, 4)
    rate, heads = values(2, 3, 2), dict(q_num_heads=4, kv_num_heads=2)
    for rule, extras in (
        ("linear", ()),
        ("gated", (None, decay)),
        ("delta", (None, None, rate)),
        ("gated_delta", (values(2, 2, 2, 3), decay, rate)),
    ):
        yield row("LinearAttention", q, k, v, *extras, name=rule, update_rule=rule,
                  outputs=2, **heads)  # fmt: skip


# --- movement and indexing ----------------------------------------------------


def moves():
    x = values(3, 1, 5, 2)
    yield row("Transpose", x, perm=[3, 1, 0, 2])
    yield row("Reshape", x, ints(5, -1))
    yield row("Flatten", x, axis=2)
    yield row("Squeeze", x, ints(1))
    yield row("Unsqueeze", x, ints(0, -1))
    yield row("Split", values(5, 7), axis=1, num_outputs=3, outputs=3)
    yield row("Split", values(5, 2), ints(1, 0, 4), name="of lengths", outputs=3)
    yield row("Expand", x, ints(2, 1, 4, 1, 1))
    yield row("Tile", x, ints(2, 3, 1, 2))
    yield row("Concat", x, x + 1, values(3, 1, 5, 1), axis=-1)
    yield row("Slice", values(6, 7), ints(1, -1), ints(5, -8), ints(0, 1), ints(2, -3))
    yield row("Slice", values(9), ints(-2), ints(0), ints(0), ints(-4), name="back")
    yield row("Slice", values(4, 5), ints(2), ints(2), ints(1), name="of nothing")
    yield row("Pad", values(4, 3, 5), ints(1, 0, 2, 3, 0, 1), values())
    yield row("Pad", values(4, 3, 5), ints(-1, 0, 2, 1, 0, -2), values(), name="crop")
    for mode in ("reflect", "edge", "wrap"):
        for pads in (ints(1, 0, 2, 3, 0, 1), ints(-1, 0, 2, 1, 0, -2)):
            name = f"{mode} {pads.value}"
            yield row("Pad", values(4, 3, 5), pads, name=name, mode=mode)
    yield row("DepthToSpace", values(1, 8, 2, 3), blocksize=2, mode="CRD")
    yield row("SpaceToDepth", values(1, 2, 4, 6), blocksize=2)
    yield row("Trilu", values(2, 4, 5), upper=1)
    yield row("Trilu", values(5, 4), ints(-1), name="lower", upper=0)
    yield row("ReverseSequence", values(4, 3, 2), ints(1, 4, 2))
    yield row("CenterCropPad", values(4, 5), ints(6, 3))
    yield row("Col2Im", values(2, 8, 6), ints(3, 4), ints(2, 2))
    image = values(1, 2, 5, 4)
    for name, scales in (("up", (1, 1, 2, 3)), ("down", (1, 1, 0.6, 0.5))):
        scales = Constant(np.array(scales, np.float32))
        for mode in ("nearest", "linear", "cubic"):
            yield row("Resize", image, None, scales, name=f"{mode} {name}", mode=mode)
        yield row("Resize", image, None, scales, name=f"corners {name}", mode="linear",
                  coordinate_transformation_mode="align_corners")  # fmt: skip
    scales = Constant(np.array((1, 1, 0.6, 0.5), np.float32))
    yield row("Resize", image, None, scales, name="antialias", mode="linear",
              antialias=1)  # fmt: skip


def indices():
    x = values(5, 4, 3)
    repeated = np.array([[4, 0, -1], [2, 2, -5]])
    yield row("Gather", x, repeated, axis=0)
    yield row("Gather", x, np.array([[-1, 0], [2, 2]]), name="of the last", axis=-1)
    yield row("Gather", x, np.array(2), name="of one", axis=1)
    places = np.array([[0, 0], [2, 1], [-1, 3]])
    yield row("GatherElements", values(3, 5), places, axis=1)
    yield row("GatherElements", values(3, 5), np.array([[0], [2], [-1]]),
              name="of each row", axis=1)  # fmt: skip
    yield row("GatherND", x, np.array([[0, 1], [4, -1], [4, 3]]))
    tuples = np.array([[[0], [-1]], [[2], [2]], [[1], [0]]])
    yield row("GatherND", values(3, 4, 5), tuples, name="batch", batch_dims=1)
    yield row("GatherND", values(2, 2, 4, 5), np.array([[[3], [0]], [[1], [1]]]),
              name="two batches", batch_dims=2)  # fmt: skip
    distinct, repeated = np.array([[1, 0, 3], [2, 4, 0]]), np.array([[1, 0, 3]] * 2)
    yield row("ScatterElements", values(5, 4), distinct, values(2, 3))
    yield row("ScatterElements", values(5, 4), repeated, values(2, 3), reduction="add")
    places = np.array([[1], [3], [1]])
    yield row("ScatterND", values(5, 2), places[:2], values(2, 2))
    yield row("ScatterND", values(5, 2), places, values(3, 2), reduction="add")
    for kind in ("mul", "max", "min"):
        x, updates = np.split(spread(values(26)), [20])
        yield row("ScatterElements", x.reshape(5, 4), repeated, updates.reshape(2, 3),
                  name=kind, reduction=kind)  # fmt: skip
        yield row("ScatterND", x.reshape(10, 2), places, updates.reshape(3, 2),
                  name=kind, reduction=kind)  # fmt: skip
    yield row("OneHot", np.array([1, 3]), ints(5), values(2))
    yield row("Compress", values(3, 4), Constant(np.array([True, False, True])), axis=0)
    yield row("Compress", values(2, 2), Constant(np.array([False, True, True])),
              name="flat")  # fmt: skip
    x = np.array([[0.7, -0.4, 0.1], [0.9, -0.8, 0.5]])
    mask = row("Less", row("Reshape", x, np.array([6])), known(0.3))
    yield row("Compress", x, mask, name="chosen by data")
    yield row("Unique", x, name="distinct")
    yield row("Gather", values(4, 3), np.zeros((0,), np.int64), name="of nothing")
    for mode in ("linear", "circular"):
        yield row("TensorScatter", values(2, 5, 3), values(2, 2, 3), np.array([1, 3]),
                  name=mode, mode=mode)  # fmt: skip


# --- all ----------------------------------------------------------------------

FAMILIES = (unary, binary, reductions, products, norms, losses, cells, attention,
            moves, indices, panels)  # fmt: skip


def models():
    for family in FAMILIES:
        yield family.__name__, list(family())
