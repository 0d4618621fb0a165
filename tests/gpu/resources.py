"""No GPU kernel may spill registers: resources.py [EXPORT...]

Compiles the models of the numerics suite, and exports where they are at hand, for
all architectures, and reads from the decisions what the assembler says of each
kernel. Without NVIDIA's assembler there is nothing to say.
"""

import glob
import json
import os
import sys
import tempfile

from harness import Tally, cache_folder, first_line, run_tool
from numerics import families, pointwise
from numerics.rows import Model, write_model

# Kinds that never need memory of their own.
PLAIN_KINDS = ("pointwise", "row")
# libdevice reduces large f64 arguments of these in an array.
WITH_ARRAYS = ("Sin", "Cos", "Tan")


def resources(path, folder, *flags):
    """What each kernel uses: (arch, kernel, kind, numbers); or why it is unknown."""
    decisions = os.path.join(folder, "decisions.json")
    run = run_tool(
        "tcc", path, "-o", os.path.join(folder, "m.tcc"), "--target=cuda",
        "--dump-decisions", decisions, *flags,
    )  # fmt: skip
    if run.code != 0:
        return None, first_line(run)
    with open(decisions) as stream:
        rows = [row for row in json.load(stream) if row["pass"] == "assemble"]
    return [
        (row["decision"], *row["reason"].rsplit(", ", 1), row["numbers"]) for row in rows
    ], "no kernels, or no assembler"


def check(tally, title, path, *flags):
    with tempfile.TemporaryDirectory() as folder:
        rows, problem = resources(path, folder, *flags)
        if rows == []:
            tally.skipped += 1
            print(f"not available: {title}: {problem}")
            return
        if not tally.check(f"{title} compiles", rows is not None, problem):
            return
        for arch, kernel, kind, numbers in rows:
            is_spilled = numbers["spill_bytes"] > 0
            has_stack = kind in PLAIN_KINDS and numbers["stack_bytes"] > 0
            if title == "f64" and kernel.endswith(WITH_ARRAYS):
                has_stack = False
            name = f"{title} {arch} {kernel} ({kind})"
            tally.check(name, not (is_spilled or has_stack), str(numbers))


def main(names):
    tally = Tally()
    for module in (pointwise, families):
        for title, rows in module.models():
            with tempfile.TemporaryDirectory() as folder:
                check(tally, title, write_model(Model(rows), folder)[0])
    pattern = cache_folder("exports") + "/*.b1-*/model.onnx"
    for path in sorted(glob.glob(pattern)):
        name = os.path.basename(os.path.dirname(path)).split("-")[0]
        for precision in ("f32", "bf16"):
            if not names or name in names:
                check(tally, f"{name} {precision}", path, "--precision", precision)
    tally.close()


if __name__ == "__main__":
    main(sys.argv[1:])
