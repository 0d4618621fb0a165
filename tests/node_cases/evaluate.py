"""Imports ONNX's backend cases and evaluates them with the reference evaluator.

  evaluate.py [NAME...]

It tells a wrong import from wrong code, as no code is generated. Refused cases
(exit 4, or numbers that an op lacks something for) and those of sequences or strings are skipped.
"""

import concurrent.futures
import glob
import os
import sys
import tempfile

import numpy as np
import onnx

from harness import Tally, first_line, run_tool
from node_cases.dump import dump
from node_cases.run import (
    BF16_RTOL,
    JOBS,
    NOT_SUPPORTED,
    UNSUPPORTED,
    with_known_inputs,
)

SKIPPED = None


def in_bytes(array):
    """Integers of 4 and 2 bits as those of 8 that the module has."""
    return array.astype(np.int8) if array.dtype.name in ("int4", "int2") else array


def read_tensors(folder, kind):
    """The arrays of a data set; None if one is no tensor of numbers."""
    count = len(glob.glob(os.path.join(folder, f"{kind}_*.pb")))
    arrays = []
    for i in range(count):
        try:
            tensor = onnx.load_tensor(os.path.join(folder, f"{kind}_{i}.pb"))
            arrays.append(in_bytes(onnx.numpy_helper.to_array(tensor)))
        except Exception:  # what protobuf and onnx raise for other messages
            return None
    return None if any(a.dtype.kind in "OUS" for a in arrays) else arrays


def is_close(found, expected):
    """Exact, or for floats to 1e-3, or BF16_RTOL, and 1e-4 of the largest number."""
    if expected.dtype.kind in "iub":
        return np.array_equal(found, expected)
    rtol = BF16_RTOL if expected.dtype.name == "bfloat16" else 1e-3
    found, expected = found.astype(np.float64), expected.astype(np.float64)
    finite = np.abs(expected[np.isfinite(expected)])
    scale = finite.max(initial=0)
    return np.allclose(found, expected, rtol=rtol, atol=1e-4 * scale, equal_nan=True)


def compare(work, expected):
    """What is wrong with the results, or nothing."""
    for i, array in enumerate(expected):
        path = os.path.join(work, f"result_{i}.bin")
        found = np.fromfile(path, dtype=array.dtype)
        if found.size != array.size:
            return f"output {i} has {found.size} elements, expected {array.size}"
        if not is_close(found.reshape(array.shape), array):
            return f"output {i} has wrong numbers"
    return ""


def evaluate(case):
    """What went wrong, nothing, or SKIPPED."""
    model = os.path.join(case.folder, "model.onnx")
    data = os.path.join(case.folder, "test_data_set_0")
    inputs, expected = read_tensors(data, "input"), read_tensors(data, "output")
    if inputs is None or expected is None:
        return SKIPPED
    with tempfile.TemporaryDirectory() as work:
        for i, array in enumerate(inputs):
            array.tofile(os.path.join(work, f"input_{i}.bin"))
        run, _ = with_known_inputs(
            case,
            lambda flags: run_tool("tcc-import", model, *flags, "--evaluate", work),
        )
        if run.code == UNSUPPORTED or (run.code == 1 and NOT_SUPPORTED in run.err):
            return SKIPPED
        return first_line(run) if run.code != 0 else compare(work, expected)


def main():
    names, tally = sys.argv[1:], Tally()
    cases = [case for case in dump() if not names or case.name in names]
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        for case, problem in zip(cases, pool.map(evaluate, cases)):
            if problem is SKIPPED:
                tally.skipped += 1
            else:
                tally.check(case.name, not problem, problem)
    tally.close()


if __name__ == "__main__":
    main()
