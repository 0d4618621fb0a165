"""Rows of operators, each with the PyTorch function that means the same.

Beside ordinary values they hold those where difference quotients tell nothing:
kinks, ties, zeros, infinities and NaN. fixtures/ keeps the gradients that
torch.autograd finds: make_gradient_fixtures.py writes it.
"""

import collections

import numpy as np

from numerics.rows import Constant, ints, row

# function: of a namespace of torch and torch.nn.functional, and of the row's
# float operands in order.
Case = collections.namedtuple("Case", "row function")

random = np.random.RandomState(23)


def case(function, op, *operands, **options):
    return Case(row(op, *operands, **options), function)


def values(*shape, low=-1.0, high=1.0):
    return np.asarray(random.uniform(low, high, shape))


def array(*numbers):
    return np.array(numbers, np.float64)


def known(value):
    return Constant(np.array(value, np.float64))


# --- pointwise ----------------------------------------------------------------

# Kinks of any operator are among them.
EDGES = array(
    0, -0.0, 0.5, -0.5, 1, -1, 3, -3, 0.3, 40, -40, np.inf, -np.inf, np.nan
)
# As ONNX rounds Selu's to f32.
SCALES = np.float32([1.6732632423543772, 1.0507009873554805]).astype(float)
NUMBERS = EDGES[:-1]
UNARY = (
    "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh",
    "Erf", "Exp", "Floor", "Log", "Mish", "Neg", "Reciprocal", "Relu", "Round",
    "Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Tan",
    "Tanh",
)  # fmt: skip
VARIANTS = (
    (lambda t, x: t.gelu(x), "Gelu", {}),
    (lambda t, x: t.gelu(x, approximate="tanh"), "Gelu", dict(approximate="tanh")),
    (lambda t, x: t.silu(x), "Swish", {}),
    (lambda t, x: t.leaky_relu(x, 0.25), "LeakyRelu", dict(alpha=0.25)),
    # NaN is not above the threshold, in PyTorch not below.
    (lambda t, x: t.where(x > 0.5, x, 0.0), "ThresholdedRelu", dict(alpha=0.5)),
    (lambda t, x: t.clamp(x / 2 + 0.5, 0, 1), "HardSigmoid", dict(alpha=0.5)),
    (lambda t, x: t.hardswish(x), "HardSwish", {}),
    (lambda t, x: t.where(x.abs() > 0.5, x, 0.0), "Shrink", {}),
    (lambda t, x: t.where(x.isnan(), 0.0, t.softshrink(x, 0.5)), "Shrink", dict(bias=0.5)),
)
# Whose gradient at NaN is NaN, but not in PyTorch.
OF_NUMBERS = (
    (lambda t, x: t.abs(x), "Abs", {}),
    (lambda t, x: t.elu(x, 0.5), "Elu", dict(alpha=0.5)),
    (lambda t, x: t.celu(x, 0.5), "Celu", dict(alpha=0.5)),
    (lambda t, x: t.elu(x, SCALES[0]) * SCALES[1], "Selu", {}),
)
BINARY = (
    (lambda t, x, y: x + y, "Add", {}),
    (lambda t, x, y: x - y, "Sub", {}),
    (lambda t, x, y: x * y, "Mul", {}),
    (lambda t, x, y: x / y, "Div", {}),
    (lambda t, x, y: t.maximum(x, y), "Max", {}),
    (lambda t, x, y: t.minimum(x, y), "Min", {}),
    (lambda t, x, y: t.pow(x, y), "Pow", {}),
)


def unary():
    for op in UNARY:
        yield case(lambda t, x, op=op: getattr(t, op.lower())(x), op, EDGES)
    for function, op, options in VARIANTS:
        yield case(function, op, EDGES, name=str(options), **options)
    for function, op, options in OF_NUMBERS:
        yield case(function, op, NUMBERS, **options)


def binary():
    x, y = np.array([(a, b) for a in EDGES for b in EDGES]).T
    for function, op, options in BINARY:
        yield case(function, op, x, y, **options)
    has_remainder = np.isfinite(x) & np.isfinite(y) & (y != 0)
    yield case(lambda t, x, y: t.fmod(x, y), "Mod", x[has_remainder],
               y[has_remainder], fmod=1)  # fmt: skip
    # Signs of zeros and infinities are C's, which PyTorch's are not.
    x = array(0, 0.5, 1, -1, 3, np.inf, np.nan)
    yield case(lambda t, x: t.pow(x, 0.5), "Pow", x, known(0.5), name="0.5")
    x = EDGES
    for p in (0, 1, 2, 3, -1):
        yield case(lambda t, x, p=p: t.pow(x, p), "Pow", x, known(p), name=str(p))
    yield case(lambda t, y: t.pow(0.0, y), "Pow", known(0), x, name="of 0")
    yield case(lambda t, x: t.clamp(x, -0.5, 1), "Clip", x, known(-0.5), known(1))
    for low, high in ((-0.5, 1.0), (1.0, -0.5)):
        yield case(lambda t, x, a, b: t.clamp(x, a, b), "Clip", NUMBERS, np.array(low),
                   np.array(high), name=f"to {low}, {high}")  # fmt: skip
    is_positive = x > 0
    yield case(lambda t, x, y: t.where(t.tensor(is_positive), x, y), "Where",
               is_positive, x, -x)  # fmt: skip
    yield case(lambda t, x: t.where(t.tensor(is_positive), t.sqrt(x), 0.0), "Where",
               is_positive, row("Sqrt", x), known(0), name="of a root")  # fmt: skip
    yield case(lambda t, x, a: t.prelu(x, a), "PRelu", x, array(0.3))
    biggest = lambda t, x, y, z: t.maximum(t.maximum(x, y), z)  # noqa: E731
    yield case(biggest, "Max", values(4, 3), values(3), values(4, 1), name="of three")
    yield case(lambda t, x, y, z: (x + y + z) / 3, "Mean", values(4, 3), values(3),
               values(4, 1))  # fmt: skip
    yield case(lambda t, g, x: t.silu(g) * x, "SwiGLU", values(3, 4), values(3, 4))


# --- reductions and products --------------------------------------------------

# Rows of ties, of zeros, of one zero, with infinities and NaN.
ROWS = np.array([
    [1, 2, 2, -3], [0, 0, 0, 0], [-1, 0, 2, 3], [0, 2, 0, 3], [-1, -1, -1, -1],
    [np.inf, 1, 2, np.inf], [-np.inf, 1, -np.inf, 2], [-np.inf] * 4,
    [1, np.nan, 2, 3], [0.5, 0.25, -2, 3],
])  # fmt: skip
REDUCTIONS = {
    "ReduceSum": lambda t, x: t.sum(x, 1),
    "ReduceMean": lambda t, x: t.mean(x, 1),
    "ReduceMax": lambda t, x: t.amax(x, 1),
    "ReduceMin": lambda t, x: t.amin(x, 1),
    "ReduceProd": lambda t, x: t.prod(x, 1),
    "ReduceL2": lambda t, x: t.norm(x, 2, 1),
    "ReduceSumSquare": lambda t, x: t.sum(x * x, 1),
    "ReduceLogSum": lambda t, x: t.log(t.sum(x, 1)),
    "ReduceLogSumExp": lambda t, x: t.logsumexp(x, 1),
}


def fill_zeros(t, x):
    return t.where(x == 0, 1.0, x)


def reductions():
    for op, function in REDUCTIONS.items():
        yield case(function, op, ROWS, ints(1), keepdims=0)
    x = ROWS[:5]
    yield case(lambda t, x: t.norm(x, 1, 1), "ReduceL1", x, ints(1), keepdims=0)
    yield case(lambda t, x: t.amax(x), "ReduceMax", x, name="of all", keepdims=0)
    yield case(lambda t, x: t.cumsum(x, 1), "CumSum", ROWS, ints(1))
    yield case(lambda t, x: t.cumprod(x, 1), "CumProd", ROWS[:5], ints(1))
    yield case(lambda t, x: t.topk(x, 2), "TopK", values(3, 5), ints(2), outputs=2)
    yield case(lambda t, x: t.softmax(x, 1), "Softmax", ROWS, axis=1)
    yield case(lambda t, x: t.log_softmax(x, 1), "LogSoftmax", ROWS, axis=1)
    yield case(lambda t, x: t.softmax(x, 0), "Softmax", values(3, 2), name="0", axis=0)
    for p in (1, 2):
        divide = lambda t, x, p=p: x / fill_zeros(t, t.norm(x, p, 1, True))  # noqa: E731
        yield case(divide, "LpNormalization", x, p=p, axis=1, name=str(p))
    x = values(3, 3, 3)
    x[1] = np.outer([1, 2, 3], [1, 0, 2])
    yield case(lambda t, x: t.linalg.det(x), "Det", x)


def products():
    yield case(lambda t, a, b: a @ b, "MatMul", values(2, 1, 3, 4), values(3, 4, 2))
    yield case(lambda t, a, b: a @ b, "MatMul", values(4), values(3, 4, 2), name="left")
    yield case(lambda t, a, b: a @ b, "MatMul", values(3, 4), values(4), name="right")
    yield case(lambda t, a, b, c: t.linear(a, b, c), "Gemm", values(3, 4), values(2, 4),
               values(2), transB=1)  # fmt: skip
    for equation, *shapes in (
        ("ij,jk,k->ik", (2, 3), (3, 4), (4,)), ("bhid,bhjd->bhij", (1, 2, 3, 2), (1, 2, 2, 2)),
        ("ii->i", (3, 3)), ("ijk->kj", (2, 3, 2)),
    ):  # fmt: skip
        yield case(lambda t, *x, e=equation: t.einsum(e, *x), "Einsum",
                   *(values(*shape) for shape in shapes), name=equation,
                   equation=equation)  # fmt: skip
    fft = lambda t, x: t.view_as_real(t.fft.fft(t.view_as_complex(x), dim=1))  # noqa: E731
    yield case(fft, "DFT", values(2, 3, 2), None, ints(1))
    stft = lambda t, x, w: t.view_as_real(  # noqa: E731
        t.stft(x[..., 0], 5, 3, window=w, center=False, return_complex=True)
    ).transpose(1, 2)
    yield case(stft, "STFT", values(1, 12, 1), Constant(np.array(3)), values(5),
               Constant(np.array(5)))  # fmt: skip


# --- losses -------------------------------------------------------------------

FAMILIES = (unary, binary, reductions, products)


def models():
    for family in FAMILIES:
        yield family.__name__, list(family())
