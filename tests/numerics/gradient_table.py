"""Which operators' gradients are checked, and why those of others are not."""

import collections

from numerics.rows import Body, Row
from operators import read_families

PATH = "docs/gradients.md"
INTRODUCTION = """# Gradients

The ONNX operators whose gradients `tests/numerics/gradients.py` checks in f64, with
the number of rows that hold each: shapes, attributes and operands. It compares them

- with difference quotients of fourth order, to 1e-8 of the sum of the terms'
  magnitudes;
- with what torch.autograd finds (`tests/numerics/fixtures`), to 1e-10 of the largest
  one, at kinks, ties, zeros, infinities and NaN, too;
- with those of the same rows in f32, f16 and bf16, whose norms may be off by 1e-5,
  2e-2 and 2e-2, with `--types`: of `GridSample` in bf16 by 1e-1, as its places are
  too coarse.

Among the second are composites that exporters write out: activations, norms, softmax,
attention, smoothed cross entropy, tied tables, blocks. Written by
`gradients.py --table FILE`.

What is flat has gradient 0: comparisons, roundings, `Sign`, `Hardmax`, and all that
goes through integers or booleans. Where a gradient is not known - an extent that
only the run tells, a loop without a bound known at compile time - the compiler names
all such nodes at once and ends with exit code 4.

At kinks gradients are PyTorch's: 0 at 0 for `Relu`, `Abs` and norms, the slope of
the negative side for `LeakyRelu` and `PRelu`, none at the bounds of `Clip`, shares
for equal extrema of a reduction or of two operands, all for the first of a window's.
They differ from PyTorch's

- at NaN: those of `Abs`, `ReduceL1`, `Elu`, `Celu` and `Selu` are NaN, `MaxPool` has
  none where its maximum is NaN, `Clip` passes them to computed bounds, too;
- for `Pow` at -0 and minus infinity, where signs are as C's `pow` has them;
- for `LpNormalization` of zeros, which are divided by 1 and not by an epsilon;
- for `GridSample`, whose definition is another one: cubic places outside are moved
  to the border, and not what is read; at the ends of a reflection.

| operator | quotients | PyTorch |
|---|---|---|
"""

# Of operators without rows.
REASONS = {
    "its results are integers or booleans": (
        "And", "ArgMax", "ArgMin", "BitShift", "BitwiseAnd", "BitwiseNot",
        "BitwiseOr", "BitwiseXor", "ConvInteger", "MatMulInteger",
        "NonMaxSuppression", "NonZero", "Not", "OptionalHasElement", "Or",
        "QLinearConv", "QLinearMatMul", "QuantizeLinear",
        "SequenceLength", "Shape", "Size", "Xor",
    ),
    "it counts integers": ("TfIdfVectorizer",),
    "its results are random numbers": (
        "Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform",
        "RandomUniformLike",
    ),
    "its results are the bits of what it reads": ("BitCast",),
    "its operands are known at compile time": (
        "BlackmanWindow", "Constant", "ConstantOfShape", "EyeLike", "HammingWindow",
        "HannWindow", "MelWeightMatrix", "Range",
    ),
    "written by onnxruntime, and made of what others have rows for": (
        "BiasAdd", "BiasGelu", "BiasSplitGelu", "EmbedLayerNormalization", "FastGelu",
        "FusedConv", "FusedGemm", "FusedMatMul", "GroupQueryAttention",
        "MultiHeadAttention", "QuickGelu", "MatMulNBits", "SimplifiedLayerNormalization", "SkipLayerNormalization",
        "SkipSimplifiedLayerNormalization",
    ),
    "of integers, written by onnxruntime's quantizer": (
        "DynamicQuantizeLSTM", "DynamicQuantizeMatMul", "MatMulIntegerToFloat",
        "QAttention", "QEmbedLayerNormalization", "QGemm", "QLinearAdd",
        "QLinearAveragePool", "QLinearConcat", "QLinearGlobalAveragePool",
        "QLinearLeakyRelu", "QLinearMul", "QLinearSigmoid", "QLinearSoftmax",
        "QLinearWhere",
    ),
    "imported as `ScatterElements`": ("Scatter",),
    "imported as `Resize`": ("Upsample",),
}  # fmt: skip


def find_ops(value):
    """Operators of a row, of the rows that it reads and of its bodies."""
    parts = ()
    if isinstance(value, Row):
        yield value.op
        parts = (*value.inputs, *value.attributes.values())
    elif isinstance(value, Body):
        parts = value.results
    for part in parts:
        yield from find_ops(part)


def count_rows(rows):
    """How many hold an operator, by operator."""
    return collections.Counter(op for r in rows for op in set(find_ops(r)))


def make_table(rows, cases):
    counts, known = count_rows(rows), count_rows(c.row for c in cases)
    lines = [f"| {op} | {counts[op]} | {known[op] or ''} |" for op in sorted(counts)]
    lines += ["", "Others, and why they have none:", "", "| operators | reason |", "|---|---|"]
    lines += [f"| {', '.join(ops)} | {reason} |" for reason, ops in REASONS.items()]
    return INTRODUCTION + "\n".join(lines) + "\n"


def find_gaps(rows):
    """What is wrong with each operator that lacks both or has both, by name."""
    counts = count_rows(rows)
    excused = {op for ops in REASONS.values() for op in ops}
    known = set(read_families())
    gaps = dict.fromkeys(known - set(counts) - excused, "neither a row nor a reason")
    gaps.update(dict.fromkeys(excused & set(counts), "a row and a reason"))
    gaps.update(dict.fromkeys(excused - known, "a reason but no import"))
    return gaps
