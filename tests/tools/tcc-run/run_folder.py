"""tcc-run train --run: what a run's folder has, and how it is gone on with.

  run_folder.py FOLDER_OF_WRITE_FIXTURE
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import harness
import training
from training import read_lines, read_safetensors

BEGIN = ("--checkpoint-every", 2, "--set", "lr=0.05", "--threads", 1)


class Suite(training.Suite):
    def run(self, *arguments, code=0, says="", lines=0, package=(), **options):
        """`tcc-run train` of these words, in a folder that has no data."""
        words = [*package, *arguments]
        options.setdefault("cwd", self.path("elsewhere"))
        done = harness.run_tool("tcc-run", "train", *words, **options)
        ok = done.code == code and says in done.err and done.err.count("\n") == lines
        self.tally.check(" ".join(map(str, words)), ok, f"{done.code}: {done.err}")
        return done

    def begin(self, name, *arguments, steps=4, **options):
        """A run of few updates, of files that are named from where they are."""
        return self.run("--data", "npz:data.npz", "--run", name, "--steps", steps, *BEGIN,
                        *arguments, package=["line.tcc"], cwd=self.folder, **options)  # fmt: skip

    def read_record(self, name):
        with open(self.path(f"{name}/run.json"), encoding="utf-8") as file:
            return json.load(file)

    def read_state(self, name, step):
        return read_safetensors(self.path(f"{name}/step-{step}/state.safetensors"))


def test_record(suite):
    suite.begin("new", "-q")
    names = sorted(os.listdir(suite.path("new")))
    suite.tally.check("folder", names == ["checkpoints", "metrics.jsonl", "result.json", "run.json"],
                      str(names))  # fmt: skip
    row = suite.read_record("new")
    package, (start,) = row["package"], row["starts"]
    ok = package["path"] == suite.path("line.tcc") and row["data"] == suite.data
    ok = ok and re.fullmatch("[0-9a-f]{32}", package["digest"])
    suite.tally.check("package and data", bool(ok), str(row))
    flags = {"--steps": ["4"], "--checkpoint-every": ["2"], "--set": ["lr=0.05"], "--threads": ["1"]}
    suite.tally.check("flags", row["flags"] == flags, str(row["flags"]))
    ok = row["settings"]["lr"] == "0.05" and isinstance(row["recipe"], dict)
    suite.tally.check("recipe", ok, str(row))
    ok = start["command"][1:4] == ["train", "line.tcc", "--data"] and start["tcc"]
    ok = ok and re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", start["time"])
    suite.tally.check("start", bool(ok), str(start))


def test_resuming(suite):
    """To the bits of a run that did not stop; what is new is recorded."""
    run = suite.path("new")
    done = suite.run("--run", run, "--resume", says=f"resuming from {run}/checkpoints/step-4",
                     lines=1)  # fmt: skip
    suite.tally.check("done", "nothing was left to do" in done.out, done.out)
    suite.run("--run", run, "--resume", "--steps", 7, "--checkpoint-every", 3, lines=1)
    whole = suite.path("whole")
    suite.run("--data", suite.data, "--checkpoint-dir", whole, "--steps", 7, "--threads", 1,
              "--set", "lr=0.05", package=[suite.path("line.tcc")])  # fmt: skip
    same = suite.read_state("whole", 7) == suite.read_state("new/checkpoints", 7)
    suite.tally.check("same bits", same)
    row = suite.read_record("new")
    ok = row["flags"]["--steps"] == ["7"] and len(row["starts"]) == 3
    ok = ok and row["package"]["path"] == suite.path("line.tcc") and row["data"] == suite.data
    suite.tally.check("recorded", ok and "--resume" in row["starts"][2]["command"], str(row))
    steps = [line["step"] for line in read_lines(f"{run}/metrics.jsonl")]
    suite.tally.check("one log", steps == list(range(1, 8)), str(steps))
    # Of flags that exclude each other, and of settings, those of the command line.
    suite.run("--run", run, "--resume", "--epochs", 3, "--set", "lr=0.01", "--set", "eval.every=9",
              lines=1)  # fmt: skip
    suite.run("--run", run, "--resume", "--set", "lr=0.02", lines=1)
    flags = suite.read_record("new")["flags"]
    ok = flags["--epochs"] == ["3"] and "--steps" not in flags
    ok = ok and flags["--set"] == ["eval.every=9", "lr=0.02"]
    suite.tally.check("other flags", ok and flags["--checkpoint-every"] == ["3"], str(flags))


def test_package(suite):
    """The recorded one, wherever it lies now; another is refused by name."""
    shutil.copy(suite.path("line.tcc"), suite.path("moved.tcc"))
    run = suite.path("new")
    suite.run("--run", run, "--resume", package=[suite.path("moved.tcc")], lines=1)
    path = suite.read_record("new")["package"]["path"]
    suite.tally.check("moved", path == suite.path("moved.tcc"), path)
    before = suite.read_record("new")
    digest = before["package"]["digest"]
    for flag in ("--resume", "--resume-if-any"):
        other = suite.path("ranked_line.tcc")
        done = suite.run("--run", run, flag, package=[other], code=2, lines=1,
                         says=f"the run in '{run}' is of package '{path}' with digest {digest}")  # fmt: skip
        suite.tally.check("named", f"and '{other}' has " in done.err, done.err)
    suite.tally.check("as it was", suite.read_record("new") == before)


def test_places(suite):
    """Other folders than those of the run are recorded, too."""
    suite.begin("spread", "--checkpoint-dir", "far/c", "--log-dir", "far/l")
    run = suite.path("spread")
    suite.tally.check("spread", os.listdir(run) == ["run.json"], str(os.listdir(run)))
    done = suite.run("--run", run, "--resume", "--steps", 5, lines=1,
                     says=f"resuming from {suite.path('far/c')}/step-4")  # fmt: skip
    ok = len(read_lines(suite.path("far/l/metrics.jsonl"))) == 5
    suite.tally.check("spread log", ok and f"{suite.path('far/c')}/step-5" in done.out, done.out)
    for name, expected in (("spread", "far/c/step-5"), ("new", "new/checkpoints/step-9")):
        listed = harness.run_tool("tcc-run", "checkpoints", suite.path(name), "--json")
        paths = [row["path"] for row in json.loads(listed.out)["checkpoints"]]
        suite.tally.check(f"list of {name}", paths[0] == suite.path(expected), str(paths))


def test_first_start(suite):
    """What launchers repeat: the same words begin a run and go on with it."""
    words = ("--resume-if-any", "--export", "w.safetensors")
    suite.begin("again", *words)
    done = suite.begin("again", *words, steps=6, lines=1, says="resuming from")
    suite.tally.check("goes on", done.out.startswith("6 steps"), done.out)
    os.remove(suite.path("w.safetensors"))
    suite.run("--run", suite.path("again"), "--resume", lines=1)
    suite.tally.check("exported", os.path.exists(suite.path("w.safetensors")))
    # A run that ended before its first checkpoint is begun again.
    shutil.rmtree(suite.path("again/checkpoints"))
    suite.begin("again")
    row = suite.read_record("again")
    suite.tally.check("a new run", len(row["starts"]) == 1 and "--export" not in row["flags"])
    left = os.path.exists(suite.path("again/metrics.1.jsonl"))
    suite.tally.check("the log of the other one", left)


def test_problems(suite):
    run = suite.path("new")
    suite.begin("new", code=2, says="has checkpoints: go on with the run in 'new' by --resume",
                lines=1)  # fmt: skip
    suite.run("--run", suite.path("none"), "--resume", code=5, lines=1,
              says=f"there is no '{suite.path('none')}/run.json' of a run to go on with")  # fmt: skip
    suite.run("--run", suite.path("none"), code=2, says="PACKAGE is required", lines=1)
    suite.run("--run", run, "--resume", "--init", "w.safetensors", code=2, lines=1,
              says="--init excludes --resume")  # fmt: skip
    path = f"{run}/run.json"
    with open(path, encoding="utf-8") as file:
        text = file.read()
    for content, says in (
        (text[: len(text) // 2], "is no record of a run: "),
        (text.replace('"starts"', '"start"'), "is no record of a run: "),
        (text.replace('"data": "npz', '"data": 3, "d": "npz'), "is no record of a run: "),
        (text.replace('"schema_version": 1', '"schema_version": 9'), "is of schema version 9"),
        (text.replace("--threads", "--thread"), "unknown flag '--thread'"),
    ):
        with open(path, "w", encoding="utf-8") as file:
            file.write(content)
        suite.run("--run", run, "--resume", code=3, says=says, lines=1)
    os.remove(path)
    suite.run("--run", run, "--resume", code=5, says="there is no", lines=1)


def main(fixtures):
    tally = harness.Tally()
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("line", "ranked_line"):
            subprocess.run([f"{fixtures}/tcc_write_fixture", kind, f"{folder}/{kind}.tcc"],
                           check=True)  # fmt: skip
        suite = Suite(tally, os.path.realpath(folder), "cpu")
        os.mkdir(suite.path("elsewhere"))
        for test in (test_record, test_resuming, test_package, test_places, test_first_start,
                     test_problems):  # fmt: skip
            test(suite)
    tally.close()


if __name__ == "__main__":
    main(sys.argv[1])
