"""The models that benchmarks run, compiled for static shapes."""

import fnmatch
import os
import sys

from bench import compaction, recurrent
from harness import Failure, first_line, run_tool
from models import cases, exports, wheels
from models.run import compile_flags


def select_subjects(patterns):
    """name: (folder maker, case) of the names that match, like 'ocr*,lstm.*' or
    'resnet50.b8' for a batch of eight; of all whole models without patterns."""
    if not patterns:
        return whole_models()
    known = whole_models()
    for maker in (recurrent, compaction):
        known.update((name, (maker, case)) for name, case in maker.models().items())
    known.update(
        (name, (exports, case))
        for name, case in exports.models().items()
        if name.endswith(".b8")
    )
    return {name: known[name] for name in matching(known, patterns)}


def matching(names, patterns):
    """Those that match any of the patterns, each of which must match one."""
    found = {}
    for pattern in patterns.split(","):
        matches = fnmatch.filter(names, pattern)
        if not matches:
            raise SystemExit(f"no model is called '{pattern}'")
        found |= dict.fromkeys(matches)
    return list(found)


def whole_models():
    found = {}
    for name, case in (wheels.models() | wheels.models(long=True)).items():
        found[name] = (wheels, case)
    for name, case in exports.models().items():
        if name.endswith(".b1"):
            found[name.removesuffix(".b1")] = (exports, case)
    return found


def compile_subject(name, maker, case, work):
    """Paths of the model, its package in `work` and its first data set."""
    made = name + ".b1" if maker is exports and "." not in name else name
    folder = maker.make(made, case)
    model = os.path.join(folder, "model.onnx")
    package = os.path.join(work, name + ".tcc")
    compiled = run_tool("tcc", model, "-o", package, "-q", *compile_flags(case))
    if compiled.code != 0:
        raise RuntimeError(first_line(compiled))
    return model, package, cases.data_sets(folder)[0]


def measure_all(subjects, measure, show):
    """The rows that `measure(name, *subject)` gives, each shown when it is there,
    and a line for each model that could not be measured: its name and why."""
    rows, failed = [], []
    for name, subject in subjects.items():
        try:
            rows.append(measure(name, *subject))
        except (Failure, RuntimeError) as error:
            failed.append(f"{name}: {error}")
            print(failed[-1], file=sys.stderr)
            continue
        print(show(rows[-1]), flush=True)
    return rows, failed
