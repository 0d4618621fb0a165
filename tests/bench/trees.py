"""This checkout beside another one that is built: what a change of the compiler moved.

  trees.py OTHER [--models PATTERNS] [--precisions f32,bf16] [--kinds models,steps]
           [--threads N] [--rounds N] [--seconds S] [--json FILE] [--table FILE]

Each side compiles the models of peers.py (in bf16 those that it has in bf16) and the
steps of train.py with its own compiler and runs them with its own runtime and scripts,
in turns. A ratio is the other's time / this one's: above 1, this one is faster. Beside
stand kernels, arena and the compiler's seconds, and how far results differ: outputs as
part of the largest, losses of the first steps as part of the loss; 0 means the same bits.
"""

import functools
import json
import os
import statistics
import sys
import tempfile

import numpy as np
from bench import peers, reports, subjects, torch_models, workloads
from bench.train import label
from bench.turns import Worker, take_turns
from harness import BIN, call
from models.cases import data_sets
from models.run import compile_flags

SIDES = "tcc", "other"  # as take_turns names them
KINDS = "models", "steps"
# Of a compilation: key, unit, format.
FACTS = ("kernels", 1, "d"), ("arena_bytes", 1e-6, ".1f"), ("seconds", 1, ".1f")


def make_parser():
    parser = reports.make_parser()
    parser.add_argument("other")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--precisions", default="f32,bf16")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.6)
    return parser


def tools(root):
    """The folder of a checkout's tools; None stands for this one."""
    return os.path.join(root, "build/bin") if root else BIN


def compile_both(roots, folder, *arguments):
    """The packages SIDE/PRECISION.tcc of a folder come from `arguments`; what is known
    of the compilations: other_kernels / tcc_kernels and the like."""
    facts = {}
    for side, root in roots.items():
        os.makedirs(os.path.join(folder, side), exist_ok=True)
        target = [arg.replace("SIDE", side) for arg in map(str, arguments)]
        with tempfile.TemporaryDirectory() as cache:  # with no code yet
            cold = {**os.environ, "XDG_CACHE_HOME": cache}
            report = json.loads(call("tcc", *target, "--json", folder=tools(root), env=cold))
        for key, _, _ in FACTS:
            facts[f"{side}_{key}"] = report[key]
    return facts


def differences(folder, packages, data_set):
    """The largest of outputs, as part of the largest element."""
    outputs = []
    for side, (root, package) in packages.items():
        made = os.path.join(folder, side)
        flags = ["--inputs-dir", data_set, "--output-dir", made, "--threads", 1]
        call("tcc-run", "run", package, *flags, folder=tools(root))
        names = sorted(name for name in os.listdir(made) if name.endswith(".npy"))
        outputs.append([np.load(os.path.join(made, name)) for name in names])
    worst = 0.0
    for ours, theirs in zip(*outputs, strict=True):
        if ours.tobytes() != theirs.tobytes():
            ours, theirs = ours.astype(np.float64), theirs.astype(np.float64)
            worst = np.maximum(worst, abs(ours - theirs).max() / abs(theirs).max())
    return float(worst)  # NaN where one has a NaN


def measure_model(name, precision, maker, case, roots, options):
    with tempfile.TemporaryDirectory() as folder:
        made = maker.make(name + ".b1" if maker is subjects.exports else name, case)
        model, data_set = os.path.join(made, "model.onnx"), data_sets(made)[0]
        flags = compile_flags({**case, "precision": precision})
        path = os.path.join(folder, "SIDE", "model.tcc")
        row = {"model": label(name, precision)}
        row |= compile_both(roots, folder, model, "-o", path, *flags)
        packages = {side: (root, path.replace("SIDE", side)) for side, root in roots.items()}
        row["difference"] = differences(folder, packages, data_set)
        workers = {
            side: Worker(
                "worker.py", "tcc", model, package, data_set, options.threads, precision, root=root
            )
            for side, (root, package) in packages.items()
        }
        return take_turns(row, workers, options)


def measure_step(name, precision, roots, options):
    with tempfile.TemporaryDirectory() as folder:
        torch_models.export(name, folder)
        recipe, model = (os.path.join(folder, file) for file in ("recipe.toml", "model.onnx"))
        with open(recipe, "w") as stream:
            stream.write(workloads.recipe(name, precision))
        path = os.path.join(folder, "SIDE", f"{precision}.tcc")
        row = {"model": label(name, precision) + " step"}
        row |= compile_both(roots, folder, model, f"--train={recipe}", "-o", path)
        workers = {
            side: Worker(
                "trainer.py", "tcc", name, os.path.join(folder, side), options.threads, precision,
                root=root,
            )
            for side, root in roots.items()
        }  # fmt: skip
        row = take_turns(row, workers, options)
        ours, theirs = (np.array(row[f"{side}_losses"]) for side in SIDES)
        row["difference"] = float(abs(ours / theirs - 1).max())
        return row


def choose(options):
    """name: what measures it."""
    chosen = {}
    for precision in options.precisions.split(","):
        narrow = precision != "f32"
        if "models" in options.kinds:
            for name, subject in subjects.whole_models().items():
                if not narrow or name in peers.BF16_SUBJECTS and peers.has_bf16():
                    measure = functools.partial(measure_model, name, precision, *subject)
                    chosen[label(name, precision)] = measure
        if "steps" in options.kinds:
            for name in workloads.WORKLOADS:
                measure = functools.partial(measure_step, name, precision)
                chosen[label(name, precision) + " step"] = measure
    return {name: chosen[name] for name in subjects.matching(chosen, options.models or "*")}


def table(rows):
    header = ["model", "ms", "other ms", "ratio", "difference"]
    header += ["kernels", "arena MB", "compile s"]
    lines = []
    for row in rows:
        mark = " (disturbed)" if row["disturbed"] else ""
        line = [row["model"] + mark, f"{row['tcc']:.2f}", f"{row['other']:.2f}"]
        line += [f"{row['other_ratio']:.3f}", f"{row['difference']:.1e}"]
        for key, scale, form in FACTS:
            ours, theirs = (f"{row[f'{side}_{key}'] * scale:{form}}" for side in SIDES)
            line.append(ours if ours == theirs else f"{theirs} -> {ours}")
        lines.append(line)
    return reports.markdown(header, lines)


def main():
    options = make_parser().parse_args()
    roots = dict(zip(SIDES, (None, os.path.abspath(options.other)), strict=True))
    if not os.path.exists(os.path.join(tools(roots["other"]), "tcc")):
        sys.exit(f"trees: {options.other} has no build/bin/tcc: run its tools/build")
    chosen = choose(options)
    rows, failed = subjects.measure_all(
        {name: (run,) for name, run in chosen.items()},
        lambda name, run: run(roots, options),
        lambda row: table([row]).splitlines()[-1],
    )
    text = table(rows)
    if rows:
        ratios = [row["other_ratio"] for row in rows]
        mean, least = statistics.geometric_mean(ratios), min(ratios)
        text += f"\nother / this: geometric mean {mean:.3f}, least {least:.3f} of {len(rows)}\n"
    print("\n" + text, end="")
    reports.write(options, rows, text)
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
