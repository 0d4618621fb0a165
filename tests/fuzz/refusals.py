"""What is refused, with which exit code, naming what: one row per case.

Every refusal leaves no output file and says something in plain lines.
"""

import json
import os
import re
import struct
import subprocess
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import save_file

from harness import BIN, Tally, first_line, run_tool

FEATURES = 4


def small_model(nodes, inputs, outputs, weights=()):
    graph = helper.make_graph(nodes, "small", inputs, outputs, list(weights))
    opsets = [helper.make_opsetid("", 18)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def floats(name, *shape):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def linear(batch="batch", op="MatMul"):
    weight = np.arange(FEATURES * 3, dtype=np.float32).reshape(FEATURES, 3)
    return small_model(
        [helper.make_node(op, ["x", "w"], ["y"], name="/linear")],
        [floats("x", batch, FEATURES)],
        [floats("y", batch, 3)],
        [numpy_helper.from_array(weight, "w")],
    )


def gather():
    table = np.arange(8, dtype=np.float32).reshape(4, 2)
    return small_model(
        [helper.make_node("Gather", ["table", "i"], ["y"], name="/lookup")],
        [helper.make_tensor_value_info("i", TensorProto.INT64, [3])],
        [floats("y", 3, 2)],
        [numpy_helper.from_array(table, "table")],
    )


def external(location, offset=0):
    """linear() with its weight in another file."""
    model = linear()
    weight = model.graph.initializer[0]
    entries = dict(location=location, offset=str(offset), length=str(FEATURES * 12))
    weight.ClearField("raw_data")
    weight.data_location = TensorProto.EXTERNAL
    for key, value in entries.items():
        weight.external_data.add(key=key, value=value)
    return model


def misplaced():
    """linear() with the elements of its weight in the field of integers."""
    model = linear()
    weight = model.graph.initializer[0]
    weight.ClearField("raw_data")
    weight.int32_data.extend(range(FEATURES * 3))
    return model


def narrow():
    """linear() with a weight of 4 bits an element, which only some ops read."""
    model = linear()
    weight = model.graph.initializer[0]
    weight.data_type, weight.raw_data = TensorProto.INT4, bytes(FEATURES * 3 // 2)
    return model


class Refusals:
    """Runs tools in a folder of their own and checks how they refuse."""

    def __init__(self, folder):
        self.folder = folder
        self.tally = Tally()

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, content):
        if isinstance(content, onnx.ModelProto):
            content = content.SerializeToString()
        if isinstance(content, np.ndarray):
            np.save(self.path(name), content)
        else:
            with open(self.path(name), "wb") as stream:
                stream.write(content)
        return self.path(name)

    def expect(self, name, code, words, tool, *arguments):
        """The tool exits with `code`, its message has each of `words`."""
        before = set(os.listdir(self.folder))
        run = run_tool(tool, *arguments, cwd=self.folder)
        missing = [word for word in words if word not in run.err]
        left = sorted(set(os.listdir(self.folder)) - before)
        self.tally.check(f"{name}: exit {code}", run.code == code, first_line(run))
        self.tally.check(
            f"{name}: message", not missing, f"no {missing} in {run.err[:300]!r}"
        )
        self.tally.check(f"{name}: no file", not left, f"left {left}")

    def make_package(self, name, model):
        path, package = self.write(name + ".onnx", model), self.path(name + ".tcc")
        run = run_tool("tcc", path, "-q", "-o", package, "--dim", "batch=1..8")
        if run.code == 2 and "batch" in run.err:
            run = run_tool("tcc", path, "-q", "-o", package)
        self.tally.check(f"{name} compiles", run.code == 0, first_line(run))
        return package


def check_models(r):
    def refuse(name, code, words, content, *options):
        path = r.write("bad.onnx", content)
        r.expect(name, code, words, "tcc", path, "-q", "-o", "out.tcc", *options)

    refuse("zero-byte model", 3, ["bad.onnx"], b"")
    refuse("text as model", 3, ["bad.onnx"], b"no model at all\n")
    refuse("misplaced data", 3, ["'w'", "float"], misplaced())
    refuse("unknown op", 4, ["/linear", "Fancy"], linear(op="Fancy"))
    refuse("narrow weight", 4, ["/linear", "'w'", "int4"], narrow())
    refuse("unknown dim", 2, ["rows"], linear(), "--dim", "rows=3")
    refuse("unknown input", 2, ["z"], linear(), "--input-shape", "z=1x2")
    refuse("length of a tensor", 2, ["'x'"], linear(), "--input-length=x=1")
    refuse("unknown flag", 2, ["--target"], linear(), "--targat=cpu")
    refuse("missing external data", 5, ["w.bin"], external("w.bin"))
    refuse("external data above", 3, ["../w.bin"], external("../w.bin"))
    absolute = r.write("w.bin", bytes(FEATURES * 12))
    refuse("absolute external data", 3, [absolute], external(absolute))
    refuse("external data too short", 3, ["w.bin"], external("w.bin", 16))
    os.symlink("/etc/hostname", r.path("link.bin"))
    refuse("link to outside", 3, ["link.bin"], external("link.bin"))
    r.expect("missing model", 5, ["none.onnx"], "tcc", "none.onnx", "-o", "out.tcc")
    r.expect("no model", 2, [], "tcc", "-o", "out.tcc")


    for flag in ("--dim=batch", "--dim=batch=3..1", "--input-shape=x=2xx4",
                 "--input-value=x", "--input-length=x=-1", "--state=y"):  # fmt: skip
        refuse(f"malformed {flag}", 2, [flag.split("=")[0]], linear(), flag)


def reshape():
    """y = reshape(x, shape): the values of `shape` decide the type of y."""
    return small_model(
        [helper.make_node("Reshape", ["x", "shape"], ["y"], name="/reshape")],
        [floats("x", 4, 3)],
        [floats("y", 2, 6)],
        [numpy_helper.from_array(np.array([2, 6], np.int64), "shape")],
    )


def gelu(divisor=np.sqrt(2)):
    """x / 2 (1 + erf(x / sqrt2)): the value of `sqrt2` makes it a GELU."""
    weights = {"one": 1, "half": 0.5, "sqrt2": divisor}
    nodes = [("Div", "x", "sqrt2", "a"), ("Erf", "a", "b"), ("Add", "b", "one", "c")]
    nodes += [("Mul", "x", "c", "d"), ("Mul", "d", "half", "y")]
    return small_model(
        [helper.make_node(op, ins, [out]) for op, *ins, out in nodes],
        [floats("x", 4)],
        [floats("y", 4)],
        [numpy_helper.from_array(np.array(v, np.float32), k) for k, v in weights.items()],
    )


def check_weights(r):
    """Values from a file, when compiling: tcc --weights=FILE."""

    def refuse(name, code, words, tensors, model=linear):
        path, weights = r.write("model.onnx", model()), r.path("new.safetensors")
        save_file(tensors, weights)
        flags = ["-q", "-o", "out.tcc", f"--weights={weights}"]
        r.expect(name, code, words, "tcc", path, *flags)

    good = np.zeros((FEATURES, 3), np.float32)
    refuse("no such weight", 2, ["'v'"], {"v": good})
    refuse("weight of another shape", 2, ["'w'", "shape"], {"w": good.T.copy()})
    refuse("weight of another type", 2, ["'w'", "type"], {"w": good.astype(np.int32)})
    shape = {"shape": np.array([6, 2], np.int64)}
    refuse("structural constant", 3, ["'shape'"], shape, reshape)
    path = r.write("model.onnx", linear())
    r.expect("missing weights", 5, ["none.st"], "tcc", path, "--weights=none.st")
    package = r.make_package("reshape", reshape())
    weights = r.path("new.safetensors")
    save_file(shape, weights)
    flags = ["--random-inputs", f"--weights={weights}"]
    words = ["'shape'", "structural"]
    r.expect("structural at load", 3, words, "tcc-run", "run", package, *flags)
    check_pattern(r)
    bad = r.write("bad.safetensors", b"no weights")
    r.expect("bad weights", 3, ["bad.safetensors"], "tcc", path, f"--weights={bad}")


def check_pattern(r):
    """A constant that decided a pattern is refused when the package is loaded;
    the same value is not."""
    package, same, other = r.make_package("gelu", gelu()), "same.st", "other.st"
    save_file({"sqrt2": np.array(np.sqrt(2), np.float32)}, r.path(same))
    save_file({"sqrt2": np.array(1.5, np.float32)}, r.path(other))
    run = ["tcc-run", "run", package, "--random-inputs", "--weights"]
    r.expect("constant of a pattern", 3, ["'sqrt2'"], *run, other)
    r.expect("the same constant", 0, [], *run, same)
    decisions = r.path("decisions.json")
    run_tool("tcc", r.path("gelu.onnx"), "-o", package, "--dump-decisions", decisions)
    with open(decisions) as stream:
        found = "graph.gelu" in stream.read()
    r.tally.check("gelu is recognised", found, "no decision says so")


def read_features():
    """Of this CPU, by the names that LLVM has for them."""
    with open("/proc/cpuinfo") as stream:
        flags = next(line for line in stream if line.startswith("flags")).split()
    names = {"abm": "lzcnt", "bmi1": "bmi", "pni": "sse3"}
    return {plain_name(names.get(flag, flag)) for flag in flags}


def plain_name(feature):
    return re.sub("[-_.]", "", feature)


def check_cpus(r):
    """A package for other makers' CPUs runs where there are their features."""
    model, others = r.write("model.onnx", linear()), ("znver5", "sapphirerapids")
    refused, lacking, sizes = [], [], []
    for cpus in (*others, "x86-64-v3," + ",".join(others)):
        package = r.path(cpus + ".tcc")
        run = run_tool("tcc", model, "-q", "-o", package, f"--cpu={cpus}")
        r.tally.check(f"compiles for {cpus}", run.code == 0, first_line(run))
        run = run_tool("tcc-run", "run", package, "--random-inputs")
        lacks = run.code == 8 and " lacks '" in run.err and f"' for {cpus}" in run.err
        refused.append(lacks)
        r.tally.check(f"{cpus}: runs or exit 8", run.code == 0 or lacks, run.err)
        info = json.loads(run_tool("tcc-run", "info", package, "--json").out)
        sizes.append((info["weights"], info["weight_bytes"]))
        needed = [{plain_name(f) for f in row["features"]} for row in info["variants"]]
        lacking.append(all(features - read_features() for features in needed))
    r.tally.check("a lacking CPU is refused", refused == lacking, f"{refused}, not {lacking}")
    r.tally.check("a fitting variant is taken", not refused[2], str(refused))
    r.tally.check("weights are shared", len(set(sizes)) == 1, str(sizes))


def check_inputs(r, package):
    def refuse(name, code, words, *arguments):
        r.expect(name, code, words, "tcc-run", "run", package, *arguments)

    good = np.zeros((2, FEATURES), np.float32)
    wrong_shape = r.write("shape.npy", np.zeros((2, FEATURES + 1), np.float32))
    wrong_type = r.write("type.npy", good.astype(np.float64))
    too_many = r.write("many.npy", np.zeros((9, FEATURES), np.float32))
    fine = r.write("fine.npy", good)
    refuse("wrong shape", 2, ["x"], "--input", f"x={wrong_shape}")
    refuse("batch over its bound", 2, ["8"], "--input", f"x={too_many}")
    refuse("wrong type", 2, ["x"], "--input", f"x={wrong_type}")
    refuse("unknown input", 2, ["q"], "--input", f"q={fine}")
    refuse("missing input", 2, ["x"])
    refuse("missing file", 5, ["none.npy"], "--input", "x=none.npy")
    refuse("bad npy", 3, ["bad.npy"], "--input", f"x={r.write('bad.npy', b'no')}")
    refuse("unknown flag", 2, ["--input"], "--imput", f"x={fine}")


def check_packages(r, package):
    with open(package, "rb") as stream:
        whole = stream.read()

    def refuse(name, code, words, content):
        path = r.write("bad.tcc", content)
        r.expect(name, code, words, "tcc-run", "run", path, "--random-inputs")

    # runtime/package/Format.h: the major version follows the magic.
    (major,) = struct.unpack_from("<H", whole, 8)
    other = whole[:8] + struct.pack("<H", major + 1) + whole[10:]
    refuse("another major version", 3, [str(major + 1)], other)
    refuse("zero-byte package", 3, ["bad.tcc"], b"")
    refuse("model as package", 3, ["bad.tcc"], linear().SerializeToString())
    refuse("longer package", 3, ["bad.tcc"], whole + b"x")
    r.expect("missing package", 5, ["none.tcc"], "tcc-run", "run", "none.tcc")


def check_index(r):
    package = r.make_package("gather", gather())
    for bad in (4, -5):
        path = r.write("index.npy", np.array([0, bad, 1], np.int64))
        options = ["run", package, "--input", f"i={path}"]
        r.expect(f"index {bad}", 2, ["/lookup"], "tcc-run", *options)


# Run in a mount namespace of its own: a disk of 64 KiB, all taken.
FULL_DISK = """
mount -t tmpfs -o size=64k none "$1" || exit 125
head -c 65536 /dev/zero >"$1/ballast"
"$2" "$3" "$4" "$1/out" "${@:5}"
code=$?
find "$1" -type f -printf '%P\\n'
exit $code
"""


def check_full_disk(r, package, model):
    disk = r.path("disk")
    os.mkdir(disk)

    def run(tool, *arguments):
        command = ["unshare", "-rm", "bash", "-c", FULL_DISK, "bash", disk]
        command += [os.path.join(BIN, tool), *arguments]
        return subprocess.run(command, capture_output=True, text=True)

    rows = {
        "compiling to a full disk": ["tcc", model, "-o"],
        "outputs to a full disk": ["tcc-run", "run", "--output-dir", package],
    }
    rows["outputs to a full disk"] += ["--random-inputs", "--dim", "batch=8"]
    for name, (tool, *arguments) in rows.items():
        done = run(tool, *arguments)
        if done.returncode == 125 or done.stderr.startswith("unshare:"):
            r.tally.skipped += 1
            continue
        left = [name for name in done.stdout.split() if name != "ballast"]
        message = f"exit {done.returncode}, left {left}: {done.stderr[:200]}"
        r.tally.check(f"{name}: exit 5", done.returncode == 5, message)
        r.tally.check(f"{name}: message", bool(done.stderr.strip()), message)
        r.tally.check(f"{name}: no file", not left, message)


def main():
    with tempfile.TemporaryDirectory() as folder:
        r = Refusals(folder)
        check_models(r)
        check_weights(r)
        check_cpus(r)
        package = r.make_package("linear", linear())
        if os.path.exists(package):
            check_inputs(r, package)
            check_packages(r, package)
            check_full_disk(r, package, r.path("linear.onnx"))
        check_index(r)
        r.tally.close()


if __name__ == "__main__":
    main()
