"""Batches that a GPU takes while it works on the one before: copies.py

By the clocks of an emulated GPU's streams all bytes of a batch are copied while the kernels of the
update before run, and those of an update begin as soon as those of the last one end.
"""

import os
import tempfile

import numpy as np

import harness
from training import run

STEPS, BATCH, FEATURES = 10, 64, 1024


def main():
    tally = harness.Tally()
    with tempfile.TemporaryDirectory() as folder:
        times = f"{folder}/times"
        run.save_mlp(f"{folder}/model.onnx", inputs=FEATURES)
        with open(f"{folder}/recipe.toml", "w", encoding="utf-8") as file:
            file.write(run.RECIPE.format(micro=BATCH))
        harness.call("tcc", f"{folder}/model.onnx", "-q", f"--train={folder}/recipe.toml", "--target=cuda",
                     "--arch=none", "--emulate", "-o", f"{folder}/model.tcc", target="cpu")  # fmt: skip
        random = np.random.default_rng(0)
        np.savez(f"{folder}/data.npz", x=random.random((3 * BATCH, FEATURES), "f4"),
                 labels=random.integers(0, run.CLASSES, 3 * BATCH))  # fmt: skip
        harness.call("tcc-run", "train", f"{folder}/model.tcc", "--data", f"npz:{folder}/data.npz", "--steps",
                     STEPS, "-q", "--device", "emulated", target="cpu",
                     env=os.environ | {"TCC_EMULATED_TIMES": times})  # fmt: skip
        with open(times, encoding="utf-8") as file:
            rows = [line.split() for line in file]
    copies = [(float(begin), float(end)) for kind, size, begin, end in rows
              if kind == "copy" and int(size) == BATCH * FEATURES * 4]  # fmt: skip
    launches = [(float(begin), float(end)) for kind, _, begin, end in rows if kind == "launch"]
    count = sum(begin >= copies[0][1] for begin, _ in launches) // STEPS  # but for those of `init`
    tally.check("a copy for each update", len(copies) == STEPS and count > 0, (len(copies), count))
    updates = [launches[-STEPS * count :][i * count : (i + 1) * count] for i in range(STEPS)]
    for i in range(2, STEPS):
        begin, end = updates[i - 1][0][0], updates[i - 1][-1][1]
        # The first of the kernels begins a launch of a graph later, a microsecond.
        under = begin - 2 <= copies[i][0] and copies[i][1] <= end and copies[i][1] - copies[i][0] > 200
        tally.check(f"batch {i} is copied under update {i - 1}", under, (copies[i], begin, end))
        gap = updates[i][0][0] - end
        tally.check(f"update {i} follows at once", 0 <= gap < 10, gap)
    tally.close()


if __name__ == "__main__":
    main()
