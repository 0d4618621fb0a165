"""The rows of families.py in another precision.

A product may be off by what rounding its operands does to its terms; what has no
product has the same bits as in f32. In f64 all is as near as it can be.
"""

import tempfile

import numpy as np

from models.cases import reference
from numerics import families
from numerics.rows import Constant, Model, Row, run_model, write_model

# The largest relative error of rounding to the type.
ROUNDING = {"bf16": 2.0**-8, "f16": 2.0**-11}
# Operators with products; their models are all of that kind.
PRODUCTS = ("MatMul", "Gemm", "Einsum", "Conv", "ConvTranspose")


def models():
    for family in (families.contraction, families.convolution):
        yield f"mixed {family.__name__}", list(family())


def magnitude(value):
    """The row's operands, recursively, without their signs."""
    if isinstance(value, Constant):
        return Constant(magnitude(value.value))
    if isinstance(value, Row):
        return value._replace(inputs=[magnitude(x) for x in value.inputs])
    is_float = isinstance(value, np.ndarray) and value.dtype == np.float32
    return np.abs(value) if is_float else value


def sum_magnitudes(rows):
    """For each row with products the sums of their magnitudes, by its id."""
    products = [r for r in rows if r.op in PRODUCTS]
    with tempfile.TemporaryDirectory() as folder:
        model = Model([magnitude(r) for r in products])
        path, _ = write_model(model, folder)
        sums = reference(path, model.feed)
    return {id(r): sums[f"y{i}"] for i, r in enumerate(products)}


def bound(precision, expected, sums):
    """How far elements may be off from those of f32."""
    if precision == "f64":
        return 1e-5 * (np.abs(expected) + np.max(np.abs(expected), initial=0))
    if sums is None:
        return 0
    # Both operands of a term are rounded; and f32's rounding of sums.
    return 2.05 * ROUNDING[precision] * sums + 1e-6


def check(tally, title, rows):
    sums = sum_magnitudes(rows)
    with tempfile.TemporaryDirectory() as folder:
        model = Model(rows)
        path, data = write_model(model, folder)
        expected, message = run_model(model, path, data, "native")
        for precision in ("f64", *ROUNDING):
            actual, failure = run_model(model, path, data, "native", precision)
            if message or failure:
                tally.check(f"{title} in {precision}", False, message or failure)
                continue
            for i, r in enumerate(rows):
                off = np.abs(actual[i].astype(np.float64) - expected[i])
                off -= bound(precision, expected[i], sums.get(id(r)))
                worst = float(np.max(off, initial=-np.inf))
                name = f"{title} in {precision}: {r.name}"
                tally.check(name, worst <= 0, f"off by {worst} too much")
