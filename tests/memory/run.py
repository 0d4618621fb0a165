"""Memory plans and budgets, checked by a replay of the program: run.py [long] [MODEL...]

A program must read what was written last, lie in its arena, and with any budget end
with the same terms, so bits, as without. Times are the compiler's own predictions.
"""

import json
import os
import re
import sys
import tempfile
import time

import numpy
import safetensors.numpy
from harness import ROOT, Tally, call, first_line, run_tool
from memory.replay import replay
from models import graphs, trainable, unrecorded

OUT_OF_MEMORY = 7
LARGEST_GAP = 1.005
RECIPE = """
steps = 10
[loss]
kind = "{loss}"
[optimizer]
kind = "{optimizer}"
[batch]
micro = {batch}
{rest}
"""
CLIPPED = "clip_norm = 1.0"
FIXTURES = os.path.join(ROOT, "tests/training/fixtures")

# Whole trainings: the loss, the batch, data, the optimizer and the rest of the recipe.
# Without clipping parameters are written early, in @apply. Adam would take the signs of
# gradients that are nothing but errors.
TRAININGS = {
    "cnn_digits": ("cross_entropy", 16, "digits", "adamw", "accumulate = 2"),
    "gpt2_tiny": ("causal_lm", 4, "text", "sgd", CLIPPED),
}
# Those whose logits are in chunks with some budget.
IN_CHUNKS = {"gpt2_tiny"}
# name: how it is made, the loss, the batch, budgets in a sweep
SHORT = {
    "unet": (lambda path: trainable.save_unet(path, 2, 32, 8, 2), "mse", 2, 3),
}
LONG = {
    "gpt2_124m": (lambda path: trainable.save_gpt(path, 8), "causal_lm", 8, 8),
    "gpt2_1558m": (
        lambda path: trainable.save_gpt(path, 1, layers=48, width=1600, heads=25),
        "causal_lm", 1, 4,
    ),
    "resnet50": (lambda path: trainable.save_resnet50(path, 64), "cross_entropy", 64, 8),
    "vit_b_16": (lambda path: trainable.save_vit(path, 64), "cross_entropy", 64, 8),
    "unet": (lambda path: trainable.save_unet(path, 8), "mse", 8, 8),
}  # fmt: skip
LARGEST_BATCHES = "gpt2_in_24GiB", "gpt2_in_80GiB"


class Subject:
    """A model with a recipe, to be compiled without weights."""

    def __init__(self, work, name, model, loss, batch, optimizer="adamw", rest=CLIPPED):
        self.work, self.name, self.model = work, name, model
        self.recipe = os.path.join(work, name + ".toml")
        with open(self.recipe, "w") as stream:
            stream.write(RECIPE.format(loss=loss, batch=batch, optimizer=optimizer, rest=rest))

    def compile(self, budget=None, emit="--emit=exec"):
        """The run, and the decisions about recomputation."""
        out, decisions = (os.path.join(self.work, self.name + x) for x in (".mlir", ".json"))
        flags = [f"--train={self.recipe}", "--weights=none", "-q", emit, "-o", out]
        flags += [f"--dump-decisions={decisions}", "--threads=2"]
        if budget is not None:
            flags.append(f"--memory-budget={budget}")
        run = run_tool("tcc", self.model, *flags)
        if run.code:
            return run, "", []
        with open(out) as text, open(decisions) as rows:
            about = ("recompute-values", "chunk-loss")
            chosen = [row for row in json.load(rows) if row["pass"] in about]
            return run, text.read(), chosen


def check_replay(tally, name, replays):
    for entry, found in replays.items():
        tally.check(f"{name} @{entry}", not found.problems, "; ".join(found.problems[:3]))
        tally.check(
            f"{name} @{entry}: the bound is the most that is live",
            found.live <= found.bound <= found.arena,
            f"{found.live}, {found.bound}, {found.arena}",
        )
        tally.check(
            f"{name} @{entry}: the arena is hardly more",
            found.arena <= LARGEST_GAP * found.bound, f"{found.bound}, {found.arena}",
        )  # fmt: skip


def same_results(plain, bounded):
    return all(plain[entry].results == bounded[entry].results for entry in plain)


def times(decisions, kind):
    """The least microseconds of each entry point in decisions of a kind."""
    found = {}
    for row in decisions:
        if row["decision"] == kind:
            entry, time = row["entry"], row["numbers"]["microseconds"]
            found[entry] = min(time, found.get(entry, time))
    return found


def extra_time(decisions, kept):
    """The longest of all steps with the budget over that with all values kept. Copies
    take no time."""
    fitted = times(decisions, "fitted").items()
    return max(time / kept[entry] for entry, time in fitted if kept[entry] > 0) - 1


def is_chunked(decisions):
    return any(row["pass"] == "chunk-loss" for row in decisions)


def largest_gap(replays):
    return max((found.arena / found.live - 1 for found in replays.values() if found.live), default=0)


def smallest_budget(run):
    found = re.search(r"the smallest budget is (\d+) bytes, of which (\d+)", run.err)
    return [int(number) for number in found.groups()] if found else None


def check_sweep(tally, subject, count):
    """Budgets from what is needed at most down to what is needed at least."""
    run, text, decisions = subject.compile("1TiB")
    if not tally.check(f"{subject.name} compiles", run.code == 0, first_line(run)):
        return
    plain, kept = replay(text), times(decisions, "fitted")
    check_replay(tally, subject.name, plain)
    most = max(found.arena for found in plain.values())
    refused, _, _ = subject.compile(1)
    tally.check(f"{subject.name}: exit 7", refused.code == OUT_OF_MEMORY, first_line(refused))
    limits = smallest_budget(refused)
    if not tally.check(f"{subject.name}: names the least", limits is not None, first_line(refused)):
        return
    least, fixed = limits
    below, _, _ = subject.compile(least - 64)
    tally.check(f"{subject.name}: less is refused", below.code == OUT_OF_MEMORY, str(below.code))
    start, last_extra, rows = time.monotonic(), None, []
    # Sums are made in another order where logits are in chunks.
    expected, gap = {False: plain}, largest_gap(plain)
    for i in range(count):
        budget = least + (fixed + most - least) * i // (count - 1)
        run, text, decisions = subject.compile(budget)
        title = f"{subject.name} in {budget} bytes"
        if not tally.check(title, run.code == 0, first_line(run)):
            continue
        bounded = replay(text)
        check_replay(tally, title, bounded)
        peak = fixed + max(found.arena for found in bounded.values())
        tally.check(f"{title}: peak", peak <= budget, str(peak))
        in_chunks = is_chunked(decisions)
        tally.check(
            f"{title}: bits", same_results(expected.setdefault(in_chunks, bounded), bounded)
        )
        gap = max(gap, largest_gap(bounded))
        extra = extra_time(decisions, kept)
        tally.check(
            f"{title}: no slower than with less",
            last_extra is None or extra <= last_extra + 1e-12, f"{extra} after {last_extra}",
        )  # fmt: skip
        last_extra = extra
        rows.append((budget - fixed, extra, run.seconds, " in chunks" if in_chunks else ""))
    print(f"{subject.name}: {time.monotonic() - start:.1f} s, arena {most >> 20} MiB at most")
    for arena, extra, seconds, how in rows:
        share = f"{arena / most - 1:+.1%}"
        print(f"  {arena >> 20} MiB ({share}): {extra:+.3%} time{how}, compiled in {seconds:.1f} s")
    print(f"  arenas at most {gap:.3%} larger than what is live")


def check_largest_batch(tally, work, budget):
    """The batch of gpt2 124M for a budget: its plan fits, that of one more does not."""
    model = os.path.join(work, "gpt2_any.onnx")
    trainable.save_gpt(model, "batch")
    subject = Subject(work, "gpt2_any", model, "causal_lm", '"auto"')
    flags = [f"--train={subject.recipe}", "--weights=none", "--check", "--json", "--threads=2"]
    run = run_tool("tcc", model, *flags, f"--memory-budget={budget}", timeout=1800)
    if not tally.check(f"gpt2 in {budget}", run.code == 0, first_line(run)):
        return
    samples = json.loads(run.out)["micro_batch"]
    print(f"gpt2 124M in {budget}: {samples} samples, found in {run.seconds:.1f} s")
    for count, code in ((samples, 0), (samples + 1, OUT_OF_MEMORY)):
        fixed = Subject(work, "gpt2_fixed", model, "causal_lm", count)
        run, text, _ = fixed.compile(budget)
        title = f"gpt2 with {count} samples in {budget}"
        tally.check(title, run.code == code, first_line(run))
        if not code and text:
            check_replay(tally, title, replay(text))


def check_broken_plan(tally, text):
    """The replay finds a buffer that lies where another one is in use."""
    offsets = re.finditer(r"bound \d{3,} offset (\d+)", text)
    start, end = max(offsets, key=lambda found: int(found[1])).span(1)
    broken = f"{text[:start]}0{text[end:]}"
    problems = [p for found in replay(broken).values() for p in found.problems]
    tally.check("a broken plan is found", bool(problems))
    # A sum over rows cannot be computed in place.
    broken = re.sub(r"(graph\.fused <contraction> \([^)]*\)) (:|\{)",
                    r"\1 {in_place = [array<i64: 0, 0>]} :", text, count=1)  # fmt: skip
    problems = [p for found in replay(broken).values() for p in found.problems]
    tally.check("a wrong pair is found", any("reads elsewhere" in p for p in problems))


def train(tally, subject, data, budget):
    """The trained weights, and the losses."""
    package, weights, logs = (
        os.path.join(subject.work, name) for name in ("m.tcc", "m.safetensors", "logs")
    )
    flags = [f"--train={subject.recipe}", f"--memory-budget={budget}"]
    call("tcc", subject.model, "-q", "-o", package, *flags)
    title = f"{subject.name} in {budget}"
    unrecorded.check(tally, title, subject.model, package, flags, subject.work)
    flags = ["--data", f"npz:{data}", "--steps", 4, "--log-dir", logs, "-q"]
    call("tcc-run", "train", package, *flags, "--export", weights)
    with open(weights, "rb") as stream, open(os.path.join(logs, "metrics.jsonl")) as lines:
        return stream.read(), [json.loads(line)["loss"] for line in lines]


def check_numbers(tally, subject, data, kinds):
    """Training with little memory gives the same bits, or the same numbers where
    the logits are in chunks. Looks for a budget of each of `kinds`; returns which
    kinds were found."""
    least, fixed = smallest_budget(subject.compile(1)[0])
    _, text, _ = subject.compile("1TiB")
    most = fixed + max(found.arena for found in replay(text).values())
    budgets = {}  # the smallest of each kind
    for budget in (least + (most - 1 - least) * i // 8 for i in range(9)):
        budgets.setdefault(is_chunked(subject.compile(budget)[2]), budget)
        if kinds <= set(budgets):
            break
    weights, losses = train(tally, subject, data, "1TiB")
    for in_chunks, budget in budgets.items():
        title = f"{subject.name} trained in {budget} bytes"
        found, found_losses = train(tally, subject, data, budget)
        if not in_chunks:
            tally.check(f"{title}: bits", (found, found_losses) == (weights, losses))
            continue
        tally.check(f"{title}: sums are made in another order", found != weights)
        tally.check(f"{title}: losses", numpy.allclose(found_losses, losses, rtol=1e-6, atol=0))
        expected, found = (safetensors.numpy.load(x) for x in (weights, found))
        for name, value in expected.items():
            error = numpy.abs(found[name] - value).max() / numpy.abs(value).max()
            tally.check(f"{title}: {name}", error <= 1e-6, str(error))
    return set(budgets)


def check_training(tally, work, name):
    """A whole training of a small model."""
    loss, batch, data, *how = TRAININGS[name]
    model = os.path.join(FIXTURES, name + ".onnx")
    subject = Subject(work, name, model, loss, batch, *how)
    run, text, _ = subject.compile()
    if not tally.check(f"{name} compiles", run.code == 0, first_line(run)):
        return
    check_replay(tally, name, replay(text))
    check_broken_plan(tally, text)
    kinds = {False, name in IN_CHUNKS}
    found = check_numbers(tally, subject, os.path.join(FIXTURES, data + ".npz"), kinds)
    tally.check(f"{name}: kinds of plans", found == kinds, str(found))


def check_model(tally, work, name, sweeps):
    if name in sweeps:
        save, loss, batch, count = sweeps[name]
        model = os.path.join(work, name + ".onnx")
        save(model)
        check_sweep(tally, Subject(work, name, model, loss, batch), count)
    elif name.startswith("gpt2_in_"):
        check_largest_batch(tally, work, name.removeprefix("gpt2_in_"))
    else:
        check_training(tally, work, name)


def main():
    tally = Tally()
    is_long = sys.argv[1:2] == ["long"]
    names = sys.argv[2:] if is_long else sys.argv[1:]
    sweeps = LONG if is_long else SHORT
    every = [*LONG, *LARGEST_BATCHES] if is_long else [*TRAININGS, *SHORT]
    with tempfile.TemporaryDirectory() as work:
        for name in names or every:
            check_model(tally, work, name, sweeps)
    tally.close()


if __name__ == "__main__":
    main()
