"""silero_vad.jit out of its wheel, called 30 times: silero.py [--make]

The outputs are PyTorch's; --make, which needs torch, writes them again.
"""

import os
import sys
import tempfile

import numpy as np
from frontends.archives.run import FIXTURES, LIBRARY
from harness import Tally, first_line, run_tool
from models import wheels
from spine import capi

WHEEL, FILE = "silero-vad==6.2.3", "silero_vad/data/silero_vad.jit"
KEPT = f"{FIXTURES}/silero.npz"
CALLS, SAMPLES, RATE = 30, 512, 16000
TOLERANCE = 1e-5


def make_sound():
    """A tone that comes and goes, with noise."""
    time = np.arange(CALLS * SAMPLES) / RATE
    tone = np.sin(2 * np.pi * 220 * time) * np.abs(np.sin(2 * np.pi * 3 * time))
    noise = 0.05 * np.random.RandomState(0).randn(len(time))
    return (tone + noise).astype(np.float32).reshape(CALLS, 1, SAMPLES)


def make(model):
    import torch

    script = torch.jit.load(model)
    with torch.no_grad():
        outputs = [script(torch.tensor(x), RATE).numpy() for x in make_sound()]
    np.savez_compressed(KEPT, outputs=np.stack(outputs))


def check(tally, model, folder):
    package = f"{folder}/m.tcc"
    flags = [f"--input-shape=x=1x{SAMPLES}", f"--input-value=sr={RATE}"]
    compiled = run_tool("tcc", model, "-q", "-o", package, *flags)
    if not tally.check("silero compiles", compiled.code == 0, first_line(compiled)):
        return
    library = capi.Library(LIBRARY)
    context = capi.Context(library, library.open(package))
    rate = np.array(RATE, np.int64)
    ours = [context.run({"x": x, "sr": rate}, ["output"])[0] for x in make_sound()]
    worst = np.abs(np.stack(ours) - np.load(KEPT)["outputs"]).max()
    tally.check("silero", worst <= TOLERANCE, f"differs by {worst:.1e}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        wheels.extract(WHEEL, FILE, folder)
        model = os.path.join(folder, os.path.basename(FILE))
        if "--make" in sys.argv:
            return make(model)
        tally = Tally()
        check(tally, model, folder)
    tally.close()


if __name__ == "__main__":
    main()
