"""The other families on shapes that are no multiple of a vector or tile.

The reference is ONNX Runtime.
"""

import ml_dtypes
import numpy as np

from numerics.rows import Constant, ints, row

random = np.random.RandomState(11)


def floats(*shape):
    return random.uniform(-1, 1, shape).astype(np.float32)


def reduction():
    x = floats(3, 7, 37)
    for op in ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSumExp"):
        for axes in ((2,), (0,), (0, 2)):
            # Products of 111 numbers below 1 would be denormal.
            operand = 1 + x / 8 if op == "Prod" else x
            yield row(f"Reduce{op}", operand, ints(*axes), name=str(axes))
    yield row("ReduceMean", x, name="all")
    # More of shared memory than a block has, if each had its own.
    wide, functions = floats(128, 256), ("Exp", "Sin", "Cos", "Tanh", "Abs", "Sigmoid", "Softplus")
    sums = [row("ReduceSum", row(f, wide), ints(0)) for f in functions]
    most = [row("ReduceMax", row(f, wide), ints(0)) for f in functions]
    yield row("Concat", *sums, *most, name="many reductions", axis=0)
    yield row("ReduceMax", x, ints(1), name="kept", keepdims=0)
    for axis in (0, 1, 2):
        yield row("ArgMax", x, name=str(axis), axis=axis)
        yield row("Softmax", x, name=str(axis), axis=axis)
    yield row("LogSoftmax", x, axis=-1)
    yield row("CumSum", x, ints(1))


def contraction():
    for m, k, n in ((1, 5, 1), (7, 33, 19), (64, 128, 96), (1, 300, 257)):
        a, weight = floats(m, k), Constant(floats(k, n))
        yield row("MatMul", a, weight, name=f"{m}x{k}x{n}")
        yield row("MatMul", a, floats(k, n), name=f"{m}x{k}x{n} computed")
    yield row("MatMul", floats(2, 3, 9, 17), floats(3, 17, 11), name="batched")
    shared = floats(2, 1, 17, 11)
    for name, right in (("", shared), (" packed", Constant(shared))):
        yield row("MatMul", floats(2, 3, 9, 17), right, name="rows of batches" + name)
        yield row("MatMul", floats(2, 3, 1, 17), right, name="rows alone" + name)
    for shape, perm in (((3, 17, 40), [1, 0, 2]), ((2, 5, 9, 24), [2, 1, 0, 3])):
        moved = row("Transpose", floats(*shape), perm=perm)
        yield row("MatMul", moved, Constant(floats(shape[-1], 48)), name=f"moved {perm}")
    yield row("MatMul", floats(17), floats(17, 3), name="vector")
    bias, weight = Constant(floats(19)), Constant(floats(19, 33))
    yield row("Gemm", floats(7, 33), weight, bias, transB=1, alpha=0.5, beta=2.0)
    yield row("Gemm", floats(33, 7), floats(33, 5), name="transA", transA=1)
    yield row("Einsum", floats(2, 5, 7), floats(2, 7, 3), equation="bij,bjk->bik")


def convolution():
    x = floats(2, 6, 15, 17)

    def conv(name, weight, **attributes):
        bias = Constant(floats(weight.shape[0]))
        return row("Conv", x, Constant(weight), bias, name=name, **attributes)

    yield conv("1x1", floats(10, 6, 1, 1))
    yield conv("3x3", floats(10, 6, 3, 3), pads=[1, 1, 1, 1])
    yield conv("stride", floats(10, 6, 3, 3), strides=[2, 2])
    yield conv("dilated", floats(4, 6, 3, 3), dilations=[2, 2])
    yield conv("same", floats(4, 6, 4, 4), auto_pad="SAME_UPPER", strides=[2, 2])
    yield conv("asymmetric", floats(4, 6, 3, 2), pads=[0, 1, 2, 0])
    yield conv("depthwise", floats(6, 1, 5, 5), group=6, pads=[2, 2, 2, 2])
    yield conv("grouped", floats(9, 2, 3, 3), group=3)
    yield conv("narrow groups", floats(12, 2, 3, 3), group=3)
    yield conv("multiplied", floats(24, 1, 3, 3), group=6)
    empty, pads = floats(1, 6, 0, 5), [2, 1, 2, 1]
    yield row("Conv", empty, Constant(floats(4, 6, 3, 3)), floats(4), name="no rows", pads=pads)
    yield row("Conv", empty, Constant(floats(6, 1, 3, 3)), name="no rows, depthwise", group=6,
              pads=pads)  # fmt: skip
    line = floats(1, 4, 33)
    yield row("Conv", line, Constant(floats(5, 4, 7)), name="1-D", strides=[3])
    yield row("ConvTranspose", x, Constant(floats(6, 5, 3, 3)), strides=[2, 2])
    yield row("ConvTranspose", x, Constant(floats(6, 5, 4, 4)), name="even", strides=[2, 2],
              pads=[1, 1, 1, 1])  # fmt: skip
    yield row("ConvTranspose", x, Constant(floats(6, 64, 3, 3)), name="whole panels",
              strides=[2, 1], pads=[1, 1, 1, 1], output_padding=[1, 0])  # fmt: skip
    yield row("ConvTranspose", x, Constant(floats(6, 3, 3, 4)), name="phases of groups",
              strides=[2, 3], group=3)  # fmt: skip
    yield row("ConvTranspose", x, Constant(floats(6, 4, 3, 4)), name="narrow groups",
              strides=[2, 3], pads=[1, 0, 2, 1], group=3)  # fmt: skip
    yield row("ConvTranspose", floats(2, 21, 9, 7), Constant(floats(21, 1, 2, 5)),
              floats(21), name="depthwise", strides=[3, 1], group=21)  # fmt: skip
    yield row("Conv", floats(2, 21, 9, 7), floats(21, 1, 3, 3), floats(21),
              name="depthwise by no weight", group=21, pads=[1, 1, 1, 1])  # fmt: skip
    yield row("ConvTranspose", x, Constant(floats(6, 5, 3, 3)), name="dilated",
              strides=[2, 2], dilations=[2, 1])  # fmt: skip
    # As large as x, and not x.
    yield row("ConvTranspose", floats(1, 6, 3, 3), Constant(floats(6, 4, 1, 1)), name="pixels",
              strides=[2, 2], pads=[1, 1, 1, 1])  # fmt: skip
    yield row("ConvTranspose", floats(1, 2, 1, 1), Constant(floats(2, 3, 2, 2)),
              name="far apart", strides=[65536, 65536])  # fmt: skip
    # Each element makes a block of its own.
    blocks = Constant(floats(6, 5, 3, 2)), Constant(floats(10))
    yield row("ConvTranspose", x, *blocks, strides=[3, 2], group=2)
    window = dict(kernel_shape=[3, 3], strides=[2, 2])
    yield row("MaxPool", x, **window, pads=[1, 1, 1, 1])
    yield row("MaxPool", x, name="ceil", **window, ceil_mode=1)
    short = floats(1, 6, 2, 9)
    yield row("MaxPool", short, name="ceil of a part", **window, ceil_mode=1)
    yield row("AveragePool", x, **window, pads=[1, 1, 1, 1])
    yield row("AveragePool", x, name="padded", **window, count_include_pad=1)
    yield row("GlobalAveragePool", x)
    yield row("GlobalMaxPool", x)


# Type: the one that the expected product is computed in, units in the last place
# of the result, which of bf16 is widened to f32.
PRODUCT_TYPES = {
    np.float16: (np.float64, 1),
    ml_dtypes.bfloat16: (np.float64, 1 << 16),
    np.float64: (np.longdouble, 8),
    np.int32: (np.int32, None),
}


def convolve(x, weight):
    """Of one image, without padding or strides."""
    windows = np.lib.stride_tricks.sliding_window_view(
        x, weight.shape[2:], axis=(2, 3)
    )
    return np.einsum("bchwij,ocij->bohw", windows, weight)


def products():
    """Element types of products. All terms are positive: nothing cancels."""
    broken, weight = abs(floats(7, 33)), abs(floats(33, 19))
    broken[2, 5], weight[:, ::2] = np.nan, -weight[:, ::2]
    product = row("MatMul", broken, Constant(weight))
    expected = np.maximum(broken @ weight, 0)
    yield row("Relu", product, name="of a product with NaN", expected=expected, ulp=64)
    for dtype, (wide, ulp) in PRODUCT_TYPES.items():
        name = np.dtype(dtype).name

        def values(*shape):
            return random.uniform(0.1, 9, shape).astype(dtype)

        a, b = values(7, 33), values(33, 19)
        expected = a.astype(wide) @ b.astype(wide)
        yield row("MatMul", a, b, name=name, expected=expected, ulp=ulp)
        yield row(
            "MatMul", a, Constant(b), name=f"{name} packed", expected=expected, ulp=ulp
        )
        if wide is np.int32:
            continue
        # Neither side lies as a product reads it.
        sides = values(9, 13, 3), values(3, 11, 13)
        expected = np.einsum("mkb,bnk->bmn", *(side.astype(wide) for side in sides))
        title, equation = f"{name} strided", "mkb,bnk->bmn"
        yield row(
            "Einsum", *sides, name=title, expected=expected, ulp=ulp, equation=equation
        )
        x = values(1, 6, 15, 17)
        for taps in (1, 3):
            w = values(10, 6, taps, taps)
            expected = convolve(x.astype(wide), w.astype(wide))
            title = f"{name} {taps}x{taps}"
            yield row("Conv", x, Constant(w), name=title, expected=expected, ulp=ulp)


def quantized():
    a = random.randint(0, 255, (7, 33)).astype(np.uint8)
    b = random.randint(-128, 127, (33, 19)).astype(np.int8)
    zero_a, zero_b = Constant(np.uint8(117)), Constant(np.int8(-3))
    wide = a.astype(np.int32) - 117
    expected = wide @ (b.astype(np.int32) + 3)
    yield row("MatMulInteger", a, b, zero_a, zero_b, expected=expected)
    expected = wide @ b.astype(np.int32)
    yield row("MatMulInteger", a, Constant(b), zero_a, name="packed", expected=expected)
    x = random.randint(0, 255, (1, 6, 15, 17)).astype(np.uint8)
    w = random.randint(-128, 127, (10, 6, 3, 3)).astype(np.int8)
    expected = convolve(x.astype(np.int32) - 117, w.astype(np.int32))
    yield row("ConvInteger", x, Constant(w), zero_a, expected=expected)
    zero, scale = Constant(np.int8(0)), Constant(np.float32(0.01))
    result = Constant(np.float32(0.5)), zero_a
    # Weights of 7 bits: without VNNI onnxruntime adds pairs of products in 16 bits.
    b, w = Constant(b // 2), Constant(w // 2)
    yield row("QLinearMatMul", a, scale, zero_a, b, scale, zero_b, *result)
    yield row("QLinearConv", x, scale, zero_a, w, scale, zero, *result)
    # Blocks of rows; an odd number of elements fills half of the last byte.
    for kind, low, high in ((ml_dtypes.int4, -8, 8), (ml_dtypes.uint4, 0, 16)):
        four, zeros = (
            Constant(random.randint(low, high, shape).astype(kind))
            for shape in ((33, 19), (3, 19))
        )
        weight = row("DequantizeLinear", four, Constant(floats(3, 19)), zeros,
                     axis=0, block_size=11)  # fmt: skip
        yield row("MatMul", floats(7, 33), weight, name=np.dtype(kind).name)


def normalization():
    x = floats(3, 6, 35)
    scale, bias = Constant(floats(35)), Constant(floats(35))
    yield row("LayerNormalization", x, scale, bias, epsilon=1e-5)
    scale, bias = Constant(floats(6)), Constant(floats(6))
    yield row("InstanceNormalization", x, scale, bias)
    mean, variance = Constant(floats(6)), Constant(np.abs(floats(6)) + 0.5)
    yield row("BatchNormalization", x, scale, bias, mean, variance)


def attention():
    """Two products and a softmax: more keys than a tile has, masked or shared."""

    def attend(name, queries, keys, values, mask=None):
        turned = row("Transpose", keys, perm=[0, 1, 3, 2])
        scores = row("Mul", row("MatMul", queries, turned), Constant(np.float32(0.25)))
        if mask is not None:
            scores = row("Add", scores, mask)
        weights = row("Softmax", scores, axis=-1)
        return row("MatMul", weights, values, name=name)

    def rows(count):
        return floats(2, 3, count, 16)

    yield attend("attention", rows(19), rows(77), rows(77))
    mask = np.where(random.rand(2, 1, 19, 77) < 0.5, 0, -1e9).astype(np.float32)
    yield attend("masked attention", rows(19), rows(77), rows(77), mask)
    shared, causal = rows(19), np.triu(np.full((19, 19), -1e9, np.float32), 1)
    yield attend("causal attention", shared, shared, shared, Constant(causal))


def movement():
    x = floats(3, 5, 7)
    yield row("Transpose", x, perm=[2, 0, 1])
    yield row("Reshape", x, ints(0, -1))
    yield row("Flatten", x, axis=2)
    yield row("Squeeze", floats(3, 1, 5), ints(1))
    yield row("Unsqueeze", x, ints(0, 4))
    yield row("Expand", floats(3, 1), ints(2, 3, 4))
    yield row("Tile", x, ints(1, 2, 3))
    yield row("Concat", x, floats(3, 2, 7), axis=1)
    yield row("Slice", x, ints(1, -1), ints(4, -8), ints(1, 2), ints(1, -2))
    value = Constant(np.array(2.5, np.float32))
    yield row("Pad", x, ints(1, 0, 2, 0, 1, 0), value)
    for mode in ("reflect", "edge"):
        yield row("Pad", x, ints(1, 0, 2, 0, 1, 0), name=mode, mode=mode)
    yield row("DepthToSpace", floats(1, 8, 2, 3), blocksize=2)
    scales = Constant(np.array([1, 1, 2, 2], np.float32))
    image = floats(1, 2, 5, 6)
    for mode in ("nearest", "linear"):
        yield row("Resize", image, None, scales, name=mode, mode=mode)
    yield row("Trilu", floats(4, 5), upper=0)


def indexing():
    x = floats(5, 7)
    index = np.array([[4, 0, -1], [2, 2, -5]], np.int64)
    yield row("Gather", x, index, axis=0)
    yield row("GatherElements", x, np.array([[1, 0, 3]], np.int64), axis=0)
    yield row("GatherND", x, np.array([[0, 1], [4, -1]], np.int64))
    positions = Constant(np.array([[1], [3]], np.int64))
    yield row("ScatterND", x, positions, floats(2, 7))
    yield row("ScatterElements", x, np.array([[1, 0, 3]], np.int64), floats(1, 3))
    values = Constant(np.array([0, 1], np.float32))
    yield row("OneHot", np.array([1, 3], np.int64), ints(5), values)
    tokens = random.randint(0, 5, (3, 37))
    pool = dict(pool_int64s=[4, 0, 1, 2, 3, 3, 0, 1, 2], ngram_counts=[0, 2, 6],
                ngram_indexes=[6, 2, 0, 4, 3], max_skip_count=3, max_gram_length=3)  # fmt: skip
    weights = [0.5, 2.0, 3.0, 0.25, 1.5]
    yield row("TfIdfVectorizer", tokens, mode="TF", min_gram_length=1, **pool)
    for mode, least in (("IDF", 1), ("TFIDF", 2)):
        yield row("TfIdfVectorizer", tokens[0].astype(np.int32), name=mode, mode=mode,
                  min_gram_length=least, weights=weights, **pool)  # fmt: skip


FAMILIES = (
    reduction,
    contraction,
    products,
    quantized,
    convolution,
    normalization,
    attention,
    movement,
    indexing,
)


def models():
    for family in FAMILIES:
        yield family.__name__, list(family())
