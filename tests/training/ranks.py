"""Training by several ranks is training by one: ranks.py [WORLD...]

One package is trained by one process and by WORLD (2), which take the same batches:
what a rank accumulates, the process accumulates WORLD times as often. In f64 losses
and final tensors agree but for the order of sums. Each transport is tried; several
ranks have the same bits each time, and two ranks have them whatever moves the bytes. A
run whose number of ranks changes makes the updates of one that has one rank.
"""

import collections
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import helper
from safetensors.numpy import load_file

import harness
import run
from training import cases

STEPS = 50
REPEATS = 20

# What starts `tcc-run` on WORLD ranks; where there is nothing, it does so itself.
LAUNCHERS = {
    "gloo": [],
    "openmpi": ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-np", "WORLD"],
    "mpich": ["mpiexec.mpich", "-n", "WORLD"],
}

Case = collections.namedtuple("Case", "name model data recipe flags accumulate tolerance")

HEAD = """
seed = 5
[loss]
kind = "{loss}"
[precision]
compute = "f64"
{precision}
[parallel]
data = "auto"
bucket = "{bucket}"
[optimizer]
{optimizer}
"""
SGD = 'kind = "sgd"\nlr = 0.05\nmomentum = 0.9'
ADAMW = 'kind = "adamw"\nlr = 0.004\n[params]\nema = 0.9'


def recipe(optimizer, more="", loss="cross_entropy", precision="", bucket="8KiB"):
    return HEAD.format(loss=loss, precision=precision, bucket=bucket, optimizer=optimizer) + more


def fixture(name):
    return os.path.join(cases.FIXTURES, name)


def save_dropping(path):
    """Linear, relu, dropout, linear."""
    nodes = [
        helper.make_node("MatMul", ["x", "first"], ["a"]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Dropout", ["b", "ratio", "yes"], ["c"], name="drop"),
        helper.make_node("MatMul", ["c", "second"], ["logits"]),
    ]
    weights = {"first": run.normal(64, 32), "second": run.normal(32, 10)}
    constants = {"ratio": np.float32(0.25), "yes": np.array(True)}
    run.save_graph(path, nodes, weights | constants, [64], "logits", ["batch", 10])


def list_cases(folder):
    digits, text = fixture("digits.npz"), fixture("text.npz")
    save_dropping(f"{folder}/dropping.onnx")
    mlp, flags = fixture("mlp_digits.onnx"), ["--dim", "batch=16"]
    clip = "[batch]\nclip_norm = 0.5\n"
    yield Case("mlp", mlp, digits, recipe(ADAMW, clip), flags, 1, 1e-12)
    scale = recipe(SGD, precision='loss_scale = "dynamic"')
    yield Case("scaled", mlp, digits, scale, flags, 4, 1e-12)
    yield Case("cnn", fixture("cnn_digits.onnx"), digits, recipe(SGD), [], 4, 1e-12)
    gpt2 = recipe(ADAMW, clip, loss="causal_lm", bucket="64KiB")
    yield Case("gpt2", fixture("gpt2_tiny.onnx"), text, gpt2, [], 1, 1e-9)
    # 17 batches of 30 and one of 2 samples: the last is filled up with what weighs nothing.
    tail = recipe(SGD, '[batch]\nmicro = 30\nlast = "pad"\n')
    yield Case("dropout", f"{folder}/dropping.onnx", digits, tail, [], 1, 1e-12)


def train(
    package, case, folder, world, accumulate, launcher=(), steps=STEPS, flags=(), **options
):
    """The losses of all updates, and the tensors at the end."""
    folder = tempfile.mkdtemp(dir=folder)
    command = ["train", package, "--data", "npz:" + case.data, "-q", "--threads", 1]
    command += ["--steps", steps, "--log-dir", folder, "--checkpoint-dir", folder]
    command += ["--set", f"accumulate={accumulate}", *flags]
    if world > 1 and not launcher:
        command += ["--ranks", world]
    prefix = [str(world) if word == "WORLD" else word for word in launcher]
    command = [*prefix, os.path.join(harness.BIN, "tcc-run"), *map(str, command)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, **options)
    if done.returncode:
        raise harness.Failure(f"{' '.join(command)}: {done.returncode}: {done.stderr}")
    return read_run(folder, steps)


def read_run(folder, steps):
    with open(f"{folder}/metrics.jsonl", encoding="utf-8") as file:
        losses = [json.loads(line)["loss"] for line in file]
    return np.array(losses), load_file(f"{folder}/step-{steps}/state.safetensors")


def distance(ours, expected):
    scale = np.abs(expected).max()
    return np.abs(ours - expected).max() / scale if scale else np.abs(ours).max()


def compare(tally, case, ours, expected):
    """Sums differ in their order; counters, masks and places must not."""
    off = distance(ours[0], expected[0])
    tally.check(f"{case.name}: losses", off <= case.tolerance, str(off))
    tally.check(f"{case.name}: names", ours[1].keys() == expected[1].keys())
    for name, tensor in expected[1].items():
        if name in ("step/world", "step/rank") or name.startswith("set/"):
            continue
        off = distance(ours[1][name].astype("f8"), tensor.astype("f8"))
        bound = case.tolerance if tensor.dtype.kind == "f" else 0
        tally.check(f"{case.name}: {name}", off <= bound, str(off))


def are_equal(a, b):
    tensors = zip(a[1].items(), b[1].items(), strict=True)
    return np.array_equal(a[0], b[0]) and all(
        x == y and np.array_equal(v, w) for (x, v), (y, w) in tensors
    )


def compile_case(case, folder, suffix=""):
    package = f"{folder}/{case.name}{suffix}.tcc"
    with open(package + ".toml", "w", encoding="utf-8") as file:
        file.write(case.recipe)
    harness.call("tcc", case.model, f"--train={package}.toml", *case.flags, "-q",
                 "-o", package)  # fmt: skip
    return package


def test_parity(tally, folder, world):
    for case in list_cases(folder):
        package = compile_case(case, folder)
        alone = train(package, case, folder, 1, case.accumulate * world)
        ranks = train(package, case, folder, world, case.accumulate)
        compare(tally, case, ranks, alone)
        if case.name != "gpt2" and world == 2:
            continue
        for transport, launcher in LAUNCHERS.items():
            again = train(package, case, folder, world, case.accumulate, launcher)
            compare(tally, case, again, alone)
            same = are_equal(again, ranks) or (world > 2 and transport != "gloo")
            tally.check(f"{case.name}: the same bits by {transport}", same)


def test_repeats(tally, folder, world):
    """What moves the bytes, and when, changes no bit."""
    case = next(list_cases(folder))
    package = compile_case(case, folder, "-repeats")
    for transport, launcher in LAUNCHERS.items():
        runs = [train(package, case, folder, world, 1, launcher) for _ in range(REPEATS)]
        same = all(are_equal(runs[0], other) for other in runs[1:])
        tally.check(f"{REPEATS} runs by {transport} have the same bits", same)


def test_norms(tally, folder, world):
    """A batch norm over all ranks is one over a batch of all their samples."""
    model, data = f"{folder}/norms.onnx", f"{folder}/norms.npz"
    run.save_cnn(model)
    count = 12 * 8 * world
    np.savez(data, x=run.RANDOM.standard_normal((count, 2, 6, 5)).astype("f4"),
             labels=run.RANDOM.integers(0, run.CLASSES, count))  # fmt: skip
    results = []
    for ranks, micro in ((1, 8 * world), (world, 8)):
        text = recipe(SGD, f"[batch]\nmicro = {micro}\n[batchnorm]\nsync = true\n")
        case = Case("norms", model, data, text, [], 1, 1e-8)
        package = compile_case(case, folder, f"-{ranks}")
        results.append(train(package, case, folder, ranks, 1))
    alone, ranks = results
    for name in ("step/first", "step/place"):  # batches of other sizes
        ranks[1][name] = alone[1][name]
    compare(tally, case, ranks, alone)


def test_elastic(tally, folder):
    """A run goes on with other numbers of ranks: each update is of the same 12 batches."""
    text = recipe(ADAMW, "[batch]\nglobal = 192\nmicro = 16\nclip_norm = 0.5\n")
    case = Case("elastic", fixture("mlp_digits.onnx"), fixture("digits.npz"), text, [], 1, 1e-12)
    package = compile_case(case, folder)
    command = ["tcc-run", "train", package, "--data", "npz:" + case.data, "-q", "--threads", "1"]
    worlds, updates = (1, 2, 4, 3, 1), 6
    losses = []
    for run_of, chain in (("alone", (1,) * len(worlds)), ("elastic", worlds)):
        place = f"{folder}/{run_of}"
        for i, world in enumerate(chain):
            steps = str(updates * (i + 1))
            flags = ["--steps", steps, "--log-dir", place, "--checkpoint-dir", place]
            harness.call(*command, *flags, "--resume-if-any", "--ranks", str(world))
        with open(f"{place}/metrics.jsonl", encoding="utf-8") as file:
            losses.append(np.array([json.loads(line)["loss"] for line in file]))
        losses.append(load_file(f"{place}/step-{steps}/state.safetensors"))
    alone, last, elastic, last_elastic = losses
    tally.check("elastic: updates", len(elastic) == updates * len(worlds))
    compare(tally, case, (elastic, last_elastic), (alone, last))
    refused = harness.run_tool(*command, "--steps", "1", "--ranks", "5")
    said = "12 batches, which 5 ranks cannot share; these numbers of ranks can: 1, 2, 3, 4, 6, 12"
    tally.check("elastic: 5 ranks", refused.code == 2 and said in refused.err, refused.err)
    refused = harness.run_tool(*command, "--steps", "1", "--set", "global=100")
    said = "global is 100 samples, expected a multiple of the batch of 16"
    tally.check("elastic: 100 samples", refused.code == 2 and said in refused.err, refused.err)


def test_narrow_gradients(tally, folder):
    """Ranks cannot sum them: who did not ask for ranks is told, who did is refused."""
    text = '[loss]\nkind = "cross_entropy"\n[optimizer]\nkind = "sgd"\nlr = 0.1\n'
    half, model = onnx.TensorProto.FLOAT16, f"{folder}/narrow.onnx"
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])], "narrow",
        [helper.make_tensor_value_info("x", half, [4, 8])],
        [helper.make_tensor_value_info("y", half, [4, 3])],
        [onnx.numpy_helper.from_array(run.normal(8, 3).astype("f2"), "w")],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 18)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), model)
    asked = '[parallel]\ndata = "auto"\n'
    for more, code, said in (("", 0, "one rank alone trains this package: ranks add up f32"),
                             (asked, 4, "parallel.data = 'auto': ranks add up f32")):  # fmt: skip
        with open(f"{folder}/narrow.toml", "w", encoding="utf-8") as file:
            file.write(text + more)
        done = harness.run_tool("tcc", model, f"--train={folder}/narrow.toml", "-o",
                                f"{folder}/narrow.tcc")  # fmt: skip
        ok = done.code == code and said in done.err
        tally.check(f"narrow gradients, exit {code}", ok, f"{done.code}: {done.err}")


def test_report(tally, folder):
    """What a run says of its memory, its ranks' waits and its buckets."""
    text = recipe(ADAMW, loss="causal_lm", bucket="16KiB")
    case = Case("report", fixture("gpt2_tiny.onnx"), fixture("text.npz"), text, [], 1, 0)
    compile_case(case, folder)
    why = f"{folder}/why.json"
    plan = json.loads(harness.call("tcc", case.model, f"--train={folder}/report.tcc.toml",
                                   "--threads=1", "-q", "--json", "--dump-decisions", why,
                                   "-o", f"{folder}/r.tcc"))  # fmt: skip
    with open(why, encoding="utf-8") as file:
        buckets = [row for row in json.load(file) if row["pass"] == "buckets"]
    for world, key in ((1, "memory_bytes"), (2, "memory_bytes_of_ranks")):
        place = f"{folder}/report-{world}"
        done = harness.call("tcc-run", "train", f"{folder}/r.tcc", "--data", "npz:" + case.data,
                            "--threads", 1, "--steps", 3, "--ranks", world, "--log-dir", place,
                            "--trace", place + ".json", "--json", "-q")  # fmt: skip
        row = json.loads(done)
        found = row["memory_bytes"], plan[key]["total"]
        tally.check(f"{world} ranks: planned bytes", found[0] == found[1], str(found))
        with open(f"{place}/metrics.jsonl", encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        name = "exposed_communication_s"
        said = [name in line and line[name] >= 0 for line in [*lines, row]]
        tally.check(f"{world} ranks: waits", said == [world > 1] * 4, str(said))
        with open(place + ".json", encoding="utf-8") as file:
            events = [event for event in json.load(file)["traceEvents"] if event["ph"] == "X"]
        sums = [event["name"] for event in events if event["name"].startswith("AllReduce")]
        ok = len(sums) == (3 * len(buckets) if world > 1 else 0) and len(buckets) > 2
        ok &= all(event["tid"] == 1 for event in events if event["name"] in sums)
        tally.check(f"{world} ranks: a trace of buckets", ok, str((sums, len(buckets))))


def test_budget(tally, folder):
    """A budget that one rank keeps and several exceed is refused, with what each needs."""
    model, text = f"{folder}/budget.onnx", recipe(SGD, '[batch]\nmicro = 8\n[batchnorm]\nsync = '
                                                  'true\n[memory]\ncheckpoint = "none"\n')  # fmt: skip
    run.save_cnn(model)
    with open(f"{folder}/budget.toml", "w", encoding="utf-8") as file:
        file.write(text)
    command = ["tcc", model, f"--train={folder}/budget.toml", "--threads=1", "-q", "--check"]
    plan = json.loads(harness.call(*command, "--json"))
    alone, several = (plan[key]["total"] for key in ("memory_bytes", "memory_bytes_of_ranks"))
    tally.check("several ranks need more", alone < several, f"{alone}, {several}")
    fits = harness.run_tool(*command, f"--memory-budget={several}")
    tally.check("a budget of several ranks", fits.code == 0, fits.err)
    refused = harness.run_tool(*command, f"--memory-budget={several - 1}")
    said = (f"needs {several} bytes, which is more than the memory budget; of one rank "
            f"(parallel.data = 1) it needs {alone}")  # fmt: skip
    tally.check("a budget of one rank", refused.code == 7 and said in refused.err, refused.err)


def main(worlds):
    tally = harness.Tally()
    with tempfile.TemporaryDirectory() as folder:
        test_elastic(tally, folder)
        test_report(tally, folder)
        test_narrow_gradients(tally, folder)
        test_budget(tally, folder)
    for world in worlds:
        with tempfile.TemporaryDirectory() as folder:
            test_parity(tally, folder, world)
            test_norms(tally, folder, world)
            if world == 4:
                test_repeats(tally, folder, world)
    tally.close()


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]] or [2])
