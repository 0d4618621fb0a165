"""The rows of operators that onnxruntime's quantizer writes, and the optimiser behind it.

They are of its domain com.microsoft. The reference is ONNX Runtime, whose results may be
a unit away where it rounds a product of other factors, or a formula where it quantizes
more, or where its CPU has no kernel.
"""

import numpy as np

from numerics.fused import FusedModel, floats, fused, random, weights
from numerics.rows import Constant


def codes(*shape, low=-60, high=60, dtype=np.int8):
    """So small that products of onnxruntime's AVX2 kernels, in pairs of i16, hold."""
    return random.randint(low, high, shape).astype(dtype)


# --- Float operators of quantized operands -----------------------------------


def scalars(scale, zero, dtype):
    return Constant(np.float32(scale)), Constant(np.array(zero, dtype))


# Of two operands and of results, by type.
PARAMETERS = {
    np.uint8: ((0.02, 100), (0.05, 140), (0.03, 128)),
    np.int8: ((0.02, -7), (0.05, 12), (0.03, 3)),
}


def quantized_forms():
    for dtype, parameters in PARAMETERS.items():
        limits = np.iinfo(dtype)
        a_by, b_by, c_by = (scalars(*p, dtype) for p in parameters)

        def make(*shape):
            return codes(*shape, low=limits.min, high=limits.max + 1, dtype=dtype)

        a, b, image = make(2, 7, 33), make(7, 1), make(2, 3, 8, 9)
        options = {"name": np.dtype(dtype).name, "ulp": 1}
        yield fused("QLinearAdd", a, *a_by, b, *b_by, *c_by, **options)
        yield fused("QLinearMul", a, *a_by, b, *b_by, *c_by, **options)
        yield fused("QLinearSigmoid", a, *a_by, *scalars(1 / 256, 0, dtype), **options)
        yield fused("QLinearLeakyRelu", a, *a_by, *c_by, alpha=0.1, **options)
        yield fused(
            "QLinearAveragePool", image, *a_by, *b_by, kernel_shape=[3, 2],
            strides=[2, 1], pads=[1, 0, 1, 1], **options,
        )  # fmt: skip
        yield fused("QLinearGlobalAveragePool", image, *a_by, *b_by, **options)
        shift = 0 if dtype is np.uint8 else -128
        probability = scalars(1 / 256, shift, dtype)
        yield fused("QLinearSoftmax", a, *a_by, *probability, axis=-1, opset=13, **options)
        yield fused(
            "QLinearConcat", *c_by, make(2, 3, 5), *a_by, make(2, 4, 5), *b_by, axis=1,
            **options,
        )  # fmt: skip
        condition = random.randint(0, 2, (7, 33)).astype(bool)
        yield fused("QLinearWhere", condition, a, *a_by, b, *b_by, *c_by, **options)
    a, by = codes(2, 3, 4, low=0, high=255, dtype=np.uint8), Constant(np.float32(0.02))
    yield fused(
        "QLinearSoftmax", a, by, None,
        *scalars(1 / 256, 0, np.uint8), name="of the rest", axis=1, opset=12, ulp=1,
    )  # fmt: skip


# --- Products ----------------------------------------------------------------


def softmax_without_axis():
    x = codes(3, 4, 5, low=0, high=255, dtype=np.uint8)
    given = (x, *scalars(0.02, 100, np.uint8), *scalars(1 / 256, 0, np.uint8))
    for opset in (11, 13):
        yield fused("QLinearSoftmax", *given, name=f"no axis {opset}", opset=opset, ulp=1)


def quantized_gemm():
    op, a = "QGemm", codes(7, 33, low=0, high=127, dtype=np.uint8)
    a_by, y_by = scalars(0.02, 50, np.uint8), scalars(0.25, 128, np.uint8)
    b, b_by = Constant(codes(33, 19)), scalars(0.01, 3, np.int8)
    c = Constant(random.randint(-3000, 3000, 19).astype(np.int32))
    yield fused(op, a, *a_by, b, *b_by, c, *y_by, ulp=1)
    yield fused(op, a, *a_by, b, *b_by, c, name="to floats", alpha=0.5)
    yield fused(op, a, *a_by, b, *b_by, name="no C")
    columns = Constant(np.abs(floats(19)) / 50), Constant(codes(19, low=-5, high=5))
    b = Constant(codes(19, 33))
    yield fused(op, a, *a_by, b, *columns, c, *y_by, name="transB", transB=1, ulp=1)
    a = codes(33, 7, low=0, high=127, dtype=np.uint8)
    b = Constant(codes(33, 19))
    yield fused(op, a, *a_by, b, *b_by, c, *y_by, name="transA", transA=1, ulp=1)


def pack(values, bits):
    """Along the last axis, the first value in the lowest bits of a byte."""
    count = 8 // bits
    values = np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, -values.shape[-1] % count)])
    parts = values.reshape(*values.shape[:-1], -1, count).astype(np.uint8)
    return (parts << (bits * np.arange(count, dtype=np.uint8))).sum(-1, dtype=np.uint8)


def bits_product(bits, size, columns, zero_points, name="", bias=None):
    """MatMulNBits and what it must give. Without zero points: the middle."""
    rows, blocks = 19, -(-columns // size)
    held = random.randint(0, 1 << bits, (rows, blocks, size))
    scales = np.abs(floats(rows, blocks)) / 10
    x, given = floats(2, 7, columns), None
    points = np.full((rows, blocks), 1 << (bits - 1))
    if zero_points == "packed":
        points = random.randint(0, 1 << bits, (rows, blocks))
        given = Constant(pack(points, bits).reshape(-1))
    elif zero_points == "floats":
        points = random.uniform(0, 1 << bits, (rows, blocks)).astype(np.float32)
        given = Constant(points)
    whole = (held - points[..., None]) * scales[..., None].astype(np.float64)
    filters = whole.reshape(rows, -1)[:, :columns]
    expected = x @ filters.T + (0 if bias is None else bias.value)
    return fused(
        "MatMulNBits", x, Constant(pack(held, bits)), Constant(scales.reshape(-1)), given,
        None, bias, name=f"{bits} bits {name}", expected=expected.astype(np.float32),
        bits=bits, block_size=size, K=columns, N=rows,
    )  # fmt: skip


def bits_products():
    yield bits_product(4, 32, 64, "packed")
    yield bits_product(4, 16, 48, "packed", "odd blocks")
    yield bits_product(4, 16, 40, None, "cut")
    yield bits_product(4, 32, 64, "floats", "float zero points")
    yield bits_product(4, 32, 64, None, "bias", weights(19))
    yield bits_product(8, 16, 48, "packed")
    yield bits_product(2, 16, 48, "packed")


def integer_products():
    x, w, bias = floats(2, 7, 33), codes(33, 19), weights(19)
    scale, scales = Constant(np.float32(0.02)), Constant(np.abs(floats(19)) / 50)
    shift, shifts = Constant(np.int8(3)), Constant(codes(19, low=-5, high=5))
    op, kept = "DynamicQuantizeMatMul", Constant(w)
    yield fused(op, x, kept, scale)
    yield fused(op, x, kept, scale, shift, name="shifted")
    yield fused(op, x, kept, scales, shifts, bias, name="by column")
    yield fused(op, x, Constant(codes(33, 19, high=255, low=0, dtype=np.uint8)), scale,
                Constant(np.uint8(128)), bias, name="unsigned")  # fmt: skip
    op, a = "MatMulIntegerToFloat", codes(2, 7, 33, low=0, high=255, dtype=np.uint8)
    step, middle = Constant(np.float32(0.01)), Constant(np.uint8(120))
    yield fused(op, a, kept, step, scale)
    yield fused(op, a, kept, step, scale, middle, shift, bias, name="shifted")
    yield fused(op, a, kept, step, scales, middle, shifts, bias, name="by column")
    yield fused(op, a, kept, step, scales, None, None, bias, name="bias alone")
    points = Constant(np.array([100, 30000, 65000], np.uint16))
    steps = Constant(np.array([0.01, 0.02, 0.005], np.float32))
    yield fused("QuantizeLinear", floats(2, 3, 5) * 90, steps, points, name="16 bits", axis=1)
    wide = codes(2, 3, 5, low=0, high=65535, dtype=np.uint16)
    yield fused("DequantizeLinear", wide, steps, points, name="16 bits", axis=1)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def run_lstm(x, w, r, bias, is_reverse):
    """[steps, batch, hidden] of weights [width, 4 * hidden], in f64."""
    h = c = np.zeros((x.shape[1], r.shape[0]))
    results = []
    for step in x[::-1] if is_reverse else x:
        i, o, f, g = np.split(step @ w + h @ r + bias, 4, axis=-1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        results.append(h)
    return np.stack(results[::-1] if is_reverse else results)


def quantized_lstm():
    """ONNX Runtime quantizes what steps multiply, too; here only the weights are."""
    steps, batch, width, hidden = 6, 3, 10, 8
    x = floats(steps, batch, width)
    for way, count in (("forward", 1), ("reverse", 1), ("bidirectional", 2)):
        for columns in ((), (4 * hidden,)):
            w, r = codes(count, width, 4 * hidden), codes(count, hidden, 4 * hidden)
            scales = [np.abs(floats(count, *columns)) / 50 for _ in range(2)]
            shifts = [codes(count, *columns, low=-9, high=9) for _ in range(2)]
            bias = floats(count, 8 * hidden)
            expected = []
            for d in range(count):
                parts = [
                    (held[d].astype(np.float64) - shift[d]) * scale[d]
                    for held, scale, shift in zip((w, r), scales, shifts)
                ]
                total = bias[d, : 4 * hidden] + bias[d, 4 * hidden :].astype(np.float64)
                expected.append(run_lstm(x, *parts, total, way == "reverse" or d == 1))
            yield fused(
                "DynamicQuantizeLSTM", x, Constant(w), Constant(r), Constant(bias), None,
                None, None, None, Constant(scales[0]), Constant(shifts[0]),
                Constant(scales[1]), Constant(shifts[1]), hidden_size=hidden, direction=way,
                name=f"{way} {'by column' if columns else ''}", expected=np.stack(expected, 1),
            )  # fmt: skip


# --- Attention and embeddings ------------------------------------------------


def quantized_attention():
    op, heads = "QAttention", {"num_heads": 4}
    x = codes(2, 7, 24, low=0, high=127, dtype=np.uint8)
    w, bias = Constant(codes(24, 72)), weights(72)
    step, scale = Constant(np.float32(0.02)), Constant(np.float32(0.015))
    zeros = Constant(np.uint8(60)), Constant(np.int8(4))
    columns = Constant(np.abs(floats(72)) / 50), Constant(codes(72, low=-5, high=5))
    mask = np.array([7, 4], np.int32)
    yield fused(op, x, w, bias, step, scale, None, *zeros, **heads)
    yield fused(op, x, w, bias, step, scale, mask, *zeros, name="lengths", **heads)
    shown = (np.arange(7) < mask[:, None]).astype(np.int32)
    yield fused(op, x, w, bias, step, scale, shown, *zeros, name="mask", **heads)
    yield fused(
        op, x, w, bias, step, columns[0], None, zeros[0], columns[1], name="by column",
        unidirectional=1, **heads,
    )  # fmt: skip
    past = floats(2, 2, 4, 3, 6)
    for shown, name in ((0, "past"), (1, "present")):
        yield fused(
            op, x, w, bias, step, scale, None, *zeros, past, name=name, unidirectional=1,
            outputs=2, shown=shown, **heads,
        )  # fmt: skip


def quantized_embeddings():
    words, kinds = random.randint(0, 40, (2, 7)), random.randint(0, 2, (2, 7))
    ids = words.astype(np.int32), kinds.astype(np.int32)
    shapes = ((40, 24), (16, 24), (2, 24), (24,), (24,))
    tables = [codes(*s, low=0, high=255, dtype=np.uint8) for s in shapes]
    scales = [np.float32(s) for s in (0.01, 0.02, 0.005, 0.004, 0.03)]
    points = [np.uint8(p) for p in (120, 128, 90, 10, 130)]
    mask = (np.arange(7) < np.array([[7], [4]])).astype(np.int32)
    op = "QEmbedLayerNormalization"
    words, places, segments, gamma, beta = map(Constant, tables)
    rest = (*map(Constant, scales), *map(Constant, points))
    given = (*ids, words, places, segments, gamma, beta)
    for shown, name in ((0, ""), (1, "mask index")):
        yield fused(op, *given, mask, *rest, name=name, outputs=2, shown=shown)
    kept = [*map(Constant, scales)], [*map(Constant, points)]
    for values in kept:
        values[2] = None
    yield fused(
        op, ids[0], None, words, places, None, gamma, beta, None, *kept[0], *kept[1],
        name="no segments", outputs=2,
    )  # fmt: skip


FAMILIES = (
    quantized_forms,
    softmax_without_axis,
    quantized_gemm,
    bits_products,
    integer_products,
    quantized_lstm,
    quantized_attention,
    quantized_embeddings,
)


def models():
    """Title, rows and kind of each model."""
    for family in FAMILIES:
        yield family.__name__, list(family()), FusedModel
