"""Trains what torch.export saved beside the ONNX files of the same models.

The losses are those of the ONNX route, and so are the names and values of what is
exported.
"""

import tempfile

import numpy as np
from harness import Failure, Tally
from safetensors.numpy import load_file
from training import cases, parity

# Kernels and their order are the same; sums of another order would be 1e-6 off.
TOLERANCE = 1e-6


def train(folder, model, suffix):
    case = cases.single(model)
    package = parity.compile_model(folder, model, case.optimizer, "f32", suffix=suffix)
    losses, written = parity.train(package, case)
    return np.array(losses), load_file(written + "/export")


def check(tally, folder, model):
    losses, tensors = train(folder, model, "onnx")
    own_losses, own_tensors = train(folder, model, "pt2")
    error = np.abs(own_losses / losses - 1).max()
    print(f"{model}: losses differ by {error:.1e}", flush=True)
    tally.check(f"{model} losses", error <= TOLERANCE, f"differ by {error:.1e}")
    # Of tied tensors the program knows all names.
    missing = sorted(set(tensors) - set(own_tensors))
    if not tally.check(f"{model} names", not missing, f"without {missing}"):
        return
    worst = max(parity.distance(own_tensors[name], tensors[name]) for name in tensors)
    tally.check(f"{model} tensors", worst <= 10 * TOLERANCE, f"differ by {worst:.1e}")


def main():
    tally = Tally()
    with tempfile.TemporaryDirectory() as folder:
        for model in cases.PROGRAMS:
            try:
                check(tally, folder, model)
            except Failure as failure:
                tally.check(model, False, failure)
    tally.close()


if __name__ == "__main__":
    main()
