"""Trains what torch.export and torch.jit saved beside the ONNX files of the models.

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


def check(tally, folder, model, suffix, losses, tensors):
    name = f"{model}.{suffix}"
    own_losses, own_tensors = train(folder, model, suffix)
    error = np.abs(own_losses / losses - 1).max()
    print(f"{name}: losses differ by {error:.1e}", flush=True)
    tally.check(f"{name} losses", error <= TOLERANCE, f"differ by {error:.1e}")
    # Of tied tensors a program knows all names, the ONNX file one.
    missing = sorted(set(tensors) - set(own_tensors))
    if not tally.check(f"{name} names", not missing, f"without {missing}"):
        return
    known = set(tensors) | set(cases.TIED.get(model, ()))
    more = sorted(known ^ set(own_tensors))
    tally.check(f"{name} tied names", not more, f"{more} differ")
    worst = max(parity.distance(own_tensors[key], tensors[key]) for key in tensors)
    tally.check(f"{name} tensors", worst <= 10 * TOLERANCE, f"differ by {worst:.1e}")


def main():
    tally = Tally()
    with tempfile.TemporaryDirectory() as folder:
        for model in cases.PROGRAMS:
            try:
                losses, tensors = train(folder, model, "onnx")
                for suffix in ("pt2", "pt"):
                    check(tally, folder, model, suffix, losses, tensors)
            except Failure as failure:
                tally.check(model, False, failure)
    tally.close()


if __name__ == "__main__":
    main()
