"""Plans of a CPU's products that were measured beside the compiler's own: tune.py [--threads N]

Matrix products of 20 shapes, each a model: skinny, deep, wide, with few channels. `tcc-run tune`
times the plans of `--candidates=8`; another one than the compiler's is compiled (`--tune-cache`) and
timed once more in turns with the default package, as whole runs. A ratio above 1 is a gain.
"""

import argparse
import json
import os
import statistics
import tempfile

import harness
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

# Rows, columns and depth.
SHAPES = {
    "skinny": [(1, 4096, 1024), (4, 4096, 1024), (16, 1024, 4096), (32, 512, 512), (64, 64, 4096)],
    "deep": [(128, 128, 8192), (256, 256, 4096), (64, 256, 16384), (384, 64, 4096), (96, 96, 2048)],
    "wide": [(128, 8192, 256), (512, 3072, 768), (197, 3072, 768), (256, 4096, 128), (128, 768, 768)],
    "few channels": [(12544, 32, 27), (12544, 64, 64), (3136, 24, 96), (50176, 16, 32), (3136, 128, 16)],
}  # fmt: skip


def save(path, m, n, k):
    weight = np.random.default_rng(0).standard_normal((k, n)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])], "product",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [m, k])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [m, n])],
        [numpy_helper.from_array(weight, "w")],
    )  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]), path)


def time_run(package, threads):
    flags = ["--threads", threads, "--random-inputs", "--duration", 0.1, "--json"]
    return json.loads(harness.call("tcc-run", "bench", package, *flags))["med_ms"]


def measure(folder, shape, threads, rounds):
    """Gains of a run: what tune promises, and the default's time over the tuned one's."""
    model, plain, many, tuned, cache = (
        os.path.join(folder, name) for name in ("m.onnx", "p.tcc", "c.tcc", "t.tcc", "fast")
    )
    save(model, *shape)
    harness.call("tcc", model, "-q", "-o", plain)
    harness.call("tcc", model, "-q", "-o", many, "--candidates=8")
    if os.path.exists(cache):
        os.remove(cache)
    flags = ["--threads", threads, "--tune-cache", cache, "--json"]
    works = json.loads(harness.call("tcc-run", "tune", many, *flags))["works"]
    if works[0]["fastest_us"] == works[0]["kernel_us"]:
        return 1, 1
    harness.call("tcc", model, "-q", "-o", tuned, f"--tune-cache={cache}")
    ratios = [time_run(plain, threads) / time_run(tuned, threads) for _ in range(rounds)]
    return works[0]["kernel_us"] / works[0]["fastest_us"], statistics.median(ratios)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    print(f"threads: {options.threads}")
    gains = []
    with tempfile.TemporaryDirectory() as folder:
        for kind, shapes in SHAPES.items():
            for shape in shapes:
                promised, gain = measure(folder, shape, options.threads, options.rounds)
                gains.append(gain)
                print(f"{kind:12} {shape}: measured {promised:.3f}, again {gain:.3f}", flush=True)
    print(f"geometric mean {statistics.geometric_mean(gains):.3f}, least {min(gains):.3f}")


if __name__ == "__main__":
    main()
