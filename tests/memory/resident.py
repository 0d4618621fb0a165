"""What a session has in memory is what was planned: the pages of its arena, each of
which a step touches, and the bytes of all that it allocates."""

import json
import os
import tempfile

from harness import ROOT, Tally, call
from memory.session import PAGE, Session
from models import trainable

RECIPE = """
[loss]
kind = "{loss}"
[optimizer]
kind = "adamw"
[batch]
clip_norm = 1.0
"""
FIXTURES = os.path.join(ROOT, "tests/training/fixtures")


def compile_for(work, model, recipe, *flags):
    """The package's path, and what tcc says of it."""
    path, package = (os.path.join(work, name) for name in ("r.toml", "m.tcc"))
    with open(path, "w") as stream:
        stream.write(recipe)
    flags = [f"--train={path}", "--threads=1", "--json", "-o", package, *flags]
    return package, json.loads(call("tcc", model, *flags, target="cpu"))


def round_up(size):
    return -(-size // PAGE) * PAGE


def check_fresh(tally, package, plan):
    """Slots and sums of gradients, which are zero, wait for a step."""
    session = Session(package)
    size = plan["memory_bytes"]["variables"]
    [held] = [held for asked, held in session.pages.resident() if asked == size]
    session.close()
    variables = json.loads(call("tcc-run", "info", package, "--json"))["variables"]
    first = [v["bytes"] for v in variables if v["kind"] not in ("slot", "gradient")]
    # What lies beside them is on their first and last pages.
    limit = sum(first) + 2 * PAGE * len(variables)
    tally.check("fresh variables", held <= limit < size, f"{held} of {size}, {limit}")


def check(tally, name, package, plan):
    session = Session(package)
    session.run_all()
    session.step()
    rows = session.pages.resident()
    session.close()
    memory = plan["memory_bytes"]
    arena = memory["arena"]
    found = [held for asked, held in rows if asked == arena]
    tally.check(f"{name}: the arena is a block", len(found) == 1, str(rows))
    tally.check(f"{name}: it is resident", found == [round_up(arena)], f"{found}, {arena}")
    asked = [size for size, _ in rows]
    for kind in ("variables", "workers"):
        tally.check(f"{name}: {kind}", asked.count(memory[kind]) == 1, f"{memory}, {rows}")
    print(f"{name}: arena {arena} bytes, {found} resident; all blocks {rows}")


def main():
    tally = Tally()
    with tempfile.TemporaryDirectory() as work:
        resnet = os.path.join(work, "resnet18.onnx")
        trainable.save_resnet18(resnet, 16, extent=96)
        models = (
            ("gpt2_tiny", os.path.join(FIXTURES, "gpt2_tiny.onnx"), "causal_lm"),
            ("resnet18", resnet, "cross_entropy"),
        )
        for name, model, loss in models:
            recipe = RECIPE.format(loss=loss)
            package, plan = compile_for(work, model, recipe)
            check(tally, name, package, plan)
            # Halfway to what is needed at least.
            curve = compile_for(work, model, recipe, "--memory-budget=1TiB")[1]["memory"]["curve"]
            step = [p["bytes"] for p in curve if p["entry"] == "train_step"]
            fixed = plan["memory_bytes"]["total"] - plan["memory_bytes"]["arena"]
            budget = fixed + int(max(step) + min(step)) // 2
            whole = plan["memory_bytes"]["arena"]
            package, plan = compile_for(work, model, recipe, f"--memory-budget={budget}")
            arena = plan["memory_bytes"]["arena"]
            tally.check(f"{name} in {budget} bytes needs less", arena < whole, str(arena))
            check(tally, f"{name} in {budget} bytes", package, plan)
        check_fresh(tally, package, plan)  # of resnet18
    tally.close()


if __name__ == "__main__":
    main()
