"""No GPU kernel may spill registers: resources.py [MODEL...]

Compiles the models of the numerics suite, those out of wheels, exports and training
steps for all architectures, and reads from the decisions what the assembler says of
each kernel. Without NVIDIA's assembler there is nothing to say.
"""

import json
import os
import sys
import tempfile

from bench import torch_models, workloads
from harness import Tally, first_line, run_tool
from models import exports, wheels
from models.run import compile_flags
from numerics import families, pointwise
from numerics.rows import Model, write_model
from training import traffic

# Kinds that never need memory of their own.
PLAIN_KINDS = ("pointwise", "row")
PRECISIONS = ("f32", "bf16", "f16")


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
            name = f"{title} {arch} {kernel} ({kind})"
            tally.check(name, not (is_spilled or has_stack), str(numbers))


def check_numerics(tally):
    for module in (pointwise, families):
        for title, rows in module.models():
            with tempfile.TemporaryDirectory() as folder:
                check(tally, title, write_model(Model(rows), folder)[0])


def inference_models():
    """Folder and description by name."""
    for name in exports.ARCHITECTURES:
        yield name, exports.make, f"{name}.b1", {}
    for name, case in (wheels.models() | wheels.models(long=True)).items():
        yield name, wheels.make, name, case


def check_training(tally, name):
    with tempfile.TemporaryDirectory() as folder:
        torch_models.export(name, folder)
        recipe = os.path.join(folder, "recipe.toml")
        with open(recipe, "w") as stream:
            stream.write(workloads.recipe(name))
        model = os.path.join(folder, "model.onnx")
        check(tally, f"{name} training", model, f"--train={recipe}")


def check_traffic(tally, name):
    """Of a model that traffic.py counts the bytes of."""
    write, recipe = traffic.IMAGE_MODELS[name]
    with tempfile.TemporaryDirectory() as folder:
        model, path = (os.path.join(folder, file) for file in ("model.onnx", "recipe.toml"))
        write(model)
        with open(path, "w") as stream:
            stream.write(traffic.RECIPE.format(**recipe))
        check(tally, f"{name} training bf16", model, "--weights=none", f"--train={path}")


def main(names):
    tally = Tally()
    if not names:
        check_numerics(tally)
    for name, make, key, case in inference_models():
        if not names or name in names:
            path = os.path.join(make(key, case), "model.onnx")
            for precision in PRECISIONS:
                flags = [*compile_flags(case), "--precision", precision]
                check(tally, f"{name} {precision}", path, *flags)
    for name in workloads.WORKLOADS:
        if not names or name in names:
            check_training(tally, name)
    for name in traffic.IMAGE_MODELS:
        if not names or name in names:
            check_traffic(tally, name)
    tally.close()


if __name__ == "__main__":
    main(sys.argv[1:])
