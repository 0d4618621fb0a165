"""Writes a model in ONNX's textual syntax, of which # starts a comment.

  text-to-onnx.py TEXT MODEL

The parser is a module of its own inside onnx, whose whole takes ten times as
long to import.
"""

import glob
import importlib.util
import sys


def load_parser():
    (folder,) = importlib.util.find_spec("onnx").submodule_search_locations
    name = "onnx_cpp2py_export"
    (path,) = glob.glob(f"{folder}/{name}*.so")
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.parser


with open(sys.argv[1]) as stream:
    ok, problem, model = load_parser().parse_model(stream.read())
if not ok:
    sys.exit(problem.decode() if isinstance(problem, bytes) else problem)
with open(sys.argv[2], "wb") as stream:
    stream.write(model)
