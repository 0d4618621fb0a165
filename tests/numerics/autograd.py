"""Compares gradients with those that torch.autograd found.

fixtures/NAME.npz holds those of a family's rows one after another, as f64, and
a checksum of what they are of. make_gradient_fixtures.py writes it.
"""

import os
import tempfile
import zlib

import numpy as np

from numerics import (
    autograd_composites,
    autograd_moves,
    autograd_rows,
    autograd_written,
)
from numerics.loss_models import LossModel, compile_rows, row_of

MODULES = (autograd_rows, autograd_composites, autograd_moves, autograd_written)
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fixtures")
# Of a row's largest gradient.
TOLERANCE = 1e-10


def models():
    for module in MODULES:
        yield from module.models()


def find_operands(rows):
    """Of each row, the floats that gradients are with respect to."""
    operands = [[] for _ in rows]
    for name, x in LossModel(rows).feed.items():
        if x.dtype.kind == "f":
            operands[row_of(name)].append(x)
    return operands


def summarize(rows):
    """A number that changes with names and operands."""
    sum = 0
    for r, operands in zip(rows, find_operands(rows)):
        for part in (r.name.encode(), *(x.tobytes() for x in operands)):
            sum = zlib.crc32(part, sum)
    return sum


def path_of(title):
    return os.path.join(FOLDER, f"{title}.npz")


def save(title, rows, gradients):
    """`gradients`: of each row, as many as it has float operands."""
    flat = [g.ravel() for found in gradients for g in found]
    np.savez_compressed(
        path_of(title), checksum=summarize(rows), gradients=np.concatenate(flat)
    )


def load(title, rows):
    """Of each row the gradients, or None where they are of other rows."""
    with np.load(path_of(title)) as file:
        if file["checksum"] != summarize(rows):
            return None
        flat = file["gradients"]
    found = []
    for operands in find_operands(rows):
        found.append([])
        for x in operands:
            found[-1].append(flat[: x.size].reshape(x.shape))
            flat = flat[x.size :]
    return found


def mismatch(actual, expected):
    """What is wrong with a row's gradients, or None."""
    numbers = np.concatenate([np.abs(x[np.isfinite(x)]).ravel() for x in expected])
    bound = TOLERANCE * numbers.max(initial=0)
    for i, (a, e) in enumerate(zip(actual, expected)):
        with np.errstate(invalid="ignore"):
            ok = (a == e) | (np.isnan(a) & np.isnan(e)) | (np.abs(a - e) <= bound)
        if not ok.all():
            places = np.argwhere(~ok)[:4].tolist()
            return f"operand {i} at {places}: {a[~ok][:4]}, expected {e[~ok][:4]}"
    return None


def check(tally, title, cases):
    rows = [c.row for c in cases]
    expected = load(title, rows)
    message = "write it with make_gradient_fixtures.py"
    if not tally.check(path_of(title), expected is not None, message):
        return
    by_row = {id(r): gradients for r, gradients in zip(rows, expected)}
    with tempfile.TemporaryDirectory() as folder:
        package = compile_rows(tally, f"autograd {title}", rows, folder)
        if not package:
            return
        gradients = package.run(package.feed)[1]
    found = [[] for _ in package.rows]
    for name, gradient in gradients.items():
        found[row_of(name)].append(gradient)
    for r, actual in zip(package.rows, found):
        wrong = mismatch(actual, by_row[id(r)])
        tally.check(f"autograd {title}: {r.name}", wrong is None, wrong)
