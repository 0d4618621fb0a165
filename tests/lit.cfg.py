"""lit: .mlir files run tcc-opt, .test files the other tools."""

import os
import sys

import lit.formats

config.name = "tcc"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.tcc_binary_dir, "tests")

# FileCheck, not, count and split-file are LLVM's; python has onnx and numpy.
search = [config.tcc_bin_dir, config.llvm_bin_dir, os.environ["PATH"]]
config.environment["PATH"] = os.pathsep.join(search)
config.substitutions.append(("%python", sys.executable))
# Libraries of tests/frontends/plugin.
config.substitutions.append(("%plugins", f"{config.test_exec_root}/plugins"))
