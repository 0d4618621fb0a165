"""Compiles and runs ONNX's backend cases.

  run.py [--all] [--table FILE.md] [NAME...]

Without --all, the first case of each op. Each case passes, or tcc refuses it
with exit 4 and names what is missing; anything else fails. Where a case gives
shapes, axes or the like as inputs of the graph, which tcc needs to know, they
are fixed to the numbers of the case. --table writes the counts.
"""

import argparse
import collections
import concurrent.futures
import glob
import json
import os
import tempfile

import numpy as np
import onnx

from harness import Tally, first_line, run_tool
from models.cases import data_sets
from node_cases.dump import LENGTHS, dump
from node_cases.table import write_table

JOBS = 2
USAGE, UNSUPPORTED = 2, 4
MAX_FIXED = 64
# What a refusal says that values known at compile time would help.
ASKS_FOR_VALUES = ("known only at run time", "--bound NAME=N")
# What a run says of numbers that it lacks something for.
NOT_SUPPORTED = "is not supported"
# The references round to bf16, of 8 bits, at every step.
BF16_RTOL = 2**-6
# The references draw ones and zeros of their own: what is compared is their number.
RANDOM = {"Bernoulli", "RandomUniformLike"}

# outcome: pass, fixed (passes with inputs fixed), unsupported, wrong (a result
# or exit code) or crash.
Result = collections.namedtuple("Result", "case outcome detail")


def outcome_of(run):
    if run.code is None or run.code < 0 or run.code == 70:
        return "crash"
    return "wrong"


def tensor_inputs(case):
    """(name, array) of the first data set."""
    data = os.path.join(case.folder, "test_data_set_0")
    for i in range(len(glob.glob(os.path.join(data, "input_*.pb")))):
        tensor = onnx.load_tensor(os.path.join(data, f"input_{i}.pb"))
        array = onnx.numpy_helper.to_array(tensor)
        is_bf16 = array.dtype.name == "bfloat16"
        yield tensor.name, array.astype(np.float32) if is_bf16 else array


def value_flags(case, kinds):
    """Fixes the inputs of a few numbers that have one of the dtype kinds."""
    for name, array in tensor_inputs(case):
        if array.ndim <= 1 and array.size <= MAX_FIXED and array.dtype.kind in kinds:
            values = np.atleast_1d(array).tolist()
            yield f"--input-value={name}={','.join(str(v).lower() for v in values)}"


def shape_flags(case):
    """Lengths and shapes of the first data set."""
    path = os.path.join(case.folder, "test_data_set_0", LENGTHS)
    if os.path.exists(path):
        with open(path) as stream:
            for name, length in json.load(stream).items():
                yield f"--input-length={name}={length}"
    for name, array in tensor_inputs(case):
        yield f"--input-shape={name}={'x'.join(map(str, array.shape))}"


def with_known_inputs(case, attempt):
    """attempt(flags) with the shapes and values that tcc asks for.

    Gives the last run, and whether inputs were fixed for it.
    """
    flags, is_fixed = [], False
    run = attempt(flags)
    if run.code == USAGE:
        flags = [*shape_flags(case)]
        run = attempt(flags)
    for kinds in ("iub", "iubf"):
        asks = any(words in run.err for words in ASKS_FOR_VALUES)
        if run.code == UNSUPPORTED and asks:
            run = attempt([*flags, *value_flags(case, kinds)])
            is_fixed = True
    return run, is_fixed


def tolerance_flags(case):
    graph = onnx.load(os.path.join(case.folder, "model.onnx")).graph
    types = {info.type.tensor_type.elem_type for info in graph.output}
    if RANDOM.intersection(node.op_type for node in graph.node):
        return ["--atol=1"]
    return [f"--rtol={BF16_RTOL}"] if onnx.TensorProto.BFLOAT16 in types else []


def run_case(case, work):
    package = os.path.join(work, case.name + ".tcc")
    model = os.path.join(case.folder, "model.onnx")
    compiled, is_fixed = with_known_inputs(
        case, lambda flags: run_tool("tcc", model, *flags, "-o", package, "-q")
    )
    if compiled.code == UNSUPPORTED and compiled.err.strip():
        return Result(case, "unsupported", compiled.err)
    if compiled.code != 0:
        return Result(case, outcome_of(compiled), "tcc " + first_line(compiled))
    tolerance = tolerance_flags(case)
    for data in data_sets(case.folder):
        options = ["--inputs-dir", data, "--expect-dir", data, *tolerance]
        ran = run_tool("tcc-run", "run", package, *options, timeout=60)
        if ran.code == USAGE and NOT_SUPPORTED in ran.err:
            return Result(case, "unsupported", ran.err)
        if ran.code != 0:
            return Result(case, outcome_of(ran), "tcc-run " + first_line(ran))
    os.remove(package)
    return Result(case, "fixed" if is_fixed else "pass", "")


def first_of_each_op(cases):
    """One plain case per op; `_expanded` ones repeat an op by its function."""
    chosen = {}
    for case in cases:
        if len(case.ops) == 1 and not case.name.endswith("_expanded"):
            chosen.setdefault(case.ops[0], case)
    return list(chosen.values())


def select(arguments):
    cases = dump()
    if arguments.names:
        return [case for case in cases if case.name in arguments.names]
    return cases if arguments.all else first_of_each_op(cases)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--table")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    selected, tally = select(arguments), Tally()
    with tempfile.TemporaryDirectory() as work:
        with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
            results = list(pool.map(lambda case: run_case(case, work), selected))
    for case, outcome, detail in results:
        if outcome == "unsupported":
            tally.skipped += 1
        else:
            passed = outcome in ("pass", "fixed")
            tally.check(case.name, passed, f"{outcome}: {detail}")
    if arguments.table:
        write_table(results, arguments.table)
    tally.close()


if __name__ == "__main__":
    main()
