"""Runs by three ranks in which one has a fault at a known place; for faults.py."""

import collections
import json
import os
import re
import socket
import subprocess
import tempfile
import threading
import time

import numpy as np

import harness
import ranks
from processes import (ENVIRONMENT, die_with_parent, find_free_port, find_with, is_running,
                       wait_until)  # fmt: skip

WORLD, BATCH, STEPS = 3, 16, 12
UPDATE = 5  # the one in which faults come
TOOL = os.path.join(harness.BIN, "tcc-run")
LOST = re.compile(
    r"tcc-run: rank (?P<own>\d): error: rank (?P<victim>\d) \(host (?P<host>\S+)\) was lost: "
    r"(?P<why>.*); it was last heard of (?P<last>.*); this is rank (?P=own) \(host \S+\) "
    r"(?P<here>.*)\n"
)
AT = re.compile(r"(?:at update (\d+)|before the first update) in all-reduce (\d+)(?: of (.*))?")

# What a fault makes of a run: codes that the victim may have, if it ends by itself, and the
# code of the others; what these say of the victim; seconds from the fault until they end.
Outcome = collections.namedtuple("Outcome", "victim others why least most",
                                 defaults=((), 9, "", 0, 1.0))  # fmt: skip
DONE = Outcome(victim=(0,), others=0, most=20)


class Setting:
    """What cells share: a package of several buckets, its data, a run without faults."""

    def __init__(self, folder, library, tally):
        self.folder, self.library, self.tally = folder, library, tally
        text = ranks.recipe(ranks.SGD, bucket="4KiB")
        case = ranks.Case("faults", ranks.fixture("mlp_digits.onnx"),
                          ranks.fixture("digits.npz"), text, ["--dim", "batch=16"], 1, 0)  # fmt: skip
        self.data, self.package = case.data, ranks.compile_case(case, folder)
        self.other_package = ranks.compile_case(case._replace(recipe=ranks.recipe(ranks.ADAMW)),
                                                folder, "-other")  # fmt: skip
        self.save_data()
        self.train_undisturbed()
        self.count_setup()

    def save_data(self):
        """Fewer samples, and of each rank data whose first batch has a wrong label."""
        arrays = dict(np.load(self.data))
        self.short, self.damaged = f"{self.folder}/short.npz", []
        np.savez(self.short, **{name: array[:-BATCH] for name, array in arrays.items()})
        for rank in range(WORLD):
            labels = arrays["labels"].copy()
            labels[rank * BATCH + 3] = 77
            self.damaged.append(f"{self.folder}/damaged-{rank}.npz")
            np.savez(self.damaged[-1], **{**arrays, "labels": labels})

    def train_undisturbed(self):
        """Parameters, an evaluation, and how many sums an update has."""
        place = tempfile.mkdtemp(dir=self.folder)
        self.calls = {}
        train = ["train", "-q", "--steps", STEPS, "--no-shuffle"]
        self.call_counted(*train, "--trace", f"{place}/trace.json")
        self.call(*train, "--checkpoint-dir", place)
        with open(f"{place}/trace.json", encoding="utf-8") as file:
            names = [event["name"] for event in json.load(file)["traceEvents"]]
        self.sums = sum(name.startswith("AllReduce") for name in names) // STEPS
        self.files = set(os.listdir(f"{place}/step-{STEPS}"))
        self.parameters = ranks.load_file(f"{place}/step-{STEPS}/state.safetensors")
        self.evaluation = json.loads(self.call_counted("eval", "--json"))
        self.tally.check("several buckets", self.sums > 2, str(self.sums))

    def call(self, command, *flags, **variables):
        return harness.call("tcc-run", command, self.package, "--data", "npz:" + self.data,
                            "--threads", 1, "--ranks", WORLD, *flags,
                            env={**ENVIRONMENT, **variables})  # fmt: skip

    def call_counted(self, command, *flags):
        """Notes the calls of Gloo before the first sum."""
        file = f"{self.folder}/calls-{command}"
        variables = {"TCC_FAULT": "count", "TCC_FAULT_FILE": file, "LD_PRELOAD": self.library}
        said = self.call(command, *flags, **variables)
        with open(file, encoding="utf-8") as text:
            self.calls[command] = int(text.read())
        return said

    def count_setup(self):
        """Collectives before the first sum, as a rank that fails at once recorded them."""
        place = tempfile.mkdtemp(dir=self.folder)
        harness.run_tool("tcc-run", "train", self.package, "--data", "npz:" + self.damaged[0],
                         "--threads", 1, "--ranks", WORLD, "--steps", 1, "--no-shuffle", "-q",
                         "--log-dir", place)  # fmt: skip
        with open(f"{place}/rank-1.jsonl", encoding="utf-8") as file:
            calls = [json.loads(line) for line in file]
        sums = [call["number"] for call in calls if call["kind"] == "all-reduce"]
        self.setup = sums[0] - 1
        self.tally.check("a rank recorded all", calls[0]["number"] == 1, str(calls[0]))

    def find_update(self, number):
        return (number - 1) // self.sums + 1


def find_place(setting, phase):
    """Where a fault is, and the number of the sum that others wait in then."""
    first, last = (UPDATE - 1) * setting.sums + 1, UPDATE * setting.sums
    return {
        "rendezvous": ("meet", 0),
        "first": (f"call:{setting.calls['train']}", 1),
        "backward": (f"after:{first}", first + 1),
        "collective": (f"within:{last}", last),
        "update": (f"after:{last}", last + 1),
        "evaluation": (f"call:{setting.calls['eval']}", 1),
    }[phase]


class Process:
    """A rank, and when it ended."""

    def __init__(self, command, environment):
        self.run = subprocess.Popen(command, env=environment, text=True, stdin=subprocess.DEVNULL,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                    preexec_fn=die_with_parent)  # fmt: skip
        self.code = self.end = None
        self.out = self.err = ""
        self.thread = threading.Thread(target=self.follow)
        self.thread.start()

    def follow(self):
        self.out, self.err = self.run.communicate()
        self.code, self.end = self.run.returncode, time.monotonic()

    def await_end(self, until):
        self.thread.join(max(0, until - time.monotonic()))
        return self.end is not None

    def kill(self):
        if self.end is None:
            self.run.kill()
        self.thread.join()


class Cell:
    """One fault in one run."""

    def __init__(self, setting, name, victim, is_long):
        self.setting, self.name, self.victim = setting, name, victim
        self.phase, self.is_long, self.tally = name.split("/")[1], is_long, setting.tally
        self.folder = tempfile.mkdtemp(dir=setting.folder)
        self.run, self.temporary = f"{self.folder}/run", f"{self.folder}/tmp"
        os.mkdir(self.run)
        os.mkdir(self.temporary)
        self.reached = f"{self.folder}/reached"
        self.place, self.sum = find_place(setting, self.phase)
        self.counts = True  # collectives that others wait in have a known number
        self.mark = f"TCC_TEST_CELL={self.folder}"
        self.address = f"127.0.0.1:{find_free_port()}"
        self.steps = 10**9
        self.flags, self.environment = [], {}
        # Of single ranks: what is before the command, the package, data and variables.
        self.enter, self.package, self.data, self.own = {}, {}, {}, {}
        self.shared = set(os.listdir("/dev/shm"))
        self.ranks, self.longest = [], 0.0

    # --- Begin ---

    def command(self, rank):
        command = [*self.enter.get(rank, ()), TOOL, "train",
                   self.package.get(rank, self.setting.package), "--threads", "1", "--data",
                   "npz:" + self.data.get(rank, self.setting.data)]  # fmt: skip
        if self.phase == "evaluation":
            command[command.index("train")] = "eval"
            return [*command, "--json"]
        return [*command, "-q", "--no-shuffle", "--steps", str(self.steps), *self.flags]

    def keep(self, *flags):
        """Writes checkpoints, before which ranks compare variables, and so looks at signals
        by the clock: of collectives between sums there is no certain number."""
        self.flags, self.counts = ["--checkpoint-dir", self.run, *flags], False

    def begin_rank(self, rank, action=None):
        environment = {**ENVIRONMENT, "RANK": str(rank), "WORLD_SIZE": str(WORLD),
                       "TCC_RENDEZVOUS": self.address, "TMPDIR": self.temporary,
                       **self.environment, **dict([self.mark.split("=", 1)])}  # fmt: skip
        if action:
            environment |= {"TCC_FAULT": f"{self.place}:{action}", "TCC_FAULT_FILE": self.reached,
                            "LD_PRELOAD": self.setting.library, **self.own}  # fmt: skip
        return Process(self.command(rank), environment)

    def begin(self, action=None):
        """All ranks; returns when the victim came to the place, if it is to do something."""
        began = time.monotonic()
        self.ranks = [self.begin_rank(rank, action if rank == self.victim else None)
                      for rank in range(WORLD)]  # fmt: skip
        if not action:
            return began
        if not wait_until(lambda: os.path.exists(self.reached), 20):
            said = "".join(rank.err for rank in self.ranks)
            raise harness.Failure(f"rank {self.victim} did not come to {self.place}: {said}")
        with open(self.reached, encoding="utf-8") as file:
            return int(file.read()) / 1e9

    def keep_all(self):
        """Ends by itself, and keeps what it learned."""
        self.steps = STEPS
        self.keep()

    def release(self):
        """The victim goes on."""
        with open(f"{self.reached}.go", "w", encoding="utf-8"):
            pass

    def others(self):
        return [rank for rank in range(WORLD) if rank != self.victim]

    # --- Check ---

    def check(self, what, ok, message=""):
        self.tally.check(f"{self.name}: {what}", bool(ok), message)

    def check_ends(self, since, outcome):
        """When ranks end, and with which codes."""
        for rank, process in enumerate(self.ranks):
            codes = outcome.victim if rank == self.victim else (outcome.others,)
            if not codes:
                continue
            ended = process.await_end(since + outcome.most + 15)
            told = f"{process.code}, not {codes}: {process.err}"
            self.check(f"code of rank {rank}", ended and process.code in codes, told)
            took = (process.end or time.monotonic()) - since
            in_time = outcome.least <= took <= outcome.most
            self.check(f"time of rank {rank}", in_time, f"{took:.2f} s: {process.err}")
            self.longest = max(self.longest, took)

    def check_blame(self, rank, victim, why, host=None):
        """One line says who was lost, on which host and why, and in which sum that showed."""
        err = self.ranks[rank].err
        if self.phase == "rendezvous":
            ok = re.fullmatch(rf"tcc-run: rank {rank}: error: .*{why}.*\n", err)
            self.check(f"line of rank {rank}", ok and f"rank {victim}" in err, err)
            return
        found = LOST.fullmatch(err)
        ok = found and (int(found["own"]), int(found["victim"])) == (rank, victim)
        ok = ok and found["host"] == (host or socket.gethostname())
        ok = ok and re.fullmatch(why, found["why"])
        self.check(f"line of rank {rank}", ok, f"{err} not {why}")
        at = AT.fullmatch(found["here"]) if found else None
        if self.phase == "evaluation":
            ok = at and at[1] is None and at[3] == "the evaluation"
        else:
            ok = at and int(at[1] or 0) == self.setting.find_update(self.sum)
            ok = ok and (int(at[2]) == self.setting.setup + self.sum or not self.counts)
        self.check(f"phase of rank {rank}", ok, f"{err} not sum {self.sum}")

    def check_loss(self, since, outcome):
        self.check_ends(since, outcome)
        for rank in self.others():
            self.check_blame(rank, self.victim, outcome.why)

    def check_done(self, since):
        """Nobody noticed anything."""
        self.check_ends(since, DONE)
        if any(rank.code for rank in self.ranks):
            return
        if self.phase == "evaluation":
            row = json.loads(self.ranks[0].out)
            same = all(row[key] == self.setting.evaluation[key] for key in ("loss", "samples"))
            self.check("the same evaluation", same, str(row))
            return
        found = ranks.load_file(f"{self.run}/step-{STEPS}/state.safetensors")
        expected = self.setting.parameters
        same = found.keys() == expected.keys() and all(
            np.array_equal(found[name], expected[name]) for name in found
        )
        self.check("the same bits", same)

    def check_remains(self):
        """Processes, shared memory, temporary files and halves of checkpoints."""
        gone = wait_until(lambda: not any(map(is_running, find_with(self.mark))), 3)
        self.check("nobody left", gone, str(find_with(self.mark)))
        gone = wait_until(lambda: set(os.listdir("/dev/shm")) <= self.shared, 3)
        self.check("no shared memory", gone, str(set(os.listdir("/dev/shm")) - self.shared))
        self.check("no temporary file", not os.listdir(self.temporary))
        for name in set(os.listdir(self.run)) - {"lock"}:  # of a rank that was killed
            whole = os.path.isdir(f"{self.run}/{name}")
            whole = whole and set(os.listdir(f"{self.run}/{name}")) == self.setting.files
            self.check(f"{name} is whole", whole and re.fullmatch(r"step-\d+", name))

    def close(self):
        for rank in self.ranks:
            rank.kill()
