"""Compiles whole models, runs them and compares with the references.

  run.py wheels|long-wheels [NAME...]
  run.py exports [PATTERN...]    a table of MODEL.SIZE.VARIANT; patterns have *
  run.py bf16 [NAME...]
  run.py programs [NAME...]      what torch.export saves

Comparison is tcc-run's, at the default tolerances of the command line; of bf16
within a part of the largest output.
"""

import os
import sys
import tempfile

from harness import TARGET, Tally, first_line, run_tool
from models import cases, determinism, planned, unrecorded, wheels

# What an export in bf16 may be off from PyTorch's f32, of the largest output.
# PyTorch's own autocast is 0.15 off on resnet50, whose random weights amplify.
BF16_TOLERANCES = {"resnet50.b1": 0.15, "vit_b_16.b1": 0.02, "bert_base.b1": 0.03}


def compile_flags(case):
    """The flags that bind what the model leaves open."""
    flags = []
    for name, shape in case.get("shapes", {}).items():
        flags += ["--input-shape", f"{name}={'x'.join(map(str, shape))}"]
    for name, size in case.get("dims", {}).items():
        flags += ["--dim", f"{name}={size}"]
    for name, value in case.get("fixed", {}).items():
        flags += ["--input-value", f"{name}={value}"]
    if "precision" in case:
        flags += ["--precision", case["precision"]]
    return flags


def check(tally, name, case, folder, work):
    package = os.path.join(work, name + ".tcc")
    model = os.path.join(folder, "model.onnx")
    flags = compile_flags(case)
    compiled = run_tool("tcc", model, "-o", package, "-q", *planned.FLAGS, *flags)
    if not tally.check(f"{name} compiles", compiled.code == 0, first_line(compiled)):
        return
    print(f"{name}: compiled in {compiled.seconds:.1f} s", flush=True)
    for data in cases.data_sets(folder):
        options = ["--inputs-dir", data, "--expect-dir", data]
        if "tolerance" in case:
            options += ["--rtol", 0, "--atol", case["tolerance"]]
        ran = run_tool("tcc-run", "run", package, *options)
        label = f"{name} {os.path.basename(data)}"
        tally.check(label, ran.code == 0, first_line(ran))
    unrecorded.check(tally, name, model, package, flags, work)
    planned.check(tally, name, package, compiled.out)
    if name in determinism.MODELS and TARGET == "cpu":
        determinism.check_package(tally, name, package, flags, folder, work)
        determinism.check_runs(tally, name, package, folder)
    os.remove(package)


def check_wheels(tally, source, names):
    models = wheels.models(long=source == "long-wheels")
    with tempfile.TemporaryDirectory() as work:
        for name, case in models.items():
            if not names or name in names:
                check(tally, name, case, wheels.make(name, case), work)
        if source == "wheels" and not names:
            planned.check_steps(tally, work)


def check_bf16(tally, names):
    from models import exports

    with tempfile.TemporaryDirectory() as work:
        for name, tolerance in BF16_TOLERANCES.items():
            case = {"precision": "bf16", "tolerance": tolerance}
            if not names or name in names:
                check(tally, name, case, exports.make(name, case), work)


def main(source, names):
    tally = Tally()
    if source == "exports":
        from models import variants

        variants.run(tally, names, compile_flags)
    elif source == "programs":
        from models import programs

        programs.run(tally, names)
    elif source == "bf16":
        check_bf16(tally, names)
    else:
        check_wheels(tally, source, names)
    tally.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
