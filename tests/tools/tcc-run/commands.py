"""tcc-run's commands, flags and exit codes, on hand-made packages.

  commands.py FOLDER_OF_WRITE_FIXTURE
"""

import json
import os
import resource
import struct
import subprocess
import sys
import tempfile
import zipfile

import harness
import trace_reader

KINDS = {"f": "<f4", "q": "<i8"}


def write_npy(path, kind, values, shape):
    header = f"{{'descr': '{KINDS[kind]}', 'fortran_order': False, 'shape': {shape}, }}\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header.encode())
        file.write(struct.pack(f"<{len(values)}{kind}", *values))


def read_floats(path):
    with open(path, "rb") as file:
        data = file.read()
    start = 10 + struct.unpack_from("<H", data, 8)[0]
    return list(struct.unpack(f"<{(len(data) - start) // 4}f", data[start:]))


class Suite:
    def __init__(self, tally, folder):
        self.tally = tally
        self.folder = folder
        self.package = f"{folder}/add_one.tcc"

    def path(self, name):
        os.makedirs(os.path.dirname(f"{self.folder}/{name}"), exist_ok=True)
        return f"{self.folder}/{name}"

    def expect(self, code, *arguments, says=""):
        """One run of the tool with this exit code and text on stderr."""
        done = harness.run_tool("tcc-run", *arguments)
        ok = done.code == code and says in done.err and done.err.count("\n") <= 1
        self.tally.check(" ".join(arguments), ok, f"{done.code}: {done.err}")
        return done


def test_symbols(suite):
    done = suite.expect(
        0, "bench", suite.package, "--random-inputs", "--dim", "batch=2",
        "--iterations", "1", "--symbols", says="add-symbol-file /tmp/tcc-",
    )  # fmt: skip
    image = done.err.split()[1]
    process = image.removeprefix("/tmp/tcc-").removesuffix(".so")
    with open(f"/tmp/perf-{process}.map") as file:
        names = {line.split()[2] for line in file}
    suite.tally.check("symbols", "add_one" in names, str(names))
    with open(image, "rb") as file:
        suite.tally.check("image", file.read(4) == b"\x7fELF")
    os.remove(f"/tmp/perf-{process}.map")
    os.remove(image)


def test_run(suite):
    x = suite.path("in/input_0.npy")
    write_npy(x, "f", range(8), (2, 4))
    out = suite.path("out")
    suite.expect(0, "run", suite.package, "--input", f"x={x}", "--output-dir", out)
    values = read_floats(f"{out}/output_0.npy")
    suite.tally.check("values", values == list(range(1, 9)), str(values))
    done = suite.expect(0, "run", suite.package, "--inputs-dir", suite.path("in"),
                        "--expect-dir", out, "--json")  # fmt: skip
    row = json.loads(done.out)["outputs"][0]
    wanted = {"name": "y", "dtype": "f32", "shape": [2, 4], "max_abs": 0.0, "ok": True}
    suite.tally.check("json", row == wanted, done.out)


def test_archives(suite):
    """The array with the input's name, stored or deflated; or the only one."""
    write_npy(suite.path("npz/x.npy"), "f", range(4), (1, 4))
    write_npy(suite.path("npz/z.npy"), "f", [9] * 4, (1, 4))
    archive, out = suite.path("npz/a.npz"), suite.path("from_npz")
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        for names in (["z", "x"], ["x"]):
            with zipfile.ZipFile(archive, "w", method) as file:
                for name in names:
                    file.write(suite.path(f"npz/{name}.npy"), f"{name}.npy")
            suite.expect(0, "run", suite.package, "--input", f"x={archive}",
                         "--output-dir", out)  # fmt: skip
            values = read_floats(f"{out}/output_0.npy")
            suite.tally.check("npz", values == [1, 2, 3, 4], str(values))
    with zipfile.ZipFile(archive, "w") as file:
        file.write(suite.path("npz/x.npy"), "x.npy")
    with open(archive, "r+b") as file:
        file.seek(file.read().index(struct.pack("<f", 3)))
        file.write(b"\1")  # one bit of a value
    suite.expect(3, "run", suite.package, "--input", f"x={archive}", says="checksum")
    with open(archive, "r+b") as file:
        file.truncate(os.path.getsize(archive) - 30)
    suite.expect(3, "run", suite.package, "--input", f"x={archive}", says="zip")


def test_comparison(suite):
    write_npy(suite.path("in/input_0.npy"), "f", [0, 0, 0, 99], (1, 4))
    arguments = ["run", suite.package, "--inputs-dir", suite.path("in"),
                 "--expect-dir", suite.path("want")]  # fmt: skip
    write_npy(suite.path("want/output_0.npy"), "f", [1, 1.009, 1, 100], (1, 4))
    suite.expect(0, *arguments)  # 1e-4 of the largest value is 0.01
    write_npy(suite.path("want/output_0.npy"), "f", [1, 1.02, 1, 100], (1, 4))
    suite.expect(1, *arguments, says="element [0, 1] is 1, expected 1.02")
    suite.expect(0, *arguments, "--rtol", "0.1")
    nan, inf = float("nan"), float("inf")
    write_npy(suite.path("in/input_0.npy"), "f", [nan, inf, -inf, 0], (1, 4))
    write_npy(suite.path("want/output_0.npy"), "f", [nan, inf, -inf, 1], (1, 4))
    suite.expect(0, *arguments)
    suite.expect(0, *arguments, "--rtol", "0")
    write_npy(suite.path("want/output_0.npy"), "f", [nan, inf, inf, 1], (1, 4))
    suite.expect(1, *arguments, says="element [0, 2] is -inf, expected inf")
    write_npy(suite.path("want/output_0.npy"), "f", [nan, inf, -inf, nan], (1, 4))
    suite.expect(1, *arguments, says="element [0, 3] is 1, expected nan")
    write_npy(suite.path("want/output_0.npy"), "f", [1] * 4, (4,))
    suite.expect(1, *arguments, says="is f32 1x4, expected f32 4")
    os.remove(suite.path("want/output_0.npy"))
    suite.expect(5, *arguments, says="there is no output_0.npy")


def test_random_inputs(suite):
    outputs = []
    for name, flag in (("a", "--random-inputs"), ("b", "--random-inputs=0"),
                       ("c", "--random-inputs=1")):  # fmt: skip
        out = suite.path(name)
        suite.expect(0, "run", suite.package, flag, "--dim", "batch=8", "--output-dir", out)
        outputs.append(read_floats(f"{out}/output_0.npy"))
    in_range = all(1 <= value < 2 for value in outputs[0] + outputs[2])
    suite.tally.check("in [0, 1)", in_range, str(outputs))
    ok = outputs[0] == outputs[1] != outputs[2]
    suite.tally.check("seeds differ, the default is 0", ok, str(outputs))
    suite.expect(2, "run", suite.package, "--random-inputs", says="'batch' is not bound")


def test_usage(suite):
    package = suite.package
    x = suite.path("in/input_0.npy")
    suite.expect(2, "run", package, "--inputt", x, says="did you mean '--input'?")
    suite.expect(2, "run", package, says="'x' is not bound")
    suite.expect(2, "run", package, "--input", f"z={x}", says="no input 'z'")
    suite.expect(2, "run", package, "--input", x, says="expected NAME=VALUE")
    write_npy(suite.path("a=b/x.npy"), "f", [0] * 4, (1, 4))
    suite.expect(0, "run", "--input", f"x={suite.path('a=b/x.npy')}", package)
    suite.expect(2, "run", package, "--dim", "beam=2", says="no dimension 'beam'")
    suite.expect(2, "run", package, "--dim", "batch=two", says="expected NAME=N")
    suite.expect(2, "run", package, "--dim", "batch=9", "--random-inputs", says="1..8")
    suite.expect(2, "run", package, "--random-inputs=x", says="expected a number")
    suite.expect(2, "run", package, "--input", "x=y.txt", says=".npz or .pb")
    for count in ("0", "-1", "1.5", "many"):
        suite.expect(2, "bench", package, "--iterations", count,
                     says=f"--iterations: '{count}' must be a whole number, at least 1")  # fmt: skip
    suite.expect(2, "bench", package, "--duration", "0", says="must be a number above 0")
    suite.expect(2, "bench", package, "--warmup", "-1", says="must be a number, at least 0")
    suite.expect(5, "run", package, "--input", "x=/absent.npy", says="cannot open")
    suite.expect(5, "run", "/absent.tcc", says="cannot open")
    suite.expect(8, "run", package, "--device", "tpu", says="no device 'tpu'")
    suite.expect(8, "run", package, "--device", "cuda:0", says="for the cpu, not")
    write_npy(x, "f", [0] * 5, (1, 5))
    suite.expect(2, "run", package, "--input", f"x={x}", says="axis 1 is 5, not 4")
    write_npy(x, "q", [0] * 4, (1, 4))
    suite.expect(2, "run", package, "--input", f"x={x}", says="is i64, expected f32")
    with open(x, "wb") as file:
        file.write(b"nonsense")
    suite.expect(3, "run", package, "--input", f"x={x}", says="not a npy file")
    suite.expect(3, "run", x, says="not a tcc package")


def test_bad_index(suite):
    package = f"{suite.folder}/gather.tcc"
    suite.expect(0, "run", package, "--random-inputs=3")
    write_npy(suite.path("bad/input_0.npy"), "f", [1, 2, 3], (3,))
    write_npy(suite.path("bad/input_1.npy"), "q", [0, 1, 5, 2], (4,))
    suite.expect(2, "run", package, "--inputs-dir", suite.path("bad"),
                 says="node 'gather_node': index 5 is out of range")  # fmt: skip


def test_newer_packages(suite):
    """What this runtime cannot do is named."""
    for kind, reason in (("requires", "it requires 'time_travel', which is unknown"),
                         ("unknown_command", "command 1 is of kind 99, which is unknown")):
        for command in ("run", "info"):
            done = suite.expect(3, command, suite.path(f"{kind}.tcc"), says=reason)
            suite.tally.check("one line", done.err.count("\n") == 1, done.err)


def test_full_disk(suite):
    out = suite.path("full")
    os.makedirs(out)
    done = subprocess.run(
        ["bash", "-c", f"ulimit -f 0; trap '' XFSZ; exec {harness.BIN}/tcc-run run"
         f" {suite.package} --random-inputs --dim batch=1 --output-dir {out}"],
        capture_output=True, text=True)  # fmt: skip
    ok = done.returncode == 5 and not os.listdir(out)
    suite.tally.check("full disk", ok, f"{done.returncode}: {done.stderr}")


def check_trace(path, commands):
    """A track for each lane, which has commands of the package, each once."""
    trace = trace_reader.Trace(path)
    rows = [row for track in trace.lanes() for row in track.commands()]
    numbers = [row.args["command"] for row in rows]
    ok = len(set(numbers)) == len(numbers) > 0 and max(numbers) < commands
    ok &= [track.name for track in trace.lanes()] == [f"lane {i}" for i in range(len(trace.lanes()))]
    ok &= all((row.name == "WaitEvent") == ("cause" in row.args) for row in rows)
    return ok and trace.document["lost"] == 0


def test_trace(suite):
    trace = suite.path("trace.json")
    for package, device in ((suite.package, ()),
                            (suite.path("device_add_one.tcc"), ("--device", "emulated"))):
        suite.expect(0, "bench", package, "--dim", "batch=2", "--iterations", "5",
                     "--trace", trace, *device)  # fmt: skip
        row = json.loads(suite.expect(0, "info", package, "--json").out)
        suite.tally.check(f"trace {device}", check_trace(trace, row["entries"][0]["commands"]))
    suite.expect(5, "bench", suite.package, "--dim", "batch=2", "--iterations", "5",
                 "--trace", os.path.join(suite.package, "t.json"))  # fmt: skip


def test_other_commands(suite):
    done = suite.expect(0, "bench", suite.package, "--dim", "batch=2", "--iterations",
                        "20", "--warmup", "1", "--json")  # fmt: skip
    row = json.loads(done.out)
    ok = row["n"] == 20 and 0 < row["min_ms"] <= row["med_ms"] <= row["p99_ms"]
    ok &= 0 < row["plan_bytes"] == row["memory_bytes"]["total"]
    suite.tally.check("bench json", ok, done.out)
    done = suite.expect(0, "bench", suite.package, "--dim", "batch=2", "--iterations",
                        "20", "--profile")  # fmt: skip
    ok = "add_one: add_one_node" in done.out and "between kernels" in done.out
    suite.tally.check("profile", ok, done.out)
    done = suite.expect(0, "bench", suite.package, "--dim", "batch=2", "--iterations",
                        "20", "--profile", "--json")  # fmt: skip
    row = json.loads(done.out)
    (kernel,) = row["profile"]
    ok = kernel["kernel"] == "add_one" and kernel["nodes"] == ["add_one_node"]
    ok &= kernel["calls"] == 1 and row["roofline_gflops"] > 0
    suite.tally.check("profile json", ok and kernel["ms"] <= row["profile_ms"], done.out)
    done = suite.expect(0, "bench", suite.path("loop.tcc"), "--iterations", "3",
                        "--profile", "--json")  # fmt: skip
    (kernel,) = json.loads(done.out)["profile"]
    suite.tally.check("profile of a long run", kernel["calls"] == 20000, done.out)
    done = suite.expect(0, "bench", suite.package, "--dim", "batch=2", "-q")
    suite.tally.check("quiet", done.out == "", done.out)
    row = json.loads(suite.expect(0, "info", suite.package, "--json").out)
    suite.tally.check("info", row["entries"][0]["inputs"][0]["shape"] == ["batch", 4])
    listed = sum(launch["bytes"] for launch in row["entries"][0]["launch_list"])
    suite.tally.check("info bytes", 0 < listed == row["entries"][0]["bytes"])
    suite.expect(0, "info", suite.package)
    suite.expect(0, "info", suite.path("idle.tcc"))
    row = json.loads(suite.expect(0, "doctor", "--json").out)
    suite.tally.check("doctor", "sse2" in row["features"] and row["threads"] >= 1)
    test_doctor(suite)
    suite.expect(2, "find", suite.package, says="unexpected 'find'")
    for command in ((), ("train",)):
        done = suite.expect(0, *command, "--help")
        ok = "Exit codes: 0 ok, 1 a comparison failed, 2 usage" in done.out
        suite.tally.check(f"exit codes {command}", ok, done.out)


def test_doctor(suite):
    """Checks are those of the machine, and the folder that is measured stays empty."""
    folder = suite.path("measured")
    os.mkdir(folder)
    row = json.loads(suite.expect(0, "doctor", folder, "--json").out)
    checks = {check.pop("name"): check for check in row["checks"]}
    keys = ["state", "found", "recommended", "command", "why"]
    suite.tally.check("doctor keys", all(list(c) == keys for c in checks.values()), str(checks))
    suite.tally.check("doctor count", len(checks) == len(row["checks"]) >= 25, str(list(checks)))
    states = {check["state"] for check in checks.values()}
    suite.tally.check("doctor states", states <= {"ok", "warning", "problem", "unknown"}, str(states))
    advised = all(
        bool(check["recommended"]) == (check["state"] in ("warning", "problem"))
        for check in checks.values()
    )
    suite.tally.check("doctor advice", advised, str(checks))
    found = checks["cpu affinity"]["found"]
    mask = len(os.sched_getaffinity(0))
    suite.tally.check("doctor affinity", found.startswith(f"{mask} of "), found)
    found = checks["open files"]["found"]
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    wanted = "unlimited" if soft == resource.RLIM_INFINITY else str(soft)
    suite.tally.check("doctor files", found.startswith(f"{wanted}, at most"), found)
    speed = checks["disk speed"]["found"]
    suite.tally.check("doctor disk", f"'{folder}' takes " in speed, speed)
    suite.tally.check("doctor leaves nothing", os.listdir(folder) == [], folder)
    out = suite.expect(0, "doctor", suite.path("nowhere")).out
    suite.tally.check("doctor wrong folder", "problem  disk speed" in out, out)
    last = out.splitlines()[-1]
    suite.tally.check("doctor total", last.startswith(f"{len(checks)} checks: "), last)


def test_lanes(suite):
    """What a lane copies is in use until lane 0 has waited for it."""
    package = suite.path("lanes.tcc")
    x, out = suite.path("lanes/x.npy"), suite.path("lanes/out")
    write_npy(x, "f", range(4), (4,))
    suite.expect(0, "run", package, "--input", f"x={x}", "--output-dir", out)
    values = read_floats(f"{out}/output_0.npy") + read_floats(f"{out}/output_1.npy")
    suite.tally.check("lanes values", values == [1, 2, 3, 4] * 2, str(values))
    row = json.loads(suite.expect(0, "info", package, "--json").out)
    (arena,) = row["memory"]["arenas"]
    lives = [(tensor["begin"], tensor["end"]) for tensor in arena["tensors"]]
    wanted = [(0, 27), (10, 23), (16, 29)]
    suite.tally.check("lanes lives", lives == wanted, str(arena))
    suite.tally.check("lanes peak", arena["peak_position"] == 16, str(arena))


def test_devices(suite):
    package = suite.path("device_add_one.tcc")
    x, out = suite.path("device/x.npy"), suite.path("device/out")
    write_npy(x, "f", range(8), (2, 4))
    done = suite.expect(8, "run", package, "--input", f"x={x}")
    suite.tally.check("one line", done.err.count("\n") == 1, done.err)
    suite.expect(0, "run", package, "--input", f"x={x}", "--device", "emulated",
                 "--output-dir", out)  # fmt: skip
    values = read_floats(f"{out}/output_0.npy")
    suite.tally.check("device values", values == list(range(1, 9)), str(values))
    suite.expect(0, "bench", package, "--dim", "batch=2", "--device", "emulated",
                 "--iterations", "5", "--profile")  # fmt: skip
    suite.expect(8, "run", package, "--device", "cpu", says="for CUDA, not")
    suite.expect(8, "run", suite.package, "--device", "emulated", says="for the cpu, not")
    row = json.loads(suite.expect(0, "info", package, "--json").out)
    suite.tally.check("info device", row["entries"][0]["space"] == "device")
    row = json.loads(suite.expect(0, "doctor", "--json").out)
    suite.tally.check("doctor devices", {"cpu", "emulated"} <= set(row["devices"]))
    linked = subprocess.run(["ldd", f"{harness.BIN}/tcc-run"], capture_output=True, text=True)
    suite.tally.check("nothing linked", "cuda" not in linked.stdout, linked.stdout)


def main(fixtures):
    tally = harness.Tally()
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("add_one", "gather", "idle", "lanes", "loop", "device_add_one",
                     "requires", "unknown_command"):  # fmt: skip
            subprocess.run([f"{fixtures}/tcc_write_fixture", kind,
                            f"{folder}/{kind}.tcc"], check=True)  # fmt: skip
        suite = Suite(tally, folder)
        for test in (test_run, test_archives, test_comparison, test_random_inputs, test_usage,
                     test_symbols, test_bad_index, test_newer_packages, test_full_disk,
                     test_other_commands, test_lanes, test_devices, test_trace):  # fmt: skip
            test(suite)
    tally.close()


main(sys.argv[1])
