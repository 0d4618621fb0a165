"""What models cost beside their runs: the runtime itself, loading, memory.

  limits.py [--models PATTERNS] [--rounds N] [--json FILE] [--table FILE]

Prints the runtime's overhead, then a row for each model. Times are those of the
processes themselves on one thread, so that other load counts only by what it
does to caches and frequency; each is the median of the rounds.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile

from bench import reports
from bench.subjects import compile_subject, measure_all, select_subjects
from harness import BIN, ROOT, run_tool

COLUMNS = {
    "call": ("call ms", "{:.3f}"),
    "onnxruntime_call": ("ONNX Runtime", "{:.3f}"),
    "load": ("load ms", "{:.1f}"),
    "load_checked": ("with digests", "{:.1f}"),
    "onnxruntime_load": ("ONNX Runtime", "{:.1f}"),
    "peak_mb": ("peak MB", "{:.1f}"),
    "onnxruntime_peak_mb": ("ONNX Runtime", "{:.1f}"),
    "two_contexts": ("two contexts", "{:.2f}x"),
    "second_mb": ("the second MB", "{:.1f}"),
}


def probe(kind, paths):
    command = [sys.executable, os.path.join(ROOT, "tests/bench/probe.py"), kind, *paths]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{kind}: {(done.stderr.splitlines() or ['no message'])[-1]}")
    return json.loads(done.stdout)


def peak_megabytes(package, data_set):
    run = run_tool(
        "tcc-run", "bench", package, "--inputs-dir", data_set, "--iterations", 3,
        "--warmup", 0, "--threads", 1, "--json",
    )  # fmt: skip
    return json.loads(run.out)["peak_bytes"] / 1e6


def measure(name, maker, case, options, work):
    """A row of COLUMNS; engines take turns."""
    paths = compile_subject(name, maker, case, work)
    rounds = []
    for _ in range(options.rounds):
        ours, checked = probe("load", paths), probe("load-checked", paths)
        theirs = probe("load-onnxruntime", paths)
        rounds.append(
            {
                "call": ours["median"],
                "onnxruntime_call": theirs["median"],
                "load": ours["first"] - ours["median"],
                "load_checked": checked["first"] - checked["median"],
                "onnxruntime_load": theirs["first"] - theirs["median"],
                "peak_mb": peak_megabytes(*paths[1:]),
                "onnxruntime_peak_mb": probe("memory-onnxruntime", paths)["bytes"] / 1e6,
            }
        )
    row = {key: statistics.median(r[key] for r in rounds) for key in rounds[0]}
    both = probe("contexts", paths)
    row.update(two_contexts=both["ratio"], second_mb=both["bytes"] / 1e6)
    os.remove(paths[1])
    return {"model": name, **row}


def table(rows):
    header = ["model", *(title for title, _ in COLUMNS.values())]
    forms = {key: form for key, (_, form) in COLUMNS.items()}
    lines = [[r["model"], *(f.format(r[k]) for k, f in forms.items())] for r in rows]
    return reports.markdown(header, lines)


def main():
    options = reports.make_parser().parse_args()
    overhead = subprocess.run(
        [os.path.join(BIN, "overhead-bench")], capture_output=True, text=True, check=True
    ).stdout
    print(overhead + "\n" + table([]), end="")
    subjects = select_subjects(options.models)
    with tempfile.TemporaryDirectory() as work:
        rows, failed = measure_all(
            subjects,
            lambda *subject: measure(*subject, options, work),
            lambda row: table([row]).splitlines()[-1],
        )
    reports.write(options, rows, table(rows), overhead=overhead)
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
