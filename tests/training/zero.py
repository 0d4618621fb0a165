"""Ranks that divide the update make that of ranks which do not: zero.py [WORLD] [--long]

Each cell is a recipe that is compiled with `zero = 1` for WORLD (2) ranks and with
`zero = 0`, and is trained by as many. Two ranks have the same bits, as there is one
sum of two numbers, but where gradients are clipped: the norm is added up in another
order. With `exact` any number of them has, also where they are clipped. What is
refused is refused by name.
"""

import collections
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np
from onnx import helper
from safetensors.numpy import load_file

import harness
import run
from processes import ENVIRONMENT, find_free_port
from training import ranks

STEPS = 12
BOUNDS = {"f64": 1e-12, "f32": 1e-5, "bf16": 2e-2, "f16": 2e-2}

# Keys of the recipe by table, and the setting `accumulate`.
Cell = collections.namedtuple("Cell", "name keys accumulate model compute", defaults=("f64",))

ADAMW = {"optimizer.kind": "adamw", "optimizer.lr": 0.004}
OPTIMIZERS = {
    "sgd": {"optimizer.kind": "sgd", "optimizer.lr": 0.05},
    "momentum": {"optimizer.kind": "sgd", "optimizer.lr": 0.05, "optimizer.momentum": 0.9},
    "adam": {"optimizer.kind": "adam", "optimizer.lr": 0.004},
    "lion": {"optimizer.kind": "lion", "optimizer.lr": 0.0008},
    "rmsprop": {"optimizer.kind": "rmsprop", "optimizer.lr": 0.004, "optimizer.centered": True},
}
CLIP = {"batch.clip_norm": 0.5}
GROUPS = {"optimizer.no_decay": ["bias", "ndim<=1"],
          "optimizer.group": [{"match": ["*2*"], "lr_scale": 0.5}]}  # fmt: skip
BF16 = {"precision.compute": "bf16"}
F16 = {"precision.compute": "f16", "precision.loss_scale": "dynamic"}
NO_MASTERS = {"precision.master_weights": False}
EXACT = {"parallel.exact": 4}


REFUSES_MEANS = (
    "params.ema with parallel.zero = 1 and precision.master_weights = false is not supported"
)
# What goes together, by name; the model where it is another than an MLP.
FEATURES = {
    "clip": Cell("", CLIP, 1, None),
    "accumulation": Cell("", {}, 3, None),
    "groups": Cell("", GROUPS, 1, None),
    "means": Cell("", {"params.ema": 0.9}, 1, None),
    "f32": Cell("", {"precision.compute": "f32"}, 1, None, "f32"),
    "bf16": Cell("", BF16, 1, None, "bf16"),
    "bf16 without masters": Cell("", BF16 | NO_MASTERS, 1, None, "bf16"),
    "f16, dynamic scale": Cell("", F16, 1, None, "f16"),
    "budget": Cell("", {"memory.budget": "64MiB"}, 1, None),
    "dropout": Cell("", {"batch.micro": 30, "batch.last": "pad"}, 1, "dropping"),
    "synchronised norms": Cell("", {"batchnorm.sync": True, "batch.micro": 8}, 1, "norms"),
    "exact": Cell("", EXACT, 1, None),
}
# Pairs that a compiler refuses, and how.
TOGETHER_REFUSED = {
    ("means", "bf16 without masters"): REFUSES_MEANS,
    ("synchronised norms", "exact"): "parallel.exact: what a batch norm in training learns",
}


def join(names, optimizer, models):
    """The cell of two features; nothing where each wants another value of a key or model."""
    first, second = (FEATURES[name] for name in names)
    both = first.keys.keys() & second.keys.keys()
    clash = any(first.keys[key] != second.keys[key] for key in both)
    # How many batches an update has is said once.
    clash |= "exact" in names and max(first.accumulate, second.accumulate) > 1
    if clash or (first.model and second.model) or "f32" in (first.compute, second.compute) and (
            first.compute != "f64" and second.compute != "f64"):  # fmt: skip
        return None
    model = first.model or second.model or "mlp"
    keys = optimizer | first.keys | second.keys
    if model != "mlp" and "optimizer.group" in keys:
        keys = keys | {"optimizer.group": [{"match": ["*"], "lr_scale": 0.5}]}
    compute = second.compute if first.compute == "f64" else first.compute
    accumulate = max(first.accumulate, second.accumulate)
    return Cell(" x ".join(names), keys, accumulate, models[model], compute)


def list_models(folder):
    return {"mlp": ranks.fixture("mlp_digits.onnx"), "dropping": f"{folder}/dropping.onnx",
            "norms": f"{folder}/norms.onnx"}  # fmt: skip


def list_cells(folder, all_of_them):
    models = list_models(folder)
    mlp, cnn = models["mlp"], ranks.fixture("cnn_digits.onnx")
    yield Cell("adamw, means", ADAMW | {"params.ema": 0.9}, 1, mlp)
    yield Cell("clip, accumulation, groups", ADAMW | CLIP | GROUPS, 3, mlp)
    yield Cell("exact, clip", ADAMW | CLIP | EXACT, 1, mlp, "f32")
    if not all_of_them:
        return
    yield Cell("momentum, synchronised norms", OPTIMIZERS["momentum"] | FEATURES[
        "synchronised norms"].keys, 1, models["norms"])  # fmt: skip
    yield Cell("bf16 without masters", ADAMW | BF16 | NO_MASTERS, 1, mlp, "bf16")
    for name, optimizer in OPTIMIZERS.items():
        yield Cell(f"{name}, cnn", optimizer, 1, cnn)
    for names in itertools.combinations(FEATURES, 2):
        cell = join(names, ADAMW, models)
        if cell and names not in TOGETHER_REFUSED:
            yield cell


REFUSED = (
    ('params.ema = 0.9\nprecision.compute = "bf16"\nprecision.master_weights = false', 4,
     REFUSES_MEANS),
    ('precision.compute = "bf16"\nprecision.master_weights = false\n'
     'precision.rounding = "stochastic"', 4,
     "precision.rounding = 'stochastic' with parallel.zero = 1 is not supported yet"),
    ("parallel.exact = 4\nparallel.data = 3", 2,
     "parallel.exact is 4 batches, which parallel.data = 3 ranks cannot share"),
    ('parallel.data = "auto"', 2, "parallel.zero = 1 needs a number as parallel.data"),
    ("parallel.data = 1152921504606846976", 2, "expected at most 65536"),
)  # fmt: skip


def write(path, cell, zero, world):
    keys = {"loss.kind": "cross_entropy", "seed": 5, "precision.compute": "f64"} | cell.keys
    if cell.compute == "f32":
        keys["precision.compute"] = "f32"
    keys["parallel.bucket"] = "8KiB"
    keys |= {"parallel.data": world, "parallel.zero": 1} if zero else {"parallel.data": "auto"}
    groups = keys.pop("optimizer.group", [])
    with open(path, "w", encoding="utf-8") as file:
        for key, value in keys.items():
            file.write(f"{key} = {json.dumps(value)}\n")
        for group in groups:
            file.write("[[optimizer.group]]\n")
            for key, value in group.items():
                file.write(f"{key} = {json.dumps(value)}\n")


def compile_cell(cell, folder, zero, world, more=()):
    path = tempfile.mkdtemp(dir=folder)
    write(f"{path}/recipe.toml", cell, zero, world)
    flags = [] if "batch.micro" in cell.keys else ["--dim", "batch=16"]
    if "cnn" in cell.model:
        flags = []
    out = harness.call("tcc", cell.model, f"--train={path}/recipe.toml", "-q", "--json",
                       "--threads=1", *flags, *more, "-o", f"{path}/m.tcc")  # fmt: skip
    return f"{path}/m.tcc", json.loads(out)


def list_settings(cell):
    return [] if "parallel.exact" in cell.keys else ["--set", f"accumulate={cell.accumulate}"]


def train(package, cell, data, world, launcher=(), more=()):
    """Losses, what is exported, and what the run says."""
    place = tempfile.mkdtemp(dir=os.path.dirname(package))
    command = ["tcc-run", "train", package, "--data", "npz:" + data, "-q", "--json", "--threads",
               "1", "--steps", str(STEPS), "--log-dir", place, "--export",
               f"{place}/out.safetensors", *list_settings(cell), *more]  # fmt: skip
    if launcher:
        prefix = [str(world) if word == "WORLD" else word for word in launcher]
        command[0] = os.path.join(harness.BIN, "tcc-run")
        out = harness.call(shutil.which(prefix[0]), *prefix[1:], *command)
    else:
        out = harness.call(*command, "--ranks", str(world))
    with open(f"{place}/metrics.jsonl", encoding="utf-8") as file:
        losses = [json.loads(line)["loss"] for line in file]
    return np.array(losses), load_file(f"{place}/out.safetensors"), json.loads(out)


def compare(tally, cell, world, ours, expected):
    bound = BOUNDS[cell.compute]
    names = ours[1].keys() == expected[1].keys() and len(ours[0]) == STEPS
    tally.check(f"{cell.name}: tensors and losses", names)
    off = max([ranks.distance(ours[0], expected[0])] +
              [ranks.distance(ours[1][name].astype("f8"), tensor.astype("f8"))
               for name, tensor in expected[1].items()])  # fmt: skip
    tally.check(f"{cell.name}: {world} ranks", off <= bound, str(off))
    is_exact = "parallel.exact" in cell.keys
    if is_exact or (world == 2 and "batch.clip_norm" not in cell.keys):
        tally.check(f"{cell.name}: the same bits", off == 0, str(off))


def test_cell(tally, folder, cell, data, world):
    divided, plan = compile_cell(cell, folder, True, world)
    whole, _ = compile_cell(cell, folder, False, world)
    ours, expected = (train(package, cell, data, world) for package in (divided, whole))
    compare(tally, cell, world, ours, expected)
    found = ours[2]["memory_bytes"], plan["memory_bytes_of_ranks"]["total"]
    tally.check(f"{cell.name}: planned bytes", found[0] == found[1], str(found))
    return divided, ours


def list_state(package):
    info = json.loads(harness.call("tcc-run", "info", package, "--json"))
    return [row for row in info["variables"] if row["kind"] in ("slot", "ema")]


def expect_elements(row, world):
    """Those of a rank's part of a bucket: each tensor begins at the next multiple of 64 bytes,
    and so does each part."""
    line = 64 // (row["bytes"] // row["elements"])
    end = 0
    for piece in row["pieces"]:
        if piece["begin"] != end:
            return None
        end += -(-int(np.prod(piece["shape"])) // line) * line
    return -(-end // (line * world)) * line


def test_first(tally, folder, cell, data, world):
    """Slots are a part's, other numbers of ranks are refused, and others may evaluate."""
    package, ours = test_cell(tally, folder, cell, data, world)
    state = list_state(package)
    tally.check("slots", {row["name"].split("/")[0] for row in state} == {
        "exp_avg", "exp_avg_sq", "ema"}, str(state))  # fmt: skip
    for row in state:
        ok = row["elements"] == expect_elements(row, world)
        tally.check(f"a part of {row['name']}", ok, str(row))
    command = ["tcc-run", "train", package, "--data", "npz:" + data, "--steps", "1", "-q"]
    others = ((1, f"not on 1: run it with --ranks {world}"), (world + 1, f"not on {world + 1}"))
    for other, how in others:
        done = harness.run_tool(*command, "--ranks", str(other))
        said = f"trains on {world} ranks (parallel.data = {world}, zero = 1), {how}"
        ok = done.code == 2 and said in done.err
        tally.check(f"{other} ranks", ok, f"{done.code}: {done.err}")
    for count in (1, world + 1):
        done = harness.run_tool("tcc-run", "eval", package, "--data", "npz:" + data, "-q",
                                "--ranks", str(count))  # fmt: skip
        tally.check(f"{count} ranks evaluate", done.code == 0, done.err)
    for transport, launcher in ranks.LAUNCHERS.items():
        if launcher:
            again = train(package, cell, data, world, launcher)
            # Transports add up more than two numbers in orders of their own.
            same = ranks.are_equal(again, ours)
            tally.check(f"the same bits by {transport}", same or world > 2)


class Saved:
    """A checkpoint, whose tensors are put together as its manifest says."""

    def __init__(self, run, step):
        self.place = f"{run}/step-{step}"
        with open(f"{self.place}/manifest.json", encoding="utf-8") as file:
            self.listed = {row["name"]: row for row in json.load(file)["tensors"]}

    def files(self):
        return {s["file"] for row in self.listed.values() for s in row["slices"]}

    def tensors(self):
        return {name: self.read(row) for name, row in self.listed.items()}

    def read(self, row):
        parts = []
        for part in row["slices"]:
            with open(f"{self.place}/{part['file']}", "rb") as file:
                file.seek(part["offset"])
                size = {"f64": 8, "i64": 8, "f32": 4, "bf16": 2, "f16": 2}[row["dtype"]]
                parts.append(file.read(part["count"] * size))
        return row["shape"], b"".join(parts)


def save_run(package, cell, data, world, place, steps):
    harness.call("tcc-run", "train", package, "--data", "npz:" + data, "-q", "--threads", "1",
                 "--steps", str(steps), "--checkpoint-dir", place, *list_settings(cell),
                 "--ranks", str(world), "--resume-if-any")  # fmt: skip


def find_other(cell, world):
    """Another number of ranks that the update of the cell can be divided among."""
    exact = cell.keys.get("parallel.exact")
    if exact is None:
        return world + 1
    return 2 * world if exact % (2 * world) == 0 else world // 2


def test_checkpoints(tally, folder, cell, data, world):
    """Any number of ranks goes on from what another one wrote, divided or not."""
    divided, _ = compile_cell(cell, folder, True, world)
    whole, _ = compile_cell(cell, folder, False, world)
    other = find_other(cell, world)
    more, _ = compile_cell(cell, folder, True, other)
    runs = {}
    for name, package in (("divided", divided), ("whole", whole)):
        runs[name] = f"{folder}/saved-{name}"
        save_run(package, cell, data, world, runs[name], STEPS // 2)
    ours, expected = (Saved(run, STEPS // 2) for run in runs.values())
    files = {"state.safetensors"}
    if list_state(divided):
        files.update(f"rank-{rank}.safetensors" for rank in range(world))
    tally.check("a file for each rank that has slots", ours.files() == files, str(ours.files()))
    if world == 2:
        tally.check("the same tensors in parts", ours.tensors() == expected.tensors())
    for first, package, count in (("divided", divided, world), ("divided", whole, world),
                                  ("whole", divided, world), ("divided", more, other),
                                  ("divided", whole, 1)):  # fmt: skip
        with tempfile.TemporaryDirectory() as place:
            shutil.copytree(runs[first], f"{place}/run")
            save_run(package, cell, data, count, f"{place}/run", STEPS // 2)
            same = Saved(f"{place}/run", STEPS // 2).tensors() == Saved(
                runs[first], STEPS // 2).tensors()  # fmt: skip
            tally.check(f"{first}, restored by {count}", same)
            written = {f"rank-{rank}.safetensors" for rank in range(count)}
            expected_files = written if package is not whole and len(files) > 1 else set()
            found = Saved(f"{place}/run", STEPS // 2).files() - {"state.safetensors"}
            tally.check(f"{first}, written again by {count}", found == expected_files, str(found))
            if count == world:
                save_run(package, cell, data, count, f"{place}/run", STEPS)
                found = Saved(f"{place}/run", STEPS).tensors()
                once = runs.setdefault("once", f"{folder}/once")
                if not os.path.exists(once):
                    save_run(divided, cell, data, world, once, STEPS)
                same = found == Saved(once, STEPS).tensors()
                # More than two ranks add up in another order where they divide.
                known = (package is divided and first == "divided") or world == 2
                tally.check(f"{first}, gone on by {count}", same or not known)
    if len(files) > 1:
        test_damage(tally, folder, divided, data, runs["divided"], world)
        test_own_folders(tally, divided, data, world)


def test_own_folders(tally, package, data, world):
    """Ranks whose hosts do not share the folder lose the update, and leave nothing half written."""
    meeting = {"WORLD_SIZE": str(world), "TCC_RENDEZVOUS": f"127.0.0.1:{find_free_port()}"}
    with tempfile.TemporaryDirectory() as place:
        started = []
        for rank in range(world):
            os.mkdir(f"{place}/{rank}")
            started.append(subprocess.Popen(
                [os.path.join(harness.BIN, "tcc-run"), "train", package, "--data", "npz:" + data,
                 "-q", "--steps", "1", "--checkpoint-dir", "run"], cwd=f"{place}/{rank}",
                env=ENVIRONMENT | meeting | {"RANK": str(rank)}, stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE, text=True))  # fmt: skip
        said = [rank.communicate(timeout=60)[1] for rank in started]
        codes = [rank.returncode for rank in started]
        ok = all(code == 5 and ".safetensors" in text for code, text in zip(codes, said))
        tally.check("folders of their own", ok, f"{codes}: {said}")
        left = os.listdir(f"{place}/0/run") if os.path.exists(f"{place}/0/run") else []
        tally.check("nothing is left", left == [], str(left))


def test_damage(tally, folder, package, data, saved, world):
    """Of all files of a checkpoint that of another rank is not to be trusted either."""
    file = f"{saved}/step-{STEPS // 2}/rank-{world - 1}.safetensors"
    resume = ["tcc-run", "train", package, "--data", "npz:" + data, "--steps", str(STEPS),
              "--checkpoint-dir", saved, "--resume", "--ranks", str(world)]  # fmt: skip
    with open(file, "r+b") as stream:
        stream.seek(-1, os.SEEK_END)
        last = stream.read(1)
        stream.seek(-1, os.SEEK_END)
        stream.write(bytes([last[0] ^ 1]))
    done = harness.run_tool(*resume)
    said = "is damaged: the digest of tensor '"
    tally.check("a damaged part", done.code == 3 and said in done.err, f"{done.code}: {done.err}")
    os.remove(file)
    done = harness.run_tool(*resume)
    tally.check("a part that is missing", done.code == 5 and "there is no '" in done.err,
                f"{done.code}: {done.err}")  # fmt: skip


def read_peak(process):
    """What was resident at most, in bytes; 0 of one that has ended."""
    try:
        with open(f"/proc/{process}/status", encoding="utf-8") as file:
            found = [line for line in file if line.startswith("VmHWM:")]
    except OSError:
        return 0
    return int(found[0].split()[1]) * 1024 if found else 0


def measure(package, data, world, log):
    """Of each rank the most that was resident, in bytes. What the kernel says of an ended process
    counts what began it, too."""
    command = [os.path.join(harness.BIN, "tcc-run"), "train", package, "--data", "npz:" + data,
               "-q", "--threads", "1", "--steps", "40", "--log-dir", log]  # fmt: skip
    place = {"WORLD_SIZE": str(world), "TCC_RENDEZVOUS": f"127.0.0.1:{find_free_port()}"}
    started = [subprocess.Popen(command, env=ENVIRONMENT | place | {"RANK": str(rank)},
                                stdout=subprocess.DEVNULL) for rank in range(world)]  # fmt: skip
    most = [0] * world
    while any([rank.poll() is None for rank in started]):
        most = [max(peak, read_peak(rank.pid)) for peak, rank in zip(most, started)]
        time.sleep(0.005)
    if any(rank.returncode for rank in started):
        raise harness.Failure(f"a rank of {package} failed")
    return most


def test_resident(tally, folder, world):
    """What a rank no longer plans is not resident, to 2 MiB. What transports keep is theirs: of
    messages in parts they keep less."""
    model, wide = f"{folder}/wide.onnx", 1536
    nodes = [helper.make_node("MatMul", ["x", "first"], ["a"]),
             helper.make_node("MatMul", ["a", "middle"], ["b"]),
             helper.make_node("MatMul", ["b", "last"], ["logits"])]  # fmt: skip
    weights = {"first": run.normal(64, wide), "middle": run.normal(wide, wide),
               "last": run.normal(wide, 10)}  # fmt: skip
    run.save_graph(model, nodes, weights, [64], "logits", ["batch", 10])
    cell = Cell("resident", ADAMW, 1, model, "f32")
    found = []
    for zero in (False, True):
        package, plan = compile_cell(cell, folder, zero, world)
        resident = measure(package, ranks.fixture("digits.npz"), world, os.path.dirname(package))
        found.append((plan["memory_bytes_of_ranks"]["total"], resident))
    planned = found[0][0] - found[1][0]
    saved = [before - after for before, after in zip(found[0][1], found[1][1])]
    is_saved = min(saved) >= planned - (2 << 20)
    tally.check("saved bytes are not resident", is_saved, f"{saved}, planned {planned}")


def test_device(tally, folder, world):
    """On emulated GPUs the update is that of the CPU."""
    cell = Cell("on GPUs", ADAMW | CLIP | {"params.ema": 0.9}, 2, ranks.fixture("mlp_digits.onnx"),
                "f32")  # fmt: skip
    data = ranks.fixture("digits.npz")
    host, _ = compile_cell(cell, folder, True, world)
    device, _ = compile_cell(cell, folder, True, world, ["--target=cuda", "--emulate"])
    ours = train(device, cell, data, world, more=["--device", "emulated"])
    expected = train(host, cell, data, world)
    off = max(ranks.distance(ours[1][name], value) for name, value in expected[1].items())
    tally.check(f"{cell.name}: {world} ranks", off <= BOUNDS["f32"], str(off))


def test_pairs(tally, folder, world):
    """Pairs of features that do not go together are refused by name."""
    for names, said in TOGETHER_REFUSED.items():
        cell = join(names, ADAMW, list_models(folder))
        write(f"{folder}/pair.toml", cell, True, world)
        done = harness.run_tool("tcc", cell.model, f"--train={folder}/pair.toml", "--check")
        ok = done.code == 4 and said in done.err
        tally.check(f"refused: {cell.name}", ok, f"{done.code}: {done.err}")


def test_refusals(tally, folder):
    for i, (keys, code, said) in enumerate(REFUSED):
        path = f"{folder}/refused-{i}.toml"
        base = 'loss.kind = "cross_entropy"\nparallel.zero = 1\n'
        for line in ('optimizer.kind = "sgd"\n', "parallel.data = 2\n"):
            base += "" if line.split(" = ")[0] in keys else line
        with open(path, "w", encoding="utf-8") as file:
            file.write(base + keys + "\n")
        done = harness.run_tool("tcc", ranks.fixture("mlp_digits.onnx"), f"--train={path}",
                                "--check")  # fmt: skip
        ok = done.code == code and said in done.err
        tally.check(f"refused: {keys}", ok, f"{done.code}: {done.err}")


def main(arguments):
    tally = harness.Tally()
    everything = "--long" in arguments
    world = int(next((word for word in arguments if word != "--long"), 2))
    with tempfile.TemporaryDirectory() as folder:
        ranks.save_dropping(f"{folder}/dropping.onnx")
        run.save_cnn(f"{folder}/norms.onnx")
        x = run.RANDOM.standard_normal((64 * world, 2, 6, 5)).astype("f4")
        labels = run.RANDOM.integers(0, run.CLASSES, 64 * world)
        np.savez(f"{folder}/norms.npz", x=x, labels=labels)
        test_refusals(tally, folder)
        if everything:
            test_pairs(tally, folder, world)
            test_resident(tally, folder, world)
            test_device(tally, folder, world)
        for i, cell in enumerate(list_cells(folder, everything)):
            data = f"{folder}/norms.npz" if "norms" in cell.model else ranks.fixture("digits.npz")
            (test_first if i == 0 else test_cell)(tally, folder, cell, data, world)
            if i == 0 or cell.name in ("momentum, cnn", "groups x bf16", "means x exact"):
                test_checkpoints(tally, tempfile.mkdtemp(dir=folder), cell, data, world)
    tally.close()


if __name__ == "__main__":
    main(sys.argv[1:])
