"""What a context has allocated is what the compiler planned, byte for byte."""

import json
import os

from harness import BIN, TARGET
from spine import capi

THREADS = 2
FLAGS = ["--json", f"--threads={THREADS}"]
DEVICES = {"cpu": "cpu", "cuda": "emulated"}


def check(tally, name, package, printed):
    """`printed` is what the compiler said with FLAGS; nothing is run."""
    os.environ["TCC_PLUGINS"] = BIN  # not beside the library
    library = capi.Library(os.path.join(BIN, "../runtime/libtcc_runtime.so"))
    program = library.open(package, device=DEVICES[TARGET])
    planned = json.loads(printed)["memory_bytes"]
    found = capi.Context(library, program, THREADS).planned_bytes()
    tally.check(f"{name}: memory is as planned", found == planned["total"], f"{found}, {planned}")
