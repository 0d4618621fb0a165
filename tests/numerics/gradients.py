"""Checks gradients: gradients.py [TITLE...] [--types TYPE...] [--table FILE]

Rows are those of gradient_rows.py and its like, in f64, whose gradients are
compared with difference quotients, and those of autograd_rows.py and its like,
compared with what torch.autograd found; with --types, those of these types are
compared with those of f64. The loss of a row is the sum of its results' elements
times fixed numbers; one model holds many rows, so that their gradients are one
package.
"""

import argparse
import os
import tempfile

import numpy as np

from harness import ROOT, Tally
from numerics import (
    autograd,
    gradient_bodies,
    gradient_rows,
    gradient_table,
    gradient_types,
    gradient_windows,
)
from numerics.loss_models import compile_rows, row_of

MODULES = (gradient_rows, gradient_windows, gradient_bodies)
# Of difference quotients of fourth order, which are off by about STEP^4 and the
# last place divided by STEP.
STEP = 1e-4
TOLERANCE = 1e-8


def models():
    for module in MODULES:
        yield from module.models()


def differentiate(package, gradients):
    """For each row the derivative along a direction: from its losses, from its
    gradients, and what these may be off by."""
    random = np.random.RandomState(5)
    direction = {
        name: random.standard_normal(package.feed[name].shape)
        for name in package.wanted
    }
    quotient = 0
    for factor, weight in ((1, 8), (-1, -8), (2, -1), (-2, 1)):
        moved = {
            name: x + factor * STEP * direction[name] if name in direction else x
            for name, x in package.feed.items()
        }
        quotient = quotient + weight * package.run(moved)[0] / (12 * STEP)
    products, magnitudes = np.zeros_like(quotient), np.zeros_like(quotient)
    for name, gradient in gradients.items():
        terms = gradient * direction[name]
        products[row_of(name)] += terms.sum()
        magnitudes[row_of(name)] += np.abs(terms).sum()
    return quotient, products, TOLERANCE * (magnitudes + 1e-2)


def check(tally, title, rows, types):
    """Compares gradients with difference quotients, those of `types` with them."""
    with tempfile.TemporaryDirectory() as folder:
        package = compile_rows(tally, title, rows, folder)
        if not package:
            return
        gradients = package.run(package.feed)[1]
        quotients, products, bounds = differentiate(package, gradients)
        for dtype in types:
            gradient_types.check(tally, title, package, dtype)
    for r, expected, found, bound in zip(package.rows, quotients, products, bounds):
        message = f"{found}, expected {expected}"
        tally.check(f"{title}: {r.name}", abs(found - expected) <= bound, message)


def check_table(tally, rows, table):
    """Every operator has a row or a reason, and the table says which."""
    gaps = gradient_table.find_gaps(rows)
    for op, message in gaps.items():
        tally.check(op, False, message)
    with open(os.path.join(ROOT, gradient_table.PATH)) as stream:
        message = f"write it with --table {gradient_table.PATH}"
        is_written = stream.read() == table
        tally.check(gradient_table.PATH, is_written, message)


def main(titles, table, types):
    families = list(models())
    rows = [r for _, family in families for r in family]
    known = list(autograd.models())
    text = gradient_table.make_table(rows, [c for _, cases in known for c in cases])
    if table:
        with open(table, "w") as stream:
            stream.write(text)
        return
    tally = Tally()
    for title, family in families:
        if not titles or title in titles:
            check(tally, title, family, types)
    for title, cases in known:
        if not titles or f"autograd {title}" in titles:
            autograd.check(tally, title, cases)
    if not titles:
        check_table(tally, rows, text)
    tally.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("titles", nargs="*")
    parser.add_argument("--table", metavar="FILE")
    types = [dtype.name for dtype in gradient_types.BOUNDS]
    parser.add_argument("--types", nargs="+", choices=types, default=[])
    arguments = parser.parse_args()
    main(arguments.titles, arguments.table, arguments.types)
