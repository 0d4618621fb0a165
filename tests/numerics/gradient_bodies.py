"""Rows of control flow and sequences whose gradients are checked."""

import numpy as np
from onnx import TensorProto

from numerics.gradient_rows import known, values
from numerics.rows import Body, Constant, ints, row

YES = Constant(np.array(True))


def branches():
    x, y = values(3, 4), values(4)
    for taken in (True, False):
        both = dict(
            then_branch=Body([], [row("Mul", x, row("Sin", x)), y]),
            else_branch=Body([], [row("Mul", x, y), row("Exp", y)]),
        )
        yield row("If", np.array(taken), name=str(taken), outputs=2, **both)
        yield row("If", Constant(np.array(taken)), name=f"known to be {taken}",
                  outputs=2, **both)  # fmt: skip
        inner = row("If", np.array(not taken), then_branch=Body([], [x]),
                    else_branch=Body([], [row("Neg", x)]))  # fmt: skip
        yield row("If", np.array(taken), name=f"in one, {taken}",
                  then_branch=Body([], [row("Mul", x, inner)]),
                  else_branch=Body([], [row("Cos", x)]))  # fmt: skip
        # One branch reads nothing.
        yield row("If", np.array(taken), name=f"of a constant, {taken}",
                  then_branch=Body([], [known(1.0, 2.0, 3.0, 4.0)]),
                  else_branch=Body([], [y]))  # fmt: skip


def loops():
    x, w = values(3), values(3, 3)
    step = row("Tanh", row("MatMul", w, "h"))
    body = Body(["i", "on", "h"], ["on", step, row("Sin", "h")])
    trips = Constant(np.array(4))
    yield row("Loop", trips, None, x, body=body, outputs=2)
    yield row("Loop", trips, YES, x, name="carried", body=body._replace(results=body.results[:2]))
    yield row("Loop", Constant(np.array(1)), YES, x, name="of one", body=body, outputs=2)
    counted = row("CastLike", "i", "a")
    two = Body(["i", "on", "a", "b"], [
        "on", row("Mul", "b", w), row("Add", "a", counted), row("Mul", "a", "b"),
    ])  # fmt: skip
    yield row("Loop", trips, None, w, w + 1, name="swaps", body=two, outputs=3)
    # Ends at a condition, before its bound of 6.
    small = row("Less", row("ReduceSum", "h", keepdims=0), values(low=3, high=4))
    stops = Body(["i", "on", "h"], [small, row("Mul", "h", known(1.7))])
    first = values(3, low=0.2, high=0.5)
    yield row("Loop", Constant(np.array(6)), YES, first, name="stops", body=stops)
    grows = Body(["i", "on", "h"], ["on", row("Mul", "h", values(low=1, high=2))])
    yield row("Loop", Constant(np.array(6)), np.array(False), first, name="never runs",
              body=grows)  # fmt: skip
    inner = row("Loop", Constant(np.array(2)), None, "h", body=Body(
        ["j", "more", "g"], ["more", row("Sin", row("MatMul", w, "g"))]
    ))  # fmt: skip
    yield row("Loop", trips, None, x, name="of loops",
              body=Body(["i", "on", "h"], ["on", row("Add", inner, x)]))  # fmt: skip
    choice = row("If", row("Less", "i", Constant(np.array(2))),
                 then_branch=Body([], [row("Mul", "h", x)]),
                 else_branch=Body([], [row("Cos", "h")]))  # fmt: skip
    yield row("Loop", trips, None, x, name="of branches",
              body=Body(["i", "on", "h"], ["on", choice]))  # fmt: skip
    longer = row("Concat", "h", values(2), axis=0)
    yield row("Loop", Constant(np.array(3)), None, x, name="that grows",
              body=Body(["i", "on", "h"], ["on", longer]))  # fmt: skip


def scans():
    w = values(3, 3)
    total = row("Add", row("MatMul", "h", w), "x")
    body = Body(["h", "x"], [row("Tanh", total), row("Mul", "h", "x")])
    yield row("Scan", values(3), values(4, 3), outputs=2, body=body, num_scan_inputs=1)
    yield row("Scan", values(3), values(3, 4), name="backwards", outputs=2, body=body,
              num_scan_inputs=1, scan_input_axes=[1], scan_input_directions=[1],
              scan_output_directions=[1], scan_output_axes=[1])  # fmt: skip
    pair = Body(["x", "y"], [row("Mul", "x", "y")])
    yield row("Scan", values(4, 3), values(4, 3), name="without state", body=pair,
              num_scan_inputs=2)  # fmt: skip


def sequences():
    x, y = values(4, 3), values(4, 3)
    both = row("SequenceConstruct", x, row("Sin", y))
    yield row("SequenceAt", both, Constant(np.array(1)))
    yield row("ConcatFromSequence", both, axis=1)
    yield row("ConcatFromSequence", both, name="stacked", axis=0, new_axis=1)
    split = row("SplitToSequence", x, Constant(np.array([1, 3])), axis=0)
    yield row("SequenceAt", split, Constant(np.array(-1)), name="of a split")
    more = row("SequenceInsert", both, x, Constant(np.array(0)))
    yield row("ConcatFromSequence", more, name="of an insertion", axis=0)
    less = row("SequenceErase", more, Constant(np.array(1)))
    yield row("ConcatFromSequence", less, name="of an erasure", axis=0)
    empty = row("SequenceEmpty", dtype=TensorProto.DOUBLE)
    yield row("SequenceAt", row("SequenceInsert", empty, x), Constant(np.array(0)),
              name="of an empty one")  # fmt: skip
    mapped = row("SequenceMap", both, x,
                 body=Body(["a", "b"], [row("Mul", "a", row("Cos", "b"))]))  # fmt: skip
    yield row("ConcatFromSequence", mapped, name="of a map", axis=0)
    yield row("OptionalGetElement", row("Optional", x))


FAMILIES = (branches, loops, scans, sequences)


def models():
    for family in FAMILIES:
        yield family.__name__, list(family())
