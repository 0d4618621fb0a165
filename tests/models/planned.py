"""What contexts and sessions allocate is what the compiler planned, byte for byte."""

import json
import os

from harness import BIN, TARGET, first_line, run_tool
from spine import capi
from training import cases as steps

THREADS = 2
FLAGS = ["--json", f"--threads={THREADS}"]
DEVICES = {"cpu": "cpu", "cuda": "emulated"}


def check(tally, name, package, printed, kind=capi.Context):
    """`printed` is what the compiler said with FLAGS; of a session `init` alone is run."""
    os.environ["TCC_PLUGINS"] = BIN  # not beside the library
    library = capi.Library(os.path.join(BIN, "../runtime/libtcc_runtime.so"))
    program = library.open(package, device=DEVICES[TARGET])
    planned = json.loads(printed)["memory_bytes"]
    found = kind(library, program, THREADS).planned_bytes()
    tally.check(f"{name}: memory is as planned", found == planned["total"], f"{found}, {planned}")


def check_steps(tally, work):
    """Of the models that the training suites compile."""
    for name in steps.MODELS:
        recipe, package = (os.path.join(work, f"{name}.{end}") for end in ("toml", "tcc"))
        with open(recipe, "w") as stream:
            stream.write(steps.recipe(name, "adamw", "bf16"))
        flags = [f"--train={recipe}", "-o", package, "-q", *FLAGS]
        if name == "mlp_digits":  # the only one with a batch to bind
            flags += ["--dim", f"batch={steps.MODELS[name].batch}"]
        compiled = run_tool("tcc", os.path.join(steps.FIXTURES, f"{name}.onnx"), *flags)
        if tally.check(f"{name} steps compile", compiled.code == 0, first_line(compiled)):
            check(tally, f"{name} steps", package, compiled.out, capi.Session)
