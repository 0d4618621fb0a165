"""Pointwise ops on ordinary and special values.

Floats are compared with numpy one precision up, in units in the last place:
the bounds below are what tcc promises for f32 and f64.
"""

import math

import numpy as np
from onnx import helper

from numerics.rows import Constant, row

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, np.inf, -np.inf, np.nan, 1e-30, -1e-30]


def erf(x):
    return np.vectorize(math.erf, otypes=[x.dtype])(x)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


# op: function, ulp, low and high of the values beside the special ones.
FLOAT_UNARY = {
    "Abs": (np.abs, 0, -9, 9),
    "Neg": (np.negative, 0, -9, 9),
    "Ceil": (np.ceil, 0, -9, 9),
    "Floor": (np.floor, 0, -9, 9),
    "Round": (np.round, 0, -9, 9),
    "Sqrt": (np.sqrt, 0.5, -1, 1e6),
    "Reciprocal": (np.reciprocal, 0.5, -9, 9),
    "Exp": (np.exp, 2, -80, 80),
    "Log": (np.log, 2, -1, 1e6),
    "Sin": (np.sin, 2, -50, 50),
    "Cos": (np.cos, 2, -50, 50),
    "Tan": (np.tan, 4, -50, 50),
    "Tanh": (np.tanh, 4, -12, 12),
    "Erf": (erf, 4, -6, 6),
    "Sigmoid": (sigmoid, 4, -80, 80),
    "Mish": (lambda x: x * np.tanh(np.log1p(np.exp(x))), 4, -80, 80),
    "Relu": (lambda x: np.where(x < 0, 0, x), 0, -9, 9),
    "IsNaN": (np.isnan, 0, -9, 9),
    "IsInf": (np.isinf, 0, -9, 9),
    "Sign": (np.sign, 0, -9, 9),
}
BINARY = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": np.divide,
    "Max": np.maximum,
    "Min": np.minimum,
}
COMPARE = {
    "Equal": np.equal,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
}
WIDER = {np.float32: np.float64, np.float64: np.longdouble}


def values(dtype, low, high, seed, count=517):
    spread = np.random.RandomState(seed).uniform(low, high, count)
    return np.concatenate([SPECIAL, spread]).astype(dtype)


def float_rows(dtype):
    wide = WIDER[dtype]
    with np.errstate(all="ignore"):
        for op, (function, ulp, low, high) in FLOAT_UNARY.items():
            x = values(dtype, low, high, seed=len(op))
            yield row(op, x, expected=function(x.astype(wide)), ulp=ulp)
        x, y = values(dtype, -9, 9, 1), values(dtype, -9, 9, 2)[::-1].copy()
        for op, function in BINARY.items():
            expected = function(x.astype(wide), y.astype(wide))
            yield row(op, x, y, expected=expected, ulp=0.5)
    for op, function in COMPARE.items():
        yield row(op, x, y, expected=function(x, y))
    yield from broadcast_rows(dtype)


def broadcast_rows(dtype):
    random = np.random.RandomState(3)
    a, b = random.rand(3, 1, 5).astype(dtype), random.rand(4, 1).astype(dtype)
    scalar = np.array(0.5, dtype)
    yield row("Add", a, b, name="both ways", expected=a + b)
    yield row("Mul", a, Constant(scalar), name="scalar", expected=a * scalar)
    condition = random.rand(4, 5) < 0.5
    yield row("Where", condition, a, b, expected=np.where(condition, a, b))
    low, high = Constant(np.array(0.2, dtype)), Constant(np.array(0.7, dtype))
    expected = np.clip(a, dtype(0.2), dtype(0.7))
    yield row("Clip", a, low, high, expected=expected)


def integer_rows(dtype):
    info = np.iinfo(dtype)
    random = np.random.RandomState(4)
    x = random.randint(max(info.min, -1000), min(info.max, 1000), 301).astype(dtype)
    y = random.randint(1, 9, 301).astype(dtype)
    with np.errstate(over="ignore"):
        for op in ("Add", "Sub", "Mul", "Max", "Min"):
            yield row(op, x, y, expected=BINARY[op](x, y))
    quotient = (np.sign(x.astype(np.int64)) * (np.abs(x.astype(np.int64)) // y))
    yield row("Div", x, y, expected=quotient.astype(dtype))
    yield row("Mod", x, y, expected=np.mod(x, y))
    for op, function in COMPARE.items():
        yield row(op, x, y, expected=function(x, y))


def bool_rows():
    x, y = np.array([[0, 0], [1, 1]], bool), np.array([[0, 1], [0, 1]], bool)
    yield row("And", x, y, expected=x & y)
    yield row("Or", x, y, expected=x | y)
    yield row("Xor", x, y, expected=x ^ y)
    yield row("Not", x, expected=~x)


def cast_rows():
    """Chains of casts: floats saturate and lose NaN, integers wrap."""

    def cast(x, dtype):
        return row("Cast", x, to=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def convert(x, dtype):
        info = np.iinfo(dtype)
        return np.clip(np.nan_to_num(np.trunc(x)), info.min, info.max).astype(dtype)

    def chain(x, middle, last, expected):
        name = f"{x.dtype} {np.dtype(middle)} {np.dtype(last)}"
        outer = cast(cast(x, middle), last)
        return outer._replace(name=f"Cast {name}", expected=expected)

    integers = (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32)
    for first in integers:
        info = np.iinfo(first)
        edges = [info.min, info.max, 0, 1, 127, 128, 255, 256, 300, -1, -129]
        x = np.array([e for e in edges if info.min <= e <= info.max], first)
        for middle in (np.float32, np.float64):
            wide = x.astype(middle).astype(np.float64)
            for last in integers:
                yield chain(x, middle, last, convert(wide, last))
            yield chain(x, middle, bool, x != 0)
        yield chain(x, np.int64, np.int8, x.astype(np.int8))
    x = np.array([*SPECIAL, 300, -300, 1e20, -1e20, 127.9, -0.9], np.float32)
    for last in (np.int8, np.uint8, np.int32):
        yield chain(x, np.float64, last, convert(x.astype(np.float64), last))
        yield chain(x, np.int32, last, convert(x.astype(np.float64), np.int32).astype(last))


def known_rows():
    """Integers that the importer knows: they wrap as those in a kernel."""

    def compute(op, x, y, then, z, dtype):
        x, y, z = (Constant(np.array(v, dtype)) for v in (x, y, z))
        inner = row(op, x, y)
        return row(then, inner, z, name=f"of {op} {np.dtype(dtype)}")

    def expect(r, value, dtype):
        return r._replace(expected=np.array(value, dtype))

    r = compute("Add", [200], [100], "Div", [2], np.uint8)
    yield expect(r, [22], np.uint8)
    r = compute("Sub", [3], [5], "Div", [2], np.uint16)
    yield expect(r, [32767], np.uint16)
    r = compute("Mul", [1 << 20], [1 << 12], "Max", [-5], np.int32)
    yield expect(r, [0], np.int32)
    r = compute("Add", [2**31 - 1], [1], "Div", [2], np.int32)
    yield expect(r, [-(2**30)], np.int32)
    r = compute("Sub", [0], [1], "Div", [2], np.uint64)
    yield expect(r, [2**63 - 1], np.uint64)
    r = compute("Max", [2**63 + 2], [5], "Min", [2**63], np.uint64)
    yield expect(r, [2**63], np.uint64)
    total = row("ReduceSum", Constant(np.array([2**30] * 2, np.int32)), keepdims=0)
    half = row("Div", total, Constant(np.array(2, np.int32)))
    yield half._replace(expected=np.array(-(2**30), np.int32))


def models():
    yield "f32", list(float_rows(np.float32))
    yield "f64", list(float_rows(np.float64))
    for dtype in (np.int8, np.int32, np.int64, np.uint8):
        yield np.dtype(dtype).name, list(integer_rows(dtype))
    yield "bool", list(bool_rows())
    yield "casts", list(cast_rows())
    yield "known", list(known_rows())
