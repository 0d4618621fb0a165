"""Training by several ranks on emulated GPUs, with a simulated NCCL: devices.py [WORLD...]

WORLD (2) ranks train as one process does, make the same collectives, and hide these behind
kernels by the emulated clock. Losses of ranks, and what there are too few GPUs for, are said.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time

import harness
from processes import find_free_port, wait_until
from training import ranks

TARGET = ["--target=cuda", "--arch=none", "--emulate"]
DEVICE = ["--device", "emulated"]
MLP = ranks.recipe(ranks.ADAMW, "[batch]\nclip_norm = 0.5\n")


def start(package, *flags, **environment):
    command = [os.path.join(harness.BIN, "tcc-run"), "train", package, "-q", "--threads", "1"]
    command += ["--data", "npz:" + ranks.fixture("digits.npz"), *DEVICE, *map(str, flags)]
    return subprocess.Popen(command, env=os.environ | environment, text=True,
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)  # fmt: skip


def test_parity(tally, package, case, folder, world):
    """All ranks end with the tensors of one, by the same calls."""
    logs = tempfile.mkdtemp(dir=folder)
    alone, several = (
        ranks.train(package, case, folder, of, world // of, flags=DEVICE,
                    env=os.environ | {"TCC_EMULATED_NCCL_LOG": logs})
        for of in (1, world)
    )  # fmt: skip
    ranks.compare(tally, case, several, alone)
    calls = []
    for rank in range(world):
        with open(f"{logs}/rank-{rank}.calls", encoding="utf-8") as file:
            calls.append(file.read().splitlines())
    same = all(lines == calls[0] for lines in calls)
    tally.check(f"{world} ranks: the same calls", same, str([lines[-3:] for lines in calls]))
    per_update = (len(calls[0]) - 1) / ranks.STEPS
    whole = calls[0][-1].endswith(" end") and per_update >= 2 and per_update == int(per_update)
    tally.check(f"{world} ranks: calls of all updates", whole, str(per_update))


def read_lanes(path):
    """Of each lane the events of the last update: name, begin and end in microseconds."""
    with open(path, encoding="utf-8") as file:
        events = [event for event in json.load(file)["traceEvents"] if event["ph"] == "X"]
    lanes = {0: [], 1: []}
    for event in events:
        lanes[event["tid"]].append((event["name"], event["ts"], event["ts"] + event["dur"]))
    return lanes


def is_near(found, expected):
    return abs(found - expected) <= 0.01 * expected


def test_overlap(tally, package, folder):
    """An update takes as long as its kernels or its messages, whichever is longer."""
    traced = {}
    for microseconds in (0, 300, 3000):  # of a message
        path = f"{folder}/{microseconds}.json"
        run = start(package, "--steps", 3, "--ranks", 2, "--trace", path,
                    TCC_EMULATED_LINK=f"{microseconds}:1e15")  # fmt: skip
        error = run.communicate(timeout=60)[1]
        tally.check(f"a trace of {microseconds} us", run.returncode == 0, error)
        traced[microseconds] = read_lanes(path)

    def measure(microseconds):
        kernels, lane = traced[microseconds][0], traced[microseconds][1]
        waits = sum(end - begin for name, begin, end in kernels if name == "WaitEvent")
        messages = [event for event in lane if event[0].startswith("AllReduce")]
        return kernels[-1][2], waits, messages

    alone = measure(0)[0]
    time_of_update, waits, messages = measure(300)
    ok = is_near(time_of_update, alone + waits) and waits < 300 * (len(messages) - 1)
    tally.check("messages behind kernels", ok and len(messages) > 2,
                f"{time_of_update}, {alone}, {waits}, {messages}")  # fmt: skip
    time_of_update, waits, messages = measure(3000)
    together = messages[-1][2] - messages[0][1]
    ok = is_near(together, 3000 * len(messages)) and time_of_update < alone + together - 300
    tally.check("kernels behind messages", ok, f"{time_of_update}, {alone}, {messages}")


def test_loss(tally, package, folder, victim):
    """The others end soon after one was killed, and say which, and where it was."""
    port, logs = find_free_port(), tempfile.mkdtemp(dir=folder)
    started = [
        start(package, "--steps", 10**6, RANK=str(rank), WORLD_SIZE="3", LOCAL_RANK=str(rank),
              TCC_RENDEZVOUS=f"127.0.0.1:{port}", TCC_EMULATED_NCCL_LOG=logs)
        for rank in range(3)
    ]  # fmt: skip
    log = f"{logs}/rank-{victim}.calls"
    wait_until(lambda: os.path.exists(log) and os.path.getsize(log) > 1000, 30)
    os.kill(started[victim].pid, signal.SIGKILL)
    since = time.monotonic()
    for rank, run in enumerate(started):
        error = run.communicate(timeout=30)[1]
        if rank == victim:
            continue
        took = time.monotonic() - since
        said = f"rank {victim} (host " in error and " in all-reduce " in error
        ok = run.returncode == 9 and took < 1 and said and "its process ended" in error
        tally.check(f"rank {rank} without {victim}", ok, f"{run.returncode}, {took} s: {error}")


def test_few(tally, package):
    """A rank of a machine has a GPU of its own."""
    run = start(package, "--steps", 1, "--ranks", 2, TCC_EMULATED_GPUS="1")
    error = run.communicate(timeout=30)[1]
    said = "rank 1 of this machine, which has 1 CUDA device, needs 2"
    tally.check("two ranks on one GPU", run.returncode == 2 and said in error, error)


def main(worlds):
    tally = harness.Tally()
    with tempfile.TemporaryDirectory() as folder:
        case = ranks.Case("mlp", ranks.fixture("mlp_digits.onnx"), ranks.fixture("digits.npz"),
                          MLP, ["--dim", "batch=16", *TARGET], 1, 1e-12)  # fmt: skip
        package = ranks.compile_case(case, folder)
        for world in worlds:
            test_parity(tally, package, case, folder, world)
        test_overlap(tally, package, folder)
        for victim in (0, 1):
            test_loss(tally, package, folder, victim)
        test_few(tally, package)
    tally.close()


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]] or [2])
