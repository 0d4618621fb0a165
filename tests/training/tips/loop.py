"""Tips on what a training loop does between batches: gradients, rates, evaluations, checkpoints."""

import json
import math
import os
import re

import numpy as np
from safetensors.numpy import load_file

import harness
from onnx import helper
from training import run, torch_files
from training.tips.suite import ADAMW, DIGITS, LANGUAGE, LOSS, SGD, find_entry

EMA = ADAMW + "params.ema = 0.5\n"


def read_start(suite, package):
    """The parameters before the first update."""
    return suite.once(("start", package),
                     lambda: suite.train(package, "--steps", 1, "--set", "lr=0").tensors())  # fmt: skip


def measure_moves(suite, package, *flags, steps=1):
    """How far each parameter is from its start."""
    start, end = read_start(suite, package), suite.train(package, "--steps", steps, *flags).tensors()
    names = suite.find_variables(package, "parameter")
    return {name: end[name].astype("f8") - start[name] for name in names}


def find_norm(moves):
    return math.sqrt(sum((each**2).sum() for each in moves.values()))


# --- Gradients ---------------------------------------------------------------------------------


def row_clip_grad_norm(suite):
    package = suite.compile("mlp", SGD + "batch.clip_norm = 0.01\n")
    moves = measure_moves(suite, package, "--set", "lr=1")
    suite.check("a step of that norm", math.isclose(find_norm(moves), 0.01, rel_tol=1e-3), find_norm(moves))
    clipped = suite.train(package, "--steps", 1).column("grad_norm")[0]
    free = suite.train(package, "--steps", 1, "--set", "clip_norm=inf").column("grad_norm")[0]
    suite.check("the log has the norm before", free == clipped > 0.02, (free, clipped))


def row_clip_grad_value(suite):
    package = suite.compile("mlp", SGD + "batch.clip_value = 0.001\n")
    for flags, is_clipped in (((), True), (("--set", "clip_value=inf"), False)):
        moves = measure_moves(suite, package, "--set", "lr=1", *flags)
        largest = max(np.abs(each).max() for each in moves.values())
        suite.check(f"clipped: {is_clipped}", math.isclose(largest, 0.001, rel_tol=1e-3) == is_clipped, largest)


def row_accumulation(suite):
    small = SGD + "batch.micro = 16\n"
    for more, count in (("", 1), ("batch.accumulate = 4\n", 4), ("batch.global = 64\n", 4)):
        done = suite.train(suite.compile("mlp", small + more), "--steps", 2)
        out = suite.call("tcc-run", "checkpoints", done.folder, "--json")
        found = json.loads(out)["checkpoints"][-1]
        is_right = (found["updates"], found["batches"]) == (2, 2 * count)
        suite.check(f"{more.strip()}: {count} batches an update", is_right, found)


def row_requires_grad(suite):
    recipe = ADAMW + 'params.freeze = ["0.*"]\n'
    package, said = suite.compile("mlp", recipe), suite.try_compile("mlp", recipe).err
    frozen = [line.split()[2] for line in said.splitlines() if line.startswith("frozen parameter ")]
    suite.check("the lines of tcc", frozen == ["0.weight:", "0.bias:"], said)
    slots = {each["parameter"] for each in suite.find_variables(package, "slot").values()}
    suite.check("no slots", slots == {"2.weight", "2.bias", "4.weight", "4.bias"}, slots)
    moved = {name for name, each in measure_moves(suite, package).items() if np.any(each)}
    suite.check("it stays", moved == slots, moved)
    counts = [suite.find_entry(each, "train_step")["launches"]
              for each in (package, suite.compile("mlp", ADAMW))]  # fmt: skip
    suite.check("no gradients", counts[0] < counts[1], counts)


def row_param_groups(suite):
    recipe = SGD + 'optimizer.group = [{match = "0.*", lr_scale = 0.5}]\n'
    moves, plain = (measure_moves(suite, suite.compile("mlp", each)) for each in (recipe, SGD))
    for name, factor in (("0.weight", 0.5), ("2.weight", 1)):
        suite.check(f"{factor} of the rate", np.allclose(moves[name], factor * plain[name], atol=1e-7))


def row_no_decay(suite):
    decayed = {}
    for more in ("", 'optimizer.no_decay = ["ndim<=1"]\n'):
        package = suite.compile("mlp", ADAMW + more)
        weak, strong = (measure_moves(suite, package, "--set", f"weight_decay={each}") for each in (0, 0.5))
        decayed[more] = {name for name in weak if not np.array_equal(weak[name], strong[name])}
    all_names, weights = decayed.values()
    suite.check("all without the key", len(all_names) == 6, all_names)
    suite.check("matrices alone", weights == {"0.weight", "2.weight", "4.weight"}, weights)


def row_anomaly(suite):
    arrays = dict(np.load(DIGITS[4:]))
    arrays["x"][37, 3] = np.nan
    path = suite.new_path(".npz")
    np.savez(path, **arrays)
    package = suite.compile("mlp", SGD)
    stopped = suite.train(package, "--no-shuffle", "--steps", 4, data="npz:" + path, code=6)
    said = "of step 3 is not finite" in stopped.err and "first was input 'x'" in stopped.err
    suite.check("the place", said and stopped.list_steps() == [3], stopped.err)
    going = suite.train(package, "--no-shuffle", "--set", "on_nan=skip", "--steps", 4, data="npz:" + path)
    suite.check("skipped", going.column("skipped") == [False, False, True, False], going.log)


# --- Losses and rates --------------------------------------------------------------------------


def row_label_smoothing(suite):
    package = suite.compile("mlp", SGD + "loss.label_smoothing = 0.1\n")
    setting = suite.find_settings(package).get("label_smoothing")
    suite.check("a setting", setting and setting["initial"] == [0.1], setting)
    suite.check("none without", "label_smoothing" not in suite.find_settings(suite.compile("mlp", SGD)))


def row_ignore_index(suite):
    arrays = dict(np.load(DIGITS[4:]))
    other = SGD + "loss.ignore_index = -1\n"
    for label, recipe, code in ((-100, SGD, 0), (-1, other, 0), (-1, SGD, 2)):
        arrays["labels"][:256] = label
        path = suite.new_path(".npz")
        np.savez(path, **arrays)
        done = suite.run("tcc-run", "eval", suite.compile("mlp", recipe), "--data", "npz:" + path, "--json")
        suite.check(f"label {label}", done.code == code, done.err)
    suite.check("the other label is named", "index -1 is out of range" in done.err, done.err)


def list_rates(suite, kind, *settings):
    flags = [f"schedule.kind={kind}", *settings]
    done = suite.train(suite.compile("mlp", ADAMW), "--steps", 20, "--set", "schedule.total_steps=20",
                      *(word for each in flags for word in ("--set", each)))  # fmt: skip
    return done.column("lr")


def row_one_cycle(suite):
    rates = list_rates(suite, "one_cycle", "schedule.max_lr=0.5")
    suite.check("the first", math.isclose(rates[0], 0.5 / 25), rates)
    suite.check("the peak", math.isclose(max(rates), 0.5) and rates.index(max(rates)) == 5, rates)
    suite.check("the last", math.isclose(rates[-1], 0.5 / 25 / 1e4), rates)


def row_cosine_warmup(suite):
    rates = list_rates(suite, "cosine", "schedule.warmup_steps=5")
    expected = [0.01 * (i + 1) / 5 for i in range(5)]
    expected += [0.005 * (1 + math.cos(math.pi * i / 15)) for i in range(15)]
    suite.check("rates", np.allclose(rates, expected), rates)


def row_step_lr(suite):
    rates = list_rates(suite, "step", "schedule.step_size=8", "schedule.gamma=0.5")
    suite.check("rates", np.allclose(rates, [0.01 * 0.5 ** (i // 8) for i in range(20)]), rates)


def row_linear_lr(suite):
    rates = list_rates(suite, "linear", "schedule.eta_min=0.002")
    suite.check("rates", np.allclose(rates, [0.01 - 0.008 * i / 20 for i in range(20)]), rates)


def row_lr_finder(suite):
    folder = suite.new_path()
    out = suite.call("tcc-run", "train", suite.compile("mlp", ADAMW), "--data", DIGITS, "--find-lr",
                       "--json", "--log-dir", folder)  # fmt: skip
    found = json.loads(out)
    rates = [each["lr"] for each in found["points"]]
    suite.check("growing rates", rates == sorted(rates) and len(rates) > 20, rates)
    suite.check("one of them", found["steepest"] in rates, found["steepest"])
    suite.check("a picture", os.path.exists(f"{folder}/find-lr.svg"))


# --- Evaluation and checkpoints ----------------------------------------------------------------


def row_ema(suite):
    package = suite.compile("mlp", EMA)
    suite.check("a mean for each parameter", len(suite.find_variables(package, "ema")) == 6)
    suite.check("none without", not suite.find_variables(suite.compile("mlp", ADAMW), "ema"))
    done = suite.train(package, "--steps", 20)
    arguments = ["tcc-run", "eval", package, "--data", DIGITS, "--checkpoint-dir", done.folder, "--json"]
    losses = [json.loads(suite.call(*arguments, *flags))["loss"] for flags in ((), ("--ema",))]
    suite.check("it is evaluated", losses[0] != losses[1], losses)


EVALUATED = ["--set", f"eval.data={DIGITS}", "--set", "eval.every=2"]


def row_early_stopping(suite):
    still = [*EVALUATED, "--set", "lr=0", "--steps", 10]
    for flags, steps in (((), 10), (("--set", "eval.patience=1"), 4)):
        done = suite.train(suite.compile("mlp", ADAMW), *still, *flags)
        suite.check(f"{steps} updates", len(done.log) == steps, done.err)
        noted = f"eval.patience: stopped after update {steps}" in done.err
        suite.check(f"{steps} updates: the note", noted == bool(flags), done.err)


def row_metrics(suite):
    recipe = ADAMW + 'eval.metrics = ["accuracy", "top5", "f1"]\n'
    done = suite.train(suite.compile("mlp", recipe), "--steps", 2, *EVALUATED)
    found = [set(row["eval"]) for row in done.log if "eval" in row]
    suite.check("the log", found == [{"loss", "accuracy", "top5", "f1"}], found)


def row_save_best(suite):
    package = suite.compile("mlp", ADAMW)
    done = suite.train(package, "--steps", 8, *EVALUATED, "--keep-last", 1, "--keep-best", "loss")
    losses = {row["step"]: row["eval"]["loss"] for row in done.log if "eval" in row}
    best = min(losses, key=losses.get)
    listed = json.loads(suite.call("tcc-run", "checkpoints", done.folder, "--json"))["checkpoints"]
    found = {each["step"]: each["evaluation"]["loss"] for each in listed}
    suite.check("the best and the last", found == {step: losses[step] for step in (best, 8)}, listed)
    file = suite.new_path(".safetensors")
    suite.call("tcc-run", "export", package, "--checkpoint-dir", done.folder, "--checkpoint", "best",
                 "-o", file)  # fmt: skip
    expected = load_file(f"{done.folder}/step-{best}/state.safetensors")
    suite.check("its export", np.array_equal(load_file(file)["0.weight"], expected["0.weight"]))


def row_resume(suite):
    package = suite.compile("mlp", ADAMW)
    whole = suite.train(package, "--steps", 20)
    half = suite.train(package, "--steps", 10, "--checkpoint-every", 5)
    suite.check("two checkpoints", half.list_steps() == [5, 10], half.list_steps())
    suite.check("other bits", half.read_bytes() != whole.read_bytes())
    done = suite.train(package, "--steps", 20, "--resume", folder=half.folder)
    suite.check("the bits of one run", done.read_bytes() == whole.read_bytes())


def row_max_time(suite):
    done = suite.train(suite.compile("mlp", SGD), "--steps", 10**8, "--max-time", "1s")
    steps = done.list_steps()
    suite.check("a checkpoint", len(steps) == 1 and 0 < steps[0] < 10**8, steps)


def row_state_dict(suite):
    package, file = suite.compile("cnn", SGD), suite.new_path(".safetensors")
    done = suite.train(package, "--steps", 2, "--export", file)
    exported = load_file(file)
    suite.check("parameters", set(exported) == set(suite.find_variables(package, "parameter")), set(exported))
    suite.check("their last values", np.array_equal(exported["9.bias"], done.tensors()["9.bias"]))
    saved = suite.new_path(".pth")
    torch_files.save(saved, {name: torch_files.Stored.of(each) for name, each in exported.items()})
    for start in (file, saved):
        again = suite.train(package, "--steps", 1, "--set", "lr=0", "--init", start).tensors()
        same = all(np.array_equal(again[name], each) for name, each in exported.items())
        suite.check(f"the start of another run: {start[-4:]}", same)


def row_metrics_log(suite):
    log = suite.train(suite.compile("mlp", SGD), "--steps", 3).log
    keys = {"step", "loss", "lr", "grad_norm", "loss_scale", "skipped", "samples_per_s", "data_wait_s"}
    suite.check("a line for each update", len(log) == 3 and keys <= set(log[0]), log)


def row_progress(suite):
    package = suite.compile(suite.find_tokens(), LANGUAGE, "--dim=batch=4", "--dim=seq=12")
    text = suite.new_path()
    with open(text, "wb") as file:
        file.write(bytes(range(128)) * 4)
    for quiet in ((), ("-q",)):
        done = suite.train(package, "--steps", 3, *quiet, data="text:" + text)
        found = [row["tokens_per_s"] / row["samples_per_s"] for row in done.log]
        suite.check("tokens of a sample", np.allclose(found, 12), done.log)
        suite.check("MFU", all(0 < row["mfu"] < 2 for row in done.log), done.log)
        suite.check("a short run has no line", "step " not in done.err, done.err)
    log = suite.train(suite.compile("mlp", SGD), "--steps", 3).log
    suite.check("images have no tokens", not any("tokens_per_s" in row for row in log), log)


def row_tensorboard(suite):
    package, folder = suite.compile("mlp", SGD), suite.new_path()
    suite.train(package, "--steps", 3, "--tensorboard", folder, "--tensorboard-histograms", 2)
    (name,) = os.listdir(folder)
    with open(f"{folder}/{name}", "rb") as file:
        events = file.read()
    tags = (b"train/loss", b"speed/samples_per_s", b"histograms")
    suite.check("tags", name.startswith("events.out.tfevents.") and all(t in events for t in tags), name)


def row_diagnose(suite):
    package = suite.compile("mlp", SGD)
    out = suite.train(package, "--steps", 4, "--diagnose").out
    suite.check("a bottleneck", re.search(r"^bottleneck: [a-zA-Z ]+: ", out, re.MULTILINE), out)
    suite.check("figures", "waiting for batches, of the time" in out, out)
    suite.check("nothing without", "bottleneck" not in suite.train(package, "--steps", 4).out)


def row_manual_seed(suite):
    package = suite.compile("mlp", SGD)
    losses = [suite.train(package, "--steps", 3, "--seed", seed).column("loss") for seed in (5, 5, 6)]
    suite.check("the same", losses[0] == losses[1])
    suite.check("another one", losses[0] != losses[2])


def row_init(suite):
    recipe = SGD + 'params.reinit = ["0.*"]\ninit."0.weight" = "zeros"\n'
    for text, is_zero in ((recipe, True), (SGD, False)):
        start = read_start(suite, suite.compile("mlp", text))
        suite.check(f"zeros: {is_zero}", (not start["0.weight"].any()) == is_zero)


def row_dropout(suite):
    path = suite.new_path(".onnx")
    nodes = [
        helper.make_node("MatMul", ["x", "first"], ["a"]),
        helper.make_node("Dropout", ["a", "ratio", "yes"], ["b"], name="drop"),
        helper.make_node("MatMul", ["b", "second"], ["logits"]),
    ]
    weights = {"first": run.normal(64, 32), "second": run.normal(32, 10)}
    constants = {"ratio": np.float32(0.25), "yes": np.array(True)}
    run.save_graph(path, nodes, weights | constants, [64], "logits", ["batch", 10])
    recipe = SGD + "batch.micro = 16\n"
    package = suite.compile(path, recipe)
    suite.check("a setting", suite.find_settings(package)["dropout.drop"]["initial"] == [0.25])
    losses = [suite.train(package, "--steps", 1, *flags).column("loss")
              for flags in ((), ("--set", "dropout.drop=0.25"), ("--set", "dropout.drop=0"))]  # fmt: skip
    suite.check("it is set", losses[0] == losses[1] != losses[2], losses)
    graph = suite.print_stage("graph", path, recipe)
    draws = ["step/seed" in find_entry(graph, name) for name in ("train_step", "predict")]
    suite.check("steps draw, predict does not", draws == [True, False], draws)


# --- Names that differ -------------------------------------------------------------------------


def row_token_loss(suite):
    model, dims = suite.find_tokens(), ("--dim=batch=4", "--dim=seq=12")
    wrong = suite.try_compile(model, LOSS + 'optimizer.kind = "sgd"\n', *dims)
    said = "take kind = 'causal_lm' with shift = false"
    suite.check("cross_entropy says so", said in wrong.err, wrong.err)
    fine = suite.try_compile("mlp", SGD)
    suite.check("not of other logits", said not in fine.err, fine.err)
    right = 'loss.kind = "causal_lm"\nloss.shift = false\noptimizer.kind = "sgd"\n'
    entry = suite.find_entry(suite.compile(model, right, *dims), "train_step")
    shapes = {each["name"]: each["shape"] for each in entry["inputs"]}
    suite.check("a target for each position", shapes["labels"] == shapes["x"] == [4, 12], shapes)
