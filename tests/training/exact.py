"""The same bits by any number of ranks: exact.py [WORLD...]

With parallel.exact the weights after 20 steps of 1 and WORLD (2) ranks have one digest, also
where a run changes its number of ranks, and in f64 they are those of a run that adds up as it
comes. With worlds given all cases are tried, by each transport.
"""

import hashlib
import shutil
import sys
import tempfile

from safetensors.numpy import load_file

import harness
from training import ranks

STEPS, BATCHES = 20, 4
CLIP = "[batch]\nclip_norm = 0.5\n"


def list_cases(folder, is_long):
    """Each with what it is beside its recipe: a tail, dropout, narrow products."""
    digits, text = ranks.fixture("digits.npz"), ranks.fixture("text.npz")
    mlp, cnn = ranks.fixture("mlp_digits.onnx"), ranks.fixture("cnn_digits.onnx")
    ranks.save_dropping(f"{folder}/dropping.onnx")
    scaled = ranks.recipe(ranks.ADAMW.replace("[params]", CLIP + "[params]"),
                          precision='loss_scale = "dynamic"')  # fmt: skip
    yield make_case("mlp", mlp, digits, scaled, ["--dim", "batch=16"])
    yield make_case("cnn", cnn, digits, ranks.recipe(ranks.SGD))
    # 17 batches of 30 and one of 2 samples: the last is filled up with what weighs nothing.
    tail = ranks.recipe(ranks.SGD, '[batch]\nmicro = 30\nlast = "pad"\n')
    yield make_case("dropout", f"{folder}/dropping.onnx", digits, tail)
    if not is_long:
        return
    narrow = ranks.recipe(ranks.ADAMW).replace('"f64"', '"bf16"')
    yield make_case("narrow", mlp, digits, narrow, ["--dim", "batch=16"])
    gpt2 = ranks.recipe(ranks.ADAMW, CLIP, loss="causal_lm", bucket="64KiB")
    yield make_case("gpt2", ranks.fixture("gpt2_tiny.onnx"), text, gpt2)


def make_case(name, model, data, recipe, flags=()):
    return ranks.Case(name, model, data, recipe, list(flags), BATCHES, 1e-12)


def compile_case(case, folder, precision, exact=BATCHES):
    kind = f'bucket = "1KiB"\nexact = {exact}\n' if exact else 'bucket = "1KiB"\n'
    bucket = next(line for line in case.recipe.splitlines() if line.startswith("bucket"))
    recipe = case.recipe.replace(bucket + "\n", kind).replace('"f64"', f'"{precision}"')
    return ranks.compile_case(case._replace(recipe=recipe), folder, f"-{precision}-{exact}")


class Runs:
    """Of one package."""

    def __init__(self, case, package):
        self.case, self.package = case, package

    def train(self, folder, world, launcher=(), steps=STEPS, more=()):
        out = f"{folder}/out.safetensors"
        flags = ["train", self.package, "--data", "npz:" + self.case.data, "-q", "--threads",
                 "1", "--steps", str(steps), "--export", out, *more]  # fmt: skip
        if launcher:
            prefix = [str(world) if word == "WORLD" else word for word in launcher]
            harness.call(shutil.which(prefix[0]), *prefix[1:], f"{harness.BIN}/tcc-run", *flags)
        else:
            harness.call("tcc-run", *flags, "--ranks", str(world))
        with open(out, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()

    def tensors(self, folder):
        return load_file(f"{folder}/out.safetensors")


def test_worlds(tally, folder, case, worlds, is_long):
    precision = "f32" if '"f64"' in case.recipe else "bf16"
    runs = Runs(case, compile_case(case, folder, precision))
    alone = runs.train(folder, 1)
    for world in worlds:
        launchers = ranks.LAUNCHERS if is_long else {"gloo": []}
        for transport, launcher in launchers.items():
            same = runs.train(folder, world, launcher) == alone
            tally.check(f"{case.name}: {world} ranks by {transport}, the bits of one", same)
    if case.name == "mlp":
        test_chain(tally, folder, runs, worlds, alone)


def test_chain(tally, folder, runs, worlds, alone):
    """Runs that end and go on with other numbers of ranks."""
    place, steps = f"{folder}/chain", 0
    for world in (max(worlds), 1, *worlds):
        steps += STEPS // (len(worlds) + 2)
        more = ["--checkpoint-dir", place, "--resume-if-any"]
        last = runs.train(folder, world, steps=steps, more=more)
    last = runs.train(folder, 1, steps=STEPS, more=more)
    tally.check("the bits of one in changing worlds", last == alone)


def test_values(tally, folder, case):
    """In f64 what is learned is what is learned without, though not to the same bits."""
    exact = Runs(case, compile_case(case, folder, "f64"))
    digest = exact.train(folder, 1)
    ours = exact.tensors(folder)
    free = Runs(case, compile_case(case, folder, "f64", None))
    other = free.train(folder, 1, more=["--set", f"accumulate={BATCHES}"])
    off = max(ranks.distance(ours[name], value) for name, value in free.tensors(folder).items())
    tally.check(f"{case.name}: without exact, in f64", off <= case.tolerance, f"{off:.1e}")
    tally.check(f"{case.name}: sums of another order", other != digest)


def test_refusals(tally, folder, case):
    package = compile_case(case, folder, "f32")
    train = ["tcc-run", "train", package, "--data", "npz:" + case.data, "--steps", "1"]
    refused = harness.run_tool(*train, "--ranks", "3")
    said = "is 4 batches, which 3 ranks cannot share; these numbers of ranks can: 1, 2, 4"
    tally.check("3 ranks", refused.code == 2 and said in refused.err, refused.err)
    refused = harness.run_tool(*train, "--set", "accumulate=4")
    said = "'accumulate' is no setting that changes at run time"
    tally.check("accumulate", refused.code == 2 and said in refused.err, refused.err)
    with open(package + ".toml", encoding="utf-8") as file:
        text = file.read()
    for size, code in (("64", 0), ("32", 2)):
        with open(f"{folder}/global.toml", "w", encoding="utf-8") as file:
            file.write(text.replace("[batch]", "[batch]\nmicro = 16\nglobal = 64"))
        harness.call("tcc", case.model, f"--train={folder}/global.toml", *case.flags, "-q",
                     "-o", f"{folder}/global.tcc")  # fmt: skip
        train[2] = f"{folder}/global.tcc"
        done = harness.run_tool(*train, "--set", f"global={size}")
        said = "global is 32 samples, expected 64: parallel.exact is 4 batches of 16"
        ok = done.code == code and (code == 0 or said in done.err)
        tally.check(f"global = {size}", ok, f"{done.code}: {done.err}")


def main(worlds):
    tally = harness.Tally()
    is_long = bool(worlds)
    with tempfile.TemporaryDirectory() as folder:
        cases = list(list_cases(folder, is_long))
        for case in cases:
            test_worlds(tally, folder, case, worlds or [2], is_long)
            if case.name == "mlp" or (is_long and case.name != "narrow"):
                test_values(tally, folder, case)
        test_refusals(tally, folder, cases[0])
    tally.close()


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]])
