"""The models that benchmarks run, compiled for static shapes."""

import os

from harness import first_line, run_tool
from models import cases, exports, wheels
from models.run import compile_flags


def all_subjects():
    """name: (folder maker, case)."""
    found = {}
    for name, case in (wheels.models() | wheels.models(long=True)).items():
        found[name] = (wheels, case)
    for name, case in exports.models().items():
        if name.endswith(".b1"):
            found[name.removesuffix(".b1")] = (exports, case)
    return found


def compile_subject(name, maker, case, work):
    """Paths of the model, its package in `work` and its first data set."""
    folder = maker.make(name if maker is wheels else name + ".b1", case)
    model = os.path.join(folder, "model.onnx")
    package = os.path.join(work, name + ".tcc")
    compiled = run_tool("tcc", model, "-o", package, "-q", *compile_flags(case))
    if compiled.code != 0:
        raise RuntimeError(first_line(compiled))
    return model, package, cases.data_sets(folder)[0]
