"""The rows of operators that onnxruntime's graph optimiser writes.

They are of its domain com.microsoft. The reference is ONNX Runtime, or a formula
where its CPU has no kernel of the operator.
"""

import math

import numpy as np

from numerics.rows import Constant, Model, row

random = np.random.RandomState(17)
erf = np.vectorize(math.erf)


def floats(*shape):
    return random.uniform(-1, 1, shape).astype(np.float32)


def weights(*shape):
    return Constant(floats(*shape))


def fused(op, *inputs, **options):
    return row(op, *inputs, domain="com.microsoft", **options)


class FusedModel(Model):
    opsets = {**Model.opsets, "com.microsoft": 1}


class BatchModel(FusedModel):
    """Its inputs' first axis is known at run time only."""

    flags = ("--dim", "batch=1..4")

    def shape_of(self, x):
        return ("batch", *x.shape[1:])


# --- Activations -------------------------------------------------------------


def activations():
    x, bias = floats(2, 7, 37) * 4, weights(37)
    yield fused("Gelu", x)
    yield fused("BiasGelu", x, bias)
    yield fused("FastGelu", x)
    yield fused("FastGelu", x, bias, name="with bias")
    yield fused("QuickGelu", x)
    yield fused("QuickGelu", x, name="silu", alpha=1.0)
    yield fused("QuickGelu", x, name="steep", alpha=2.5)


# --- Products ----------------------------------------------------------------


def products():
    a, b = floats(2, 3, 7, 33), floats(2, 3, 33, 19)
    swapped = {"A": floats(2, 3, 33, 7), "B": floats(2, 3, 19, 33)}
    yield fused("FusedMatMul", a, b, name="scaled", alpha=0.125)
    yield fused("FusedMatMul", swapped["A"], b, name="transA", transA=1)
    yield fused("FusedMatMul", a, swapped["B"], name="transB", transB=1, alpha=0.5)
    yield fused(
        "FusedMatMul", swapped["A"], swapped["B"], name="both", transA=1, transB=1
    )
    yield fused("FusedMatMul", a, weights(19, 33), name="shared", transB=1)
    yield fused("FusedMatMul", floats(33), b, name="vector", transA=1)
    # The first axis is that of the rows, or of the columns of what is swapped.
    yield fused("FusedMatMul", floats(7, 2, 3, 33), b, name="transBatchA", transBatchA=1)
    yield fused(
        "FusedMatMul", floats(33, 2, 3, 7), b, name="A by both", transA=1, transBatchA=1
    )
    yield fused("FusedMatMul", a, floats(33, 2, 3, 19), name="transBatchB", transBatchB=1)
    yield fused(
        "FusedMatMul", a, floats(19, 2, 3, 33), name="B by both", transB=1, transBatchB=1
    )
    x, filters = floats(7, 33), weights(33, 19)
    for activation in ("Relu", "Sigmoid", "Softplus", "Softsign", "Tanh"):
        yield fused(
            "FusedGemm", x, filters, weights(19), name=activation, activation=activation
        )
    yield fused(
        "FusedGemm", floats(33, 7), weights(19, 33), weights(7, 1), name="all",
        transA=1, transB=1, alpha=0.5, beta=2.0,
        activation="LeakyRelu", activation_alpha=0.2,
    )  # fmt: skip
    yield fused("FusedGemm", x, filters, name="no C", activation="Elu", activation_alpha=0.5)
    hard = {"activation_alpha": 0.3, "activation_beta": 0.4}
    yield fused("FusedGemm", x, filters, name="hard", activation="HardSigmoid", **hard)
    yield fused(
        "FusedGemm", x, filters, name="threshold", activation="ThresholdedRelu",
        activation_alpha=0.5,
    )  # fmt: skip


# --- Convolution -------------------------------------------------------------


def convolution():
    x, filters, bias = floats(2, 6, 9, 11), weights(8, 6, 3, 3), weights(8)
    pads = {"pads": [1, 1, 1, 1], "kernel_shape": [3, 3]}
    parameters = {
        "Relu": [], "Tanh": [], "Sigmoid": [], "LeakyRelu": [0.2], "Clip": [-0.5, 0.75],
        "HardSigmoid": [0.3, 0.4],
    }  # fmt: skip
    for activation, values in parameters.items():
        given = {"activation_params": values} if values else {}
        yield fused(
            "FusedConv", x, filters, bias, name=activation, activation=activation,
            **given, **pads,
        )  # fmt: skip
    z = floats(2, 8, 9, 11)
    yield fused("FusedConv", x, filters, bias, z, name="sum", activation="Relu", **pads)
    yield fused("FusedConv", x, filters, None, z, name="sum alone", **pads)
    yield fused("FusedConv", x, filters, name="no bias", activation="Relu", **pads)
    yield fused(
        "FusedConv", x, weights(6, 3, 3, 3), weights(6), name="groups", group=2,
        strides=[2, 2], dilations=[2, 1], auto_pad="VALID", activation="Relu",
    )  # fmt: skip
    yield fused(
        "FusedConv", floats(2, 5, 17), weights(4, 5, 3), name="1d", activation="Relu"
    )


# --- Normalization -----------------------------------------------------------


def normalization():
    x, scale, shift, bias = floats(2, 7, 37), weights(37), weights(37), weights(37)
    yield row("LayerNormalization", x, scale, shift, name="by onnxruntime", epsilon=1e-12)
    yield row("SimplifiedLayerNormalization", x, scale, epsilon=1e-6)
    skips = {"": floats(2, 7, 37), "one batch": floats(1, 7, 37), "no batch": floats(7, 37)}
    for name, skip in skips.items():
        yield fused("SkipLayerNormalization", x, skip, scale, shift, bias, name=name)
    skip = skips[""]
    yield fused("SkipLayerNormalization", x, skip, scale, name="no shift", epsilon=1e-3)
    yield fused("SkipLayerNormalization", x, skip, scale, None, bias, name="no beta")
    op = "SkipSimplifiedLayerNormalization"
    yield fused(op, x, skip, scale, epsilon=1e-5)
    yield fused(op, x, skip, scale, bias, name="with bias", epsilon=1e-5)
    yield fused(op, x, skip, scale, bias, name="sum", outputs=4, shown=3)
    operands = (x, skips["no batch"], scale, shift, bias)
    yield fused("SkipLayerNormalization", *operands, name="sum", outputs=4, shown=3)


def embeddings():
    ids = random.randint(0, 50, (3, 7)).astype(np.int32)
    segments = random.randint(0, 2, (3, 7)).astype(np.int32)
    words, positions, kinds = weights(50, 24), weights(12, 24), weights(2, 24)
    scale, shift = weights(24), weights(24)
    mask = (np.arange(7) < [[7], [3], [5]]).astype(np.int32)
    op = "EmbedLayerNormalization"
    tables = (words, positions, kinds, scale, shift)
    plain = (words, positions, None, scale, shift)
    yield fused(op, ids, segments, *tables, outputs=2)
    yield fused(op, ids, None, *plain, name="no segments", outputs=2, epsilon=1e-5)
    places = random.randint(0, 12, (3, 7)).astype(np.int32)
    for name, given in (("", places), ("shared ", places[:1])):
        yield fused(op, ids, segments, *tables, None, given, name=f"{name}positions", outputs=2)
    for name, given in (("mask", (mask,)), ("no mask", ())):
        operands = (ids, segments, *tables, *given)
        yield fused(op, *operands, name=name, outputs=2, shown=1)
    yield fused(op, *operands, name="sum", outputs=3, shown=2)


# --- Attention ---------------------------------------------------------------

# Of 3 sequences of 7 keys: how many are seen, and from which on.
LENGTHS = np.array([7, 3, 5], np.int32)
STARTS = np.array([1, 0, 2], np.int32)


def packed_attention():
    x, packed, bias = floats(3, 7, 24), weights(24, 72), weights(72)
    shown = (np.arange(7) < LENGTHS[:, None]).astype(np.int32)
    squares = np.tile(np.tril(np.ones((7, 7), np.int32)), (3, 1, 1))
    squares[1, 3:, 0] = 0
    masks = {
        "no mask": None,
        "lengths": LENGTHS,
        "ranges": np.concatenate([LENGTHS, STARTS]),
        "keys": shown,
        "squares": squares,
    }
    for name, mask in masks.items():
        yield fused("Attention", x, packed, bias, mask, name=name, num_heads=4)
        yield fused(
            "Attention", x, packed, bias, mask, name=f"{name} unidirectional",
            num_heads=4, unidirectional=1,
        )  # fmt: skip
    extra = floats(3, 4, 7, 7)
    yield fused(
        "Attention", x, packed, bias, shown, None, extra, name="biased", num_heads=4,
        mask_filter_value=-100.0,
    )  # fmt: skip
    yield fused(
        "Attention", x, packed, bias, None, None, floats(1, 1, 7, 7), name="one bias",
        num_heads=4, unidirectional=1,
    )  # fmt: skip
    yield fused(
        "Attention", x, weights(24, 80), weights(80), name="wide values", num_heads=4,
        qkv_hidden_sizes=[24, 24, 32],
    )  # fmt: skip
    yield fused(
        "Attention", x, packed, bias, name="present", num_heads=4, outputs=2, shown=1
    )


    past = floats(2, 3, 4, 5, 6)
    longer = (np.arange(12) < LENGTHS[:, None] + 5).astype(np.int32)
    for name, mask in (("past", None), ("past keys", longer), ("past lengths", LENGTHS)):
        for shown in (0, 1):
            yield fused(
                "Attention", x, packed, bias, mask, past, name=f"{name} {shown}",
                num_heads=4, unidirectional=1, outputs=2, shown=shown,
            )  # fmt: skip


def multi_head_attention():
    op, heads = "MultiHeadAttention", {"num_heads": 4}
    q, k, v, bias = floats(3, 5, 24), floats(3, 7, 24), floats(3, 7, 32), weights(80)
    shown = (np.arange(7) < LENGTHS[:, None]).astype(np.int32)
    yield fused(op, q, k, v, name="", **heads)
    yield fused(op, q, k, v, bias, name="projected", **heads, scale=0.5)
    yield fused(op, q, k, v, bias, shown, name="keys", **heads)
    yield fused(op, q, k, v, bias, LENGTHS, name="lengths", **heads)
    yield fused(op, q, k, v, None, None, floats(3, 4, 5, 7), name="biased", **heads)
    yield fused(op, q, k, v, bias, shown, floats(1, 4, 5, 7), name="both", **heads)
    self_bias = weights(72)
    yield fused(op, k, k, k, self_bias, name="unidirectional", unidirectional=1, **heads)
    squares = np.tile(np.tril(np.ones((5, 7), np.int32), 2), (3, 1, 1))
    yield fused(op, q, k, v, None, squares, name="squares", **heads)
    split_k, split_v = floats(3, 4, 7, 6), floats(3, 4, 7, 6)
    yield fused(op, q, split_k, split_v, name="by head", **heads)
    past = floats(3, 4, 4, 6), floats(3, 4, 4, 6)
    for i in (1, 2):
        yield fused(op, q, k, v, bias, name=f"present {i}", outputs=3, shown=i, **heads)
    for i in (0, 1, 2):
        yield fused(
            op, k, k, k, self_bias, None, None, *past, name=f"past {i}",
            unidirectional=1, outputs=3, shown=i, **heads,
        )  # fmt: skip


def lengths(*numbers):
    return np.array(numbers, np.int32)


def group_query_attention():
    """Without a cache, with one that grows, and with one of which a part is full."""
    op, heads = "GroupQueryAttention", {"num_heads": 4, "kv_num_heads": 2}
    angles = random.uniform(-3, 3, (12, 8)).astype(np.float32)
    caches = Constant(np.cos(angles)), Constant(np.sin(angles))

    def parts(batch, rows):
        return floats(batch, rows, 64), floats(batch, rows, 32), floats(batch, rows, 32)

    def cache(batch, length):
        return floats(batch, 2, length, 16), floats(batch, 2, length, 16)

    # Queries, cache, seqlens_k (keys less one) and total_sequence_length.
    calls = {
        "prompt": (*parts(2, 5), None, None, lengths(4, 2), Constant(lengths(5))),
        "token": (*parts(2, 1), *cache(2, 6), lengths(6, 4), Constant(lengths(7))),
        "chunk": (*parts(1, 3), *cache(1, 6), lengths(8), Constant(lengths(9))),
        "rewound": (*parts(1, 3), *cache(1, 6), lengths(6), Constant(lengths(9))),
        "static": (*parts(2, 1), *cache(2, 9), lengths(6, 4), lengths(7)),
        "first": (*parts(2, 5), *cache(2, 9), lengths(4, 2), lengths(5)),
    }
    for name, call in calls.items():
        # ONNX Runtime gives no values without the keys; the results have both.
        for i in (0, 1):
            title = f"{name} {i}"
            yield fused(op, *call, name=title, outputs=3, shown=i, **heads)
        for key, value in {
            "scale": 0.3, "softcap": 0.5, "smooth_softmax": 1, "local_window_size": 3,
            "causal": 0,
        }.items():  # fmt: skip
            yield fused(op, *call, name=f"{name} {key}", outputs=3, **heads, **{key: value})
        turned = {**heads, "do_rotary": 1, "outputs": 3}
        yield fused(op, *call, *caches, name=f"{name} turned", **turned)
        yield fused(op, *call, *caches, name=f"{name} turned key", shown=1, **turned)
        yield fused(
            op, *call, *caches, name=f"{name} interleaved", rotary_interleaved=1, **turned
        )
        sink = Constant(floats(4))
        yield fused(
            op, *call, None, None, None, None, sink, name=f"{name} sink", outputs=3, **heads
        )
    token = calls["token"]
    bias = (None, None, None, floats(2, 1, 1, 7))
    yield fused(op, *token, *bias, name="biased", outputs=3, **heads)
    bias = (None, None, None, floats(1, 4, 1, 7))
    yield fused(op, *calls["static"], *bias, name="short bias", outputs=3, **heads)
    places = np.array([[6], [4]], np.int64)
    yield fused(op, *token, *caches, places, name="places", do_rotary=1, outputs=3, **heads)
    packed = (floats(2, 5, 128), None, None, None, None, lengths(4, 2), Constant(lengths(5)))
    yield fused(op, *packed, name="packed", outputs=3, **heads)


def rotary():
    op, x, flat = "RotaryEmbedding", floats(2, 4, 7, 16), floats(2, 7, 64)
    angles = random.uniform(-3, 3, (12, 8)).astype(np.float32)
    caches = Constant(np.cos(angles)), Constant(np.sin(angles))
    halves = Constant(np.cos(angles[:, :4])), Constant(np.sin(angles[:, :4]))
    places = random.randint(0, 12, (2, 7)).astype(np.int64)
    start = np.array([3], np.int64)
    yield fused(op, x, places, *caches)
    yield fused(op, x, start, *caches, name="start")
    yield fused(op, x, places, *caches, name="interleaved", interleaved=1)
    yield fused(op, flat, places, *caches, name="flat")
    yield fused(op, flat, start, *caches, name="flat heads", num_heads=4)
    part = {"num_heads": 4, "rotary_embedding_dim": 8}
    yield fused(op, flat, places, *halves, name="part", **part)


def of_batches():
    """Rows whose inputs all have the batch for their first axis."""
    x, skip, scale, bias = floats(2, 7, 24), floats(2, 7, 24), weights(24), weights(24)
    yield fused("BiasGelu", x, bias)
    yield fused("FusedMatMul", x, skip, transB=1, alpha=0.5)
    yield fused("SkipLayerNormalization", x, skip, scale, bias, bias)
    image = floats(2, 3, 8, 8)
    operands = (image, weights(4, 3, 3, 3), weights(4), floats(2, 4, 6, 6))
    yield fused("FusedConv", *operands, activation="Relu")
    ids = random.randint(0, 50, (2, 7)).astype(np.int32)
    shown = (np.arange(7) < [[7], [3]]).astype(np.int32)
    op = "EmbedLayerNormalization"
    operands = (ids, None, weights(50, 24), weights(12, 24), None, scale, bias, shown)
    yield fused(op, *operands, name="mask", outputs=2, shown=1)
    packed = (x, weights(24, 72), weights(72))
    for name, mask in (("lengths", LENGTHS[:2]), ("keys", shown)):
        yield fused("Attention", *packed, mask, name=name, num_heads=4)
    op = "MultiHeadAttention"
    yield fused(op, x, skip, skip, weights(72), shown, num_heads=4, unidirectional=1)
    places = random.randint(0, 12, (2, 7)).astype(np.int64)
    caches = weights(12, 4), weights(12, 4)
    yield fused("RotaryEmbedding", x, places, *caches, num_heads=3)
    new = floats(2, 3, 32), floats(2, 3, 16), floats(2, 3, 16)
    caches = floats(2, 2, 9, 8), floats(2, 2, 9, 8)
    yield fused(
        "GroupQueryAttention", *new, *caches, lengths(2, 1), Constant(lengths(3)),
        outputs=3, num_heads=4, kv_num_heads=2,
    )  # fmt: skip


# --- What ONNX Runtime's CPU provider lacks ----------------------------------


def gelu(x):
    return x * (1 + erf(x / np.sqrt(2))) / 2


def attend(q, k, v, scale=None):
    """Of [batch, length, heads, features], in f64."""
    q, k, v = (x.astype(np.float64).transpose(0, 2, 1, 3) for x in (q, k, v))
    scores = q @ k.swapaxes(2, 3) * (scale or 1 / np.sqrt(q.shape[3]))
    parts = np.exp(scores - scores.max(axis=3, keepdims=True))
    result = parts / parts.sum(axis=3, keepdims=True) @ v
    return result.transpose(0, 2, 1, 3).reshape(q.shape[0], q.shape[2], -1)


def formulas():
    x, bias, skip = floats(2, 7, 37), weights(37), floats(2, 7, 37)
    yield fused("BiasAdd", x, bias, skip, expected=x + bias.value + skip)
    wide, shift = floats(2, 5, 38) * 4, weights(38)
    left, right = np.split((wide + shift.value).astype(np.float64), 2, axis=-1)
    yield fused("BiasSplitGelu", wide, shift, expected=left * gelu(right))
    # Without a bias ONNX Runtime 1.31 reads address 0.
    x, packed = floats(3, 7, 24), floats(24, 72)
    parts = np.moveaxis((x.astype(np.float64) @ packed).reshape(3, 7, 3, 4, 6), 2, 0)
    yield fused(
        "Attention", x, Constant(packed), name="no bias", num_heads=4, scale=0.5,
        expected=attend(*parts, scale=0.5),
    )  # fmt: skip
    op, heads = "MultiHeadAttention", {"num_heads": 4}
    packed, added = floats(3, 7, 4, 3, 6), floats(72)
    parts = packed + added.reshape(3, 4, 6).transpose(1, 0, 2)
    for name, bias, held in (("", None, packed), (" projected", Constant(added), parts)):
        expected = attend(*np.moveaxis(held, 3, 0))
        yield fused(
            op, packed, None, None, bias, name=f"packed{name}", expected=expected, **heads
        )
    query, pairs = floats(3, 5, 24), floats(3, 7, 4, 2, 6)
    expected = attend(query.reshape(3, 5, 4, 6), *np.moveaxis(pairs, 3, 0))
    yield fused(op, query, pairs, name="packed keys", expected=expected, **heads)


FAMILIES = (
    activations,
    products,
    convolution,
    normalization,
    embeddings,
    packed_attention,
    multi_head_attention,
    group_query_attention,
    rotary,
    formulas,
)


def models():
    """Title, rows and kind of each model."""
    for family in FAMILIES:
        yield f"fused {family.__name__}", list(family()), FusedModel
    yield "fused of batches", list(of_batches()), BatchModel
