"""The same package from the same model, the same bits from each run.

Packages are compiled with other numbers of jobs from another folder; runs take
1, 2 and 4 threads, RUNS times in all.
"""

import os
import shutil
import tempfile

from harness import Tally, first_line, run_tool
from models import wheels
from models.run import compile_flags

MODELS = ("ocr_cls", "magika")
RUNS = 100
THREADS = (1, 2, 4)


def contents(path):
    """A file's bytes, or those of a folder's files by name."""
    if os.path.isdir(path):
        return {n: contents(os.path.join(path, n)) for n in sorted(os.listdir(path))}
    with open(path, "rb") as stream:
        return stream.read()


def check_packages(tally, name, case, folder, work):
    """Compiles from two folders; gives one of the packages."""
    packages = []
    for jobs in (1, 2):
        place = os.path.join(work, name, "j" * jobs)
        shutil.copytree(folder, place)
        model, package = (os.path.join(place, n) for n in ("model.onnx", "m.tcc"))
        flags = ["-q", "-j", jobs, "-o", package, *compile_flags(case)]
        run = run_tool("tcc", model, *flags, cwd=place)
        if not tally.check(f"{name} -j {jobs}", run.code == 0, first_line(run)):
            return None
        packages.append(package)
    same = contents(packages[0]) == contents(packages[1])
    tally.check(f"{name}: same package", same, "bytes differ")
    return packages[0]


def check_runs(tally, name, package, data, work):
    out = os.path.join(work, name, "out")
    first, different = None, []
    for i in range(RUNS):
        threads = THREADS[i % len(THREADS)]
        options = ["--inputs-dir", data, "--output-dir", out, "--threads", threads]
        run = run_tool("tcc-run", "run", package, *options)
        if not run.code == 0:
            tally.check(f"{name} runs", False, first_line(run))
            return
        result = contents(out)
        first = first or result
        if result != first:
            different.append(f"run {i} with {threads} threads")
    tally.check(f"{name}: same bits", not different, f"not in {different[:3]}")


def main():
    tally, cases = Tally(), wheels.models()
    with tempfile.TemporaryDirectory() as work:
        for name in MODELS:
            folder = wheels.make(name, cases[name])
            package = check_packages(tally, name, cases[name], folder, work)
            if package:
                data = os.path.join(folder, "test_data_set_0")
                check_runs(tally, name, package, data, work)
    tally.close()


if __name__ == "__main__":
    main()
