"""tcc-run train and eval by several ranks, on a hand-made package that fits a
line.

  ranks.py FOLDER_OF_WRITE_FIXTURE
"""

import json
import os
import struct
import subprocess
import sys
import tempfile

import harness
from processes import ENVIRONMENT, find_free_port
from training import read_lines, read_safetensors, write_npz

SAMPLES, BATCH, RANKS = 20, 4, 2
TOOL = os.path.join(harness.BIN, "tcc-run")


class Suite:
    def __init__(self, tally, folder):
        self.tally = tally
        self.folder = folder
        self.x = [0.25 * (i + 1) * (-1) ** i for i in range(SAMPLES)]
        self.y = [3 * v for v in self.x]
        write_npz(self.path("data.npz"), {"x": self.x, "y": self.y})

    def path(self, name):
        return f"{self.folder}/{name}"

    def command(self, name, *arguments, package="ranked_line"):
        return [TOOL, name, self.path(f"{package}.tcc"), "--data",
                f"npz:{self.path('data.npz')}", *map(str, arguments)]  # fmt: skip

    def expect(self, code, *arguments, says="", lines=None, **options):
        done = subprocess.run(self.command(*arguments, **options), capture_output=True,
                              text=True, timeout=60, env=ENVIRONMENT)  # fmt: skip
        ok = done.returncode == code and says in done.stderr
        ok &= lines is None or done.stderr.count("\n") == lines
        self.tally.check(" ".join(map(str, arguments)), ok, f"{done.returncode}: {done.stderr}")
        return done

    def begin(self, *arguments, **environment):
        return subprocess.Popen(self.command(*arguments), env={**ENVIRONMENT, **environment},
                                text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip

    def read_w(self, path):
        return struct.unpack("<f", read_safetensors(path)["w"])[0]


def learn(suite, updates):
    """The parameter after each update from the batches of all ranks, in order."""
    w, after = 0.5, []
    for update in range(updates):
        gradient, per_epoch = 0, SAMPLES // BATCH
        for number in range(update * RANKS, (update + 1) * RANKS):
            first = number % per_epoch * BATCH
            for x, y in zip(suite.x[first : first + BATCH], suite.y[first : first + BATCH]):
                gradient += 2 * (w * x - y) * x
        w -= 0.01 * gradient / (RANKS * BATCH)
        after.append(w)
    return after


RATE = ("--set", "lr=0.01")


def test_training(suite):
    done = suite.expect(0, "train", "--ranks", RANKS, "--steps", 5, "--no-shuffle", *RATE,
                        "--export", suite.path("w"), "--log-dir", suite.path("log"),
                        "--checkpoint-dir", suite.path("run"), "--checkpoint-every", 2, "--json",
                        lines=0)  # fmt: skip
    row = json.loads(done.stdout)
    found, expected = suite.read_w(suite.path("w")), learn(suite, 5)[-1]
    suite.tally.check("all batches", abs(found - expected) < 1e-4, f"{found}, not {expected}")
    lines = read_lines(suite.path("log/metrics.jsonl"))
    ok = [line["step"] for line in lines] == [1, 2, 3, 4, 5] and lines[4]["loss"] == row["loss"]
    suite.tally.check("one log", ok, str(lines))
    files = sorted(os.listdir(suite.path("log"))), sorted(os.listdir(suite.path("run")))
    ok = files == (["metrics.jsonl", "result.json"], ["step-2", "step-4", "step-5"])
    suite.tally.check("one writes", ok, str(files))


def test_resuming(suite):
    """On as many ranks the same bits, and on one what comes next."""
    arguments = ("--no-shuffle", *RATE, "--checkpoint-dir", suite.path("half"))
    suite.expect(0, "train", "--ranks", RANKS, "--steps", 3, *arguments)
    suite.expect(0, "train", "--ranks", RANKS, "--steps", 5, "--resume", *arguments,
                 says="resuming from", lines=1)  # fmt: skip
    states = [read_safetensors(suite.path(f"{at}/step-5/state.safetensors"))
              for at in ("run", "half")]  # fmt: skip
    suite.tally.check("same bits", states[0] == states[1])
    suite.expect(0, "train", "--steps", 6, "--resume", *arguments, lines=1)
    (first,) = struct.unpack("<q", read_safetensors(
        suite.path("half/step-6/state.safetensors"))["step/first"])  # fmt: skip
    suite.tally.check("batches", first == 5 * RANKS + 1, str(first))


def test_run_folder(suite):
    """It has the number of ranks, unless a launcher says how many there are."""
    folder = suite.path("folder")
    suite.expect(0, "train", "--ranks", RANKS, "--steps", 3, "--no-shuffle", *RATE, "--run",
                 folder, lines=0)  # fmt: skip
    resume = [TOOL, "train", "--run", folder, "--resume", "--steps"]

    def check(step, done, recorded):
        with open(f"{folder}/run.json", encoding="utf-8") as file:
            flags = json.load(file)["flags"]
        state = read_safetensors(f"{folder}/checkpoints/step-{step}/state.safetensors")
        (first,) = struct.unpack("<q", state["step/first"])
        ok = all(code == 0 for code in done) and first == step * RANKS
        suite.tally.check(f"run folder, {step}", ok and flags.get("--ranks") == recorded, str(flags))

    done = subprocess.run([*resume, "5"], capture_output=True, env=ENVIRONMENT, timeout=60)
    check(5, [done.returncode], [str(RANKS)])
    states = [read_safetensors(suite.path(f"{at}/step-5/state.safetensors"))
              for at in ("run", "folder/checkpoints")]  # fmt: skip
    suite.tally.check("same bits", states[0] == states[1])
    place = {"TCC_RENDEZVOUS": f"127.0.0.1:{find_free_port()}", "WORLD_SIZE": str(RANKS)}
    runs = [subprocess.Popen([*resume, "6"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             env={**ENVIRONMENT, **place, "RANK": str(rank)})
            for rank in range(RANKS)]  # fmt: skip
    for run in runs:
        run.communicate(timeout=60)
    check(6, [run.returncode for run in runs], None)
    names = sorted(os.listdir(folder))
    suite.tally.check("one writes the folder", names == ["checkpoints", "metrics.jsonl", "result.json",
                                                         "run.json"], str(names))  # fmt: skip


def test_nothing_left(suite):
    """A run that is done says that it traces nothing."""
    trace = suite.path("trace.json")
    done = suite.expect(0, "train", "--steps", 5, "--resume", "--no-shuffle", *RATE,
                        "--checkpoint-dir", suite.path("run"), "--trace", trace,
                        says=f"warning: no update was made: '{trace}' is not written")  # fmt: skip
    ok = "nothing was left to do" in done.stdout and not os.path.exists(trace)
    suite.tally.check("no trace", ok, done.stdout)


def test_evaluation(suite):
    arguments = ("--checkpoint-dir", suite.path("run"), "--json")
    alone = json.loads(suite.expect(0, "eval", *arguments).stdout)
    done = suite.expect(0, "eval", "--ranks", RANKS, *arguments, lines=0)
    suite.expect(0, "eval", "--ranks", RANKS, *arguments, "-v", says="2 ranks by gloo")
    both = json.loads(done.stdout)
    ok = both["samples"] == SAMPLES and abs(both["loss"] - alone["loss"]) < 1e-9
    suite.tally.check("the same sums", ok, done.stdout)


def test_epochs(suite):
    """Of all ranks together."""
    done = suite.expect(0, "train", "--ranks", RANKS, "--epochs", 4, *RATE, "-q", "--json")
    steps = json.loads(done.stdout)["steps"]
    suite.tally.check("epochs", steps == 4 * SAMPLES // BATCH // RANKS, done.stdout)


def test_problems(suite):
    """Each rank says it, and the run ends with its code."""
    suite.expect(2, "train", "--ranks", RANKS, "--steps", 1, package="line",
                 says="was compiled for one rank: parallel.data = 1", lines=RANKS)  # fmt: skip
    suite.expect(2, "train", "--ranks", RANKS, "--steps", 1, "--set", "lr=fast",
                 "--log-dir", suite.path("errors"), says="rank 1: error: --set: ")  # fmt: skip
    with open(suite.path("errors/rank-1.log")) as file:
        text = file.read()
    suite.tally.check("log of errors", text.count("\n") == 1 and "lr=fast" in text, text)
    suite.expect(0, "train", "--ranks", RANKS, "--steps", 1, "-q", "--log-dir",
                 suite.path("errors"))  # fmt: skip
    files = os.listdir(suite.path("errors"))
    suite.tally.check("no report of the run before", sorted(files) == ["metrics.jsonl", "result.json"],
                      str(files))  # fmt: skip
    suite.expect(5, "train", "--ranks", RANKS, "--steps", 1, "--checkpoint-dir",
                 suite.path("none"), "--resume", says="no complete checkpoint")  # fmt: skip
    device = {"package": "device_ranked_line"}
    suite.expect(0, "train", "--ranks", RANKS, "--steps", 1, "-q", "--device", "emulated",
                 **device)  # fmt: skip
    suite.expect(0, "train", "--steps", 1, "-q", "--device", "emulated", **device)
    suite.expect(2, "train", "--ranks", 0, "--steps", 1, says="--ranks")
    place = {"TCC_RENDEZVOUS": f"127.0.0.1:{find_free_port()}", "WORLD_SIZE": "2"}
    for environment, says in (
        ({"RANK": "1"}, "RANK is '1', but WORLD_SIZE is not set"),
        ({"RANK": "0", "WORLD_SIZE": "2"}, "says where they meet"),
    ):
        err = suite.begin("train", "--steps", 1, **environment).communicate()[1]
        suite.tally.check(f"environment {environment}", says in err, err)
    run = suite.begin("train", "--steps", 1, "--ranks", 2, **place, RANK="0")
    err = run.communicate()[1]
    suite.tally.check("ranks of a rank", run.returncode == 2 and "is rank 0 of 2" in err, err)


def test_differences(suite):
    """Processes that somebody else began: all say it at once."""
    for of_rank, what in (
        (lambda rank: ("--steps", 3, "--set", f"lr=0.{rank + 1}"), "other settings"),
        (lambda rank: ("--steps", 3 + rank), "other flags"),
    ):
        place = {"TCC_RENDEZVOUS": f"127.0.0.1:{find_free_port()}", "WORLD_SIZE": "2"}
        runs = [suite.begin("train", *of_rank(rank), "-q", "--threads", 1, **place,
                            RANK=str(rank)) for rank in range(RANKS)]  # fmt: skip
        for rank, run in enumerate(runs):
            err = run.communicate()[1]
            says = f"tcc-run: rank {rank}: error: rank 1 has {what} than rank 0\n"
            suite.tally.check(f"{what} {rank}", run.returncode == 2 and err == says, err)


def main(fixtures):
    tally = harness.Tally()
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("line", "ranked_line", "device_ranked_line"):
            subprocess.run([f"{fixtures}/tcc_write_fixture", kind, f"{folder}/{kind}.tcc"],
                           check=True)  # fmt: skip
        suite = Suite(tally, folder)
        for test in (test_training, test_resuming, test_run_folder, test_nothing_left,
                     test_evaluation, test_epochs, test_problems, test_differences):  # fmt: skip
            test(suite)
    tally.close()


if __name__ == "__main__":
    main(sys.argv[1])
