"""Whole models on the CPU beside their peers.

  peers.py [--models PATTERNS] [--peers ENGINES] [--threads N] [--rounds N]
            [--seconds S] [--json FILE] [--table FILE]

Engines take turns in processes pinned to the first N cores, all in f32 on static
shapes; on a CPU with AVX512-BF16 also in bf16, beside tcc's own f32. On one
thread the time is what the process itself used. A round counts if others took
little of those cores while it ran; a ratio is the median over the rounds of
peer's time / tcc's. The share of the peak relates the model's operations, as the
compiler counts them, to an FMA loop that runs in each round.

torch.compile runs the modules that exports were made from. IREE (the packages
iree-base-compiler and iree-base-runtime) is measured on one thread.
"""

import json
import os
import sys
import tempfile

from bench import reports
from bench.subjects import compile_subject, measure_all, select_subjects
from bench.turns import Worker, take_turns
from harness import run_tool

TITLES = {
    "tcc": "tcc",
    "tcc_f32": "tcc in f32",
    "onnxruntime": "ONNX Runtime",
    "openvino": "OpenVINO",
    "torch": "torch.compile",
    "iree": "IREE",
}
# What is measured in bf16 too, and beside what.
BF16_SUBJECTS = ("vit_b_16", "bert_base")
BF16_PEERS = ("tcc_f32", "openvino")


def count_flops(package, data_set):
    run = run_tool(
        "tcc-run", "bench", package, "--inputs-dir", data_set, "--iterations", 1,
        "--threads", 1, "--profile", "--json",
    )  # fmt: skip
    rows = json.loads(run.out)["profile"]
    return sum(row["flops"] for row in rows)


def measure(name, maker, case, options, work):
    """A JSON row for one model."""
    model, package, data_set = compile_subject(name, maker, case, work)
    workers = {
        engine: Worker("worker.py", engine, model, package, data_set, options.threads, "f32")
        for engine in ("tcc", *options.peers)
    }
    flops = count_flops(package, data_set)
    row = take_turns({"model": name, "gflop": flops * 1e-9}, workers, options)
    os.remove(package)
    return row


def measure_bf16(name, maker, case, options, work):
    """Its row in bf16."""
    narrow = {**case, "precision": "bf16"}
    model, package, data_set = compile_subject(name, maker, narrow, work)
    os.rename(package, package + ".bf16")
    _, wide, _ = compile_subject(name, maker, case, work)
    packages = {"tcc": ("tcc", package + ".bf16"), "tcc_f32": ("tcc", wide)}
    workers = {}
    for engine in ("tcc", *BF16_PEERS):
        kind, path = packages.get(engine, (engine, wide))
        arguments = (kind, model, path, data_set, options.threads, "bf16")
        workers[engine] = Worker("worker.py", *arguments)
    flops = count_flops(wide, data_set)
    row = {"model": name + " bf16", "gflop": flops * 1e-9}
    row = take_turns(row, workers, options)
    for path in (wide, package + ".bf16"):
        os.remove(path)
    return row


def has_bf16():
    with open("/proc/cpuinfo") as stream:
        return "avx512_bf16" in stream.read()


def main():
    options = reports.read_options(TITLES, {}, 0.5)
    subjects = select_subjects(options.models)
    with tempfile.TemporaryDirectory() as work:
        rows, failed = measure_all(
            subjects,
            lambda *subject: measure(*subject, options, work),
            lambda row: reports.times([row], TITLES, options.peers).splitlines()[-1],
        )
        narrow = {name: subjects[name] for name in BF16_SUBJECTS if name in subjects}
        if narrow and not has_bf16():
            print("bf16: not available: this CPU lacks AVX512-BF16")
            narrow = {}
        failed += measure_all(
            narrow,
            lambda *subject: measure_bf16(*subject, options, work),
            lambda row: reports.times([row], TITLES, BF16_PEERS),
        )[1]
    reports.write(options, rows, reports.times(rows, TITLES, options.peers))
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
