"""Packages for CUDA agree with those for the CPU: agree.py SUBJECTS [NAME...]

SUBJECTS are exports, wheels, training, or small: what each run of the tests looks
at. The emulated device looks for races, and its schedules must give the same bits:
all of them in f32, two in each narrow type, on a model's first data set. In f32
PyTorch or ONNX Runtime agree, too.
"""

import glob
import json
import os
import sys
import tempfile

import numpy as np
import onnx
from harness import SCHEDULES, Failure, Tally, call
from models import cases as model_cases
from models import wheels
from models.run import compile_flags
from numerics import families
from numerics.rows import Model, write_model
from onnx import numpy_helper
from safetensors.numpy import load_file
from training import cases

# The largest difference, as part of an output's largest value: results are rounded
# at the same places, but sums in another order may round to a neighbour.
TOLERANCES = {"f32": 1e-3, "bf16": 0.05, "f16": 0.01}
# What rounding to tf32 does to a product, at least.
LEAST_OF_TF32 = 1e-5
# Where a model amplifies what was rounded, of what the CPU is off from f32:
AMPLIFIED = 4
LARGEST_BOUND = 0.3
# By root mean square, narrow results may be so much farther from f32 than the CPU's,
# which keeps sums wide where libraries store them narrow; in training than that or
# torch.autocast's, which stores the same narrow.
NOISE_RATIO, NOISE = 3, {"bf16": 6e-3, "f16": 6e-4}
# The pitch of noise jumps: in bf16 the CPU itself is as far off as it can be.
NOT_COMPARABLE = ("swift_f0 bf16", "swift_f0.dyn bf16")
TRAINING_STEPS = {"cnn_digits": 8, "gpt2_tiny": 3}
SMALL_FAMILIES = (families.attention, families.normalization, families.reduction)
SMALL_WHEEL = "silero_vad_16k"
# In order, in reverse and at random: each narrow type takes one that f32 has, too.
USUAL, REVERSED, RANDOM = SCHEDULES["cuda"]
SCHEDULES_OF = {
    "f32": (USUAL, REVERSED, RANDOM),
    "bf16": (USUAL, REVERSED),
    "f16": (USUAL, RANDOM),
}


def distance(ours, expected):
    """The largest difference over the largest value; equal are what is not finite."""
    if ours.shape != expected.shape:
        return np.inf
    ours, expected = ours.astype(np.float64), expected.astype(np.float64)
    same = (ours == expected) | (np.isnan(ours) & np.isnan(expected))
    if same.all():
        return 0.0
    with np.errstate(invalid="ignore"):
        worst = np.max(np.abs(ours - expected)[~same])
    scale = np.max(np.abs(expected), where=np.isfinite(expected), initial=0)
    return float(worst / scale) if np.isfinite(worst) and scale else np.inf


def noise(ours, expected):
    """The root mean square of the differences, over that of the values."""
    finite = np.isfinite(expected) & np.isfinite(ours)
    ours, expected = (x[finite].astype(np.float64) for x in (ours, expected))
    scale = np.linalg.norm(expected)
    return float(np.linalg.norm(ours - expected) / scale) if scale else 0.0


def check_noise(found, cpu, references, precision, peer=0):
    """`peer`: how far PyTorch's autocast is from f32, if that is known."""
    for name, reference in references.items():
        ours, usual = noise(found[name], reference), noise(cpu[name], reference)
        if ours > NOISE_RATIO * max(usual, NOISE[precision], peer):
            raise Failure(f"{name} is off f32 by {ours:.1e}, the CPU's by {usual:.1e}")


def find_distance(found, expected):
    if found.keys() != expected.keys():
        raise Failure(f"{sorted(found)}, not {sorted(expected)}")
    return max(distance(found[name], expected[name]) for name in found)


def run_both(run, schedules):
    """CUDA's results and the CPU's; run(target, schedule) gives them by name."""
    expected, first = run("cpu", None), None
    for schedule in schedules:
        found = run("cuda", schedule)
        first = first or found
        for name, value in found.items():
            if value.tobytes() != first[name].tobytes():
                raise Failure(f"{schedule}: other bits in {name}")
    return first, expected


def read_references(data):
    """The outputs that a data set holds."""
    paths = glob.glob(f"{data}/output_*.pb")
    return {
        os.path.basename(path)[:-3]: numpy_helper.to_array(onnx.load_tensor(path))
        for path in paths
    }


def compare_model(model, data_sets, precision, flags):
    """The largest distance to the CPU's results, in f32 also to the references; and
    how large it may be."""
    worst, bound = 0, TOLERANCES[precision]
    with tempfile.TemporaryDirectory() as work:
        for target in ("cpu", "cuda"):
            call("tcc", model, "-q", "-o", f"{work}/{target}.tcc", "--precision",
                 precision, *flags, target=target)  # fmt: skip

        def run(target, schedule):
            out = tempfile.mkdtemp(dir=work)
            call("tcc-run", "run", f"{work}/{target}.tcc", "--inputs-dir", data,
                 "--output-dir", out, target=target, schedule=schedule)  # fmt: skip
            return {name[:-4]: np.load(f"{out}/{name}") for name in os.listdir(out)}

        schedules = SCHEDULES_OF[precision]
        for data in data_sets:
            found, expected = run_both(run, schedules)
            schedules = schedules[:1]
            worst = max(worst, find_distance(found, expected))
            references = read_references(data)
            if references and precision == "f32":
                worst = max(worst, find_distance(found, references))
            elif references:
                check_noise(found, expected, references, precision)
                bound = max(bound, AMPLIFIED * find_distance(expected, references))
    return worst, min(bound, LARGEST_BOUND)


def compare_training(name, steps, precision):
    """The same of parameters and slots after some steps."""
    case, kept = cases.single(name), cases.FIXTURES
    data = os.path.join(kept, f"{cases.MODELS[name].data}.npz")
    settings = [part for key in cases.settings(case) for part in ("--set", key)]
    with tempfile.TemporaryDirectory() as work:

        def compile_step(target, precision):
            with open(f"{work}/recipe.toml", "w") as stream:
                stream.write(cases.recipe(name, case.optimizer, precision))
            call("tcc", os.path.join(kept, f"{name}.onnx"), "-q", "-o",
                 f"{work}/{target}.tcc", f"--train={work}/recipe.toml",
                 target=target)  # fmt: skip

        def run(target, schedule):
            out = tempfile.mkdtemp(dir=work)
            call("tcc-run", "train", f"{work}/{target}.tcc", "-q", "--no-shuffle",
                 "--data", f"npz:{data}", "--steps", steps, "--checkpoint-dir", out,
                 *settings, target=target, schedule=schedule)  # fmt: skip
            return load_file(f"{out}/step-{steps}/state.safetensors")

        compile_step("cpu", precision)
        compile_step("cuda", precision)
        found, expected = run_both(run, SCHEDULES_OF[precision])
        worst, bound = find_distance(found, expected), TOLERANCES[precision]
        if precision != "f32":
            compile_step("cpu", "f32")
            references = run("cpu", None)
            for key in [key for key in found if key.startswith(("step/", "set/"))]:
                del references[key], expected[key]
            with open(os.path.join(cases.FIXTURES, "precision.json")) as stream:
                peer = json.load(stream)[name][precision]
            check_noise(found, expected, references, precision, peer)
            bound = max(bound, AMPLIFIED * max(find_distance(expected, references), peer))
        return worst, min(bound, LARGEST_BOUND)


def check(tally, name, comparison, *arguments):
    if name in NOT_COMPARABLE:
        tally.skipped += 1
        return
    try:
        worst, bound = comparison(*arguments)
    except Failure as failure:
        tally.check(name, False, failure)
        return
    print(f"{name}: {worst:.1e}, at most {bound:.0e}", flush=True)
    tally.check(name, worst <= bound, f"differs by {worst:.1e}")


def check_model(tally, name, folder, precisions, flags=()):
    model, data_sets = f"{folder}/model.onnx", model_cases.data_sets(folder)
    for precision in precisions:
        check(tally, f"{name} {precision}", compare_model, model, data_sets, precision, flags)


def check_exports(tally, names):
    from models import exports

    for name in exports.CUT:
        if not names or name in names:
            check_model(tally, name, exports.make(f"{name}.b1", {}), TOLERANCES)


def check_wheels(tally, names, precisions=tuple(TOLERANCES)):
    known = wheels.models() | wheels.models(long=True)
    for name, case in known.items():
        if not names or name in names:
            folder = wheels.make(name, case)
            check_model(tally, name, folder, precisions, compile_flags(case))


def check_training(tally, names, steps=None, precisions=tuple(TOLERANCES)):
    for name, usual in TRAINING_STEPS.items():
        for precision in precisions if not names or name in names else ():
            check(tally, f"{name} training {precision}", compare_training, name,
                  steps or usual, precision)  # fmt: skip


def check_tf32(tally):
    """Libraries round operands where they may, kernels never do."""
    with tempfile.TemporaryDirectory() as folder:
        model, data = write_model(Model(list(families.products())), folder)
        results = []
        for precision, libraries in (("f32", "simulated"), ("tf32", "none"),
                                     ("tf32", "simulated")):  # fmt: skip
            package, out = f"{folder}/m.tcc", tempfile.mkdtemp(dir=folder)
            call("tcc", model, "-q", "-o", package, "--precision", precision,
                 target="cuda")  # fmt: skip
            environment = os.environ | {"TCC_CUDA_LIB": libraries}
            call("tcc-run", "run", package, "--inputs-dir", data, "--output-dir", out,
                 target="cuda", env=environment)  # fmt: skip
            results.append({name: np.load(f"{out}/{name}") for name in os.listdir(out)})
        exact, ours, rounded = results
        for name, value, least, most in (("kernels", ours, 0, LEAST_OF_TF32),
                                         ("libraries", rounded, LEAST_OF_TF32, 1e-3)):  # fmt: skip
            worst = find_distance(value, exact)
            tally.check(f"tf32 of {name}", least <= worst <= most, f"{worst:.1e} of f32")


def check_copies(tally, name="cnn_digits"):
    """Rounded copies of parameters follow those that are restored, or given by a file."""
    data = os.path.join(cases.FIXTURES, f"{cases.MODELS[name].data}.npz")
    with tempfile.TemporaryDirectory() as work:
        with open(f"{work}/recipe.toml", "w") as stream:
            stream.write(cases.recipe(name, cases.single(name).optimizer, "bf16"))

        def compile_step(package, *flags):
            call("tcc", os.path.join(cases.FIXTURES, f"{name}.onnx"), "-q", "-o", package,
                 f"--train={work}/recipe.toml", *flags, target="cuda")  # fmt: skip

        def train(package, folder, steps, *flags):
            call("tcc-run", "train", package, "-q", "--no-shuffle", "--data", f"npz:{data}",
                 "--steps", steps, "--checkpoint-dir", f"{work}/{folder}", *flags,
                 target="cuda")  # fmt: skip
            return load_file(f"{work}/{folder}/step-{steps}/state.safetensors")

        def check_same(what, ours, expected):
            differing = [key for key in expected if (ours[key] != expected[key]).any()]
            tally.check(what, expected and not differing, f"other bits in {differing}")

        compile_step(f"{work}/m.tcc")
        whole = train(f"{work}/m.tcc", "whole", 4)
        train(f"{work}/m.tcc", "halves", 2, "--export", f"{work}/two.safetensors")
        check_same("copies when resumed", train(f"{work}/m.tcc", "halves", 4, "--resume"), whole)
        begun = train(f"{work}/m.tcc", "begun", 1, "--init", f"{work}/two.safetensors")
        compile_step(f"{work}/two.tcc", f"--weights={work}/two.safetensors")
        check_same("copies of a file", begun, train(f"{work}/two.tcc", "two", 1))


def check_small(tally, names):
    """What numerics leaves out: narrow types of more kinds of kernels than products,
    a model with a recurrent cell, a training step."""
    check_tf32(tally)
    check_copies(tally)
    narrow = ("bf16", "f16")
    for family in SMALL_FAMILIES:
        with tempfile.TemporaryDirectory() as folder:
            model, data = write_model(Model(list(family())), folder)
            for precision in narrow:
                check(tally, f"{family.__name__} {precision}", compare_model, model, [data],
                      precision, ())  # fmt: skip
    check_wheels(tally, [SMALL_WHEEL], narrow)
    # After one step in bf16 a gradient depends on which of two equal pixels a pool took.
    check_training(tally, ["cnn_digits"], steps=1, precisions=("f32", "f16"))


def main(subjects, names):
    tally = Tally()
    {
        "exports": check_exports,
        "wheels": check_wheels,
        "training": check_training,
        "small": check_small,
    }[subjects](tally, names)
    tally.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
