"""Compares gradients of narrower types with those of f64."""

import tempfile

import ml_dtypes
import numpy as np
from onnx import TensorProto, helper

from numerics.loss_models import compile_rows, row_of
from numerics.rows import Body, Constant, Row

# Type: the largest relative error of a gradient's norm.
BOUNDS = {
    np.dtype(np.float32): 1e-5,
    np.dtype(np.float16): 2e-2,
    np.dtype(ml_dtypes.bfloat16): 2e-2,
}
# Places of bf16 are off by some hundredths of an element.
LARGER = {("GridSample", np.dtype(ml_dtypes.bfloat16)): 1e-1}
# A gradient much smaller than the others of its row counts as if it were larger.
FLOOR = 1e-2


def narrow(value, dtype, made):
    """An operand, attribute, row or body with `dtype` for f64. `made`: arrays, by
    what they are made of; what is one operand stays one."""
    if isinstance(value, np.ndarray):
        is_wide = value.dtype == np.float64
        return made.setdefault(id(value), value.astype(dtype) if is_wide else value)
    if isinstance(value, Constant):
        return Constant(narrow(value.value, dtype, made))
    if isinstance(value, Body):
        return Body(value.inputs, [narrow(x, dtype, made) for x in value.results])
    if not isinstance(value, Row):
        return value
    attributes = {key: narrow(x, dtype, made) for key, x in value.attributes.items()}
    if attributes.get("dtype") == TensorProto.DOUBLE:
        attributes["dtype"] = helper.np_dtype_to_tensor_dtype(dtype)
    inputs = [narrow(x, dtype, made) for x in value.inputs]
    return value._replace(inputs=inputs, attributes=attributes)


def measure(actual, expected):
    """The largest relative error of the norms of a row's gradients."""
    norms = [np.linalg.norm(e) for e in expected]
    least = FLOOR * max(norms, default=0)
    worst = 0
    for a, e, norm in zip(actual, expected, norms):
        error = np.linalg.norm(a.astype(np.float64) - e)
        worst = max(worst, error / max(norm, least) if error else 0)
    return worst


def check(tally, title, wide, dtype):
    """`wide`: the package of the rows in f64."""
    dtype = np.dtype(dtype)
    title = f"{title} {dtype.name}"
    made = {}
    rows = [narrow(r, dtype, made) for r in wide.rows]
    places = {id(r): i for i, r in enumerate(rows)}
    with tempfile.TemporaryDirectory() as folder:
        package = compile_rows(tally, title, rows, folder)
        if not package:
            return
        gradients = package.run(package.feed)[1]
    rounded = {
        name: narrow(x, dtype, made).astype(x.dtype) for name, x in wide.feed.items()
    }
    found, expected = ([[] for _ in rows] for _ in range(2))
    for name, gradient in gradients.items():
        found[places[id(package.rows[row_of(name)])]].append(gradient)
    for name, gradient in wide.run(rounded)[1].items():
        expected[row_of(name)].append(gradient)
    for r in package.rows:
        i = places[id(r)]
        error = measure(found[i], expected[i])
        bound = LARGER.get((r.op, dtype), BOUNDS[dtype])
        message = f"off by {error:.1e}, at most {bound:.0e}"
        tally.check(f"{title}: {r.name}", error <= bound, message)
