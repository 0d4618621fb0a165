"""The operators that the importer knows."""

import glob
import os
import re

from harness import ROOT


def read_families():
    """Family of each operator, from the importer's tables."""
    families = {}
    for path in glob.glob(os.path.join(ROOT, "frontends/onnx/*.cpp")):
        with open(path) as stream:
            rows = re.findall(
                r'^    \{"(\w+)", \d+, \w+,\s+import', stream.read(), re.M
            )
        for op in rows:
            families[op] = os.path.basename(path)[: -len(".cpp")]
    return families


def read_versions():
    """Each operator of ONNX's own domain with the first version of a row."""
    for path in glob.glob(os.path.join(ROOT, "frontends/onnx/*.cpp")):
        with open(path) as stream:
            rows = re.findall(
                r'^    \{"(\w+)", (\d+), \w+,\s+import([^}]*)\}', stream.read(), re.M
            )
        for op, since, rest in rows:
            if "Domain" not in rest and '"ai.' not in rest:
                yield op, int(since)
