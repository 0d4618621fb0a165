"""Training by several ranks on emulated GPUs, with a simulated NCCL: devices.py [WORLD...]

WORLD (2) ranks train as one process does and make the same collectives. Ranks that are lost,
what goes wrong with NCCL, and what there are too few GPUs for, are said in a line.
"""

import json
import os
import shutil
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


def start(package, *flags, tools=harness.BIN, **environment):
    command = [os.path.join(tools, "tcc-run"), "train", package, "-q", "--threads", "1"]
    command += ["--data", "npz:" + ranks.fixture("digits.npz"), *DEVICE, *map(str, flags)]
    return subprocess.Popen(command, env=os.environ | environment, text=True,
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)  # fmt: skip


def start_ranks(package, world, logs, tools=harness.BIN, of_last=None, **environment):
    """Ranks without a launcher, that train until something happens."""
    place = f"127.0.0.1:{find_free_port()}"
    own = [{}] * (world - 1) + [of_last or {}]
    return [
        start(package, "--steps", 10**6, tools=tools, RANK=str(rank), WORLD_SIZE=str(world),
              LOCAL_RANK=str(rank), TCC_RENDEZVOUS=place, TCC_EMULATED_NCCL_LOG=logs,
              **environment, **own[rank])
        for rank in range(world)
    ]  # fmt: skip


def wait_for_calls(logs, rank):
    path = f"{logs}/rank-{rank}.calls"
    wait_until(lambda: os.path.exists(path) and os.path.getsize(path) > 1000, 30)


def list_more_cases(folder):
    """Those of the host: accumulation, a loss scale, convolutions, attention, dropout."""
    for case in list(ranks.list_cases(folder))[1:]:
        yield case._replace(flags=[*case.flags, *TARGET])


def test_cases(tally, folder, world):
    for case in list_more_cases(folder):
        package = ranks.compile_case(case, folder)
        alone, several = (
            ranks.train(package, case, folder, of, case.accumulate * world // of, steps=10,
                        flags=DEVICE)
            for of in (1, world)
        )  # fmt: skip
        ranks.compare(tally, case, several, alone)


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


def test_loss(tally, package, folder, victim):
    """The others end soon after one was killed, and say which, and where it was."""
    logs = tempfile.mkdtemp(dir=folder)
    started = start_ranks(package, 3, logs)
    wait_for_calls(logs, victim)
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


def expect(tally, what, started, code, said, within=30):
    """All ranks end so, in time, each with one line."""
    since = time.monotonic()
    for rank, run in enumerate(started):
        error = run.communicate(timeout=60)[1].strip()
        took = time.monotonic() - since
        ok = run.returncode == code and said in error and "\n" not in error and took < within
        tally.check(f"{what}: rank {rank}", ok, f"{run.returncode}, {took} s: {error}")


def test_faults(tally, package, folder, is_long):
    """What goes wrong with NCCL at the last rank both ranks say in a line."""

    def start_pair(fault, **more):
        logs = tempfile.mkdtemp(dir=folder)
        return start_ranks(package, 2, logs, of_last={"TCC_EMULATED_NCCL_FAULT": fault}, **more)

    # Five seconds after what each waits for another.
    stuck = start_pair("stuck:7", TCC_COLLECTIVE_TIMEOUT="1") if is_long else []
    late = start_pair("meeting") if is_long else []
    expect(tally, "an asynchronous error", start_pair("error:7"), 9,
           "between devices: NCCL: unhandled system error", 3)  # fmt: skip
    expect(tally, "an old NCCL", start_pair("old"), 8,
           "rank 1: NCCL is 2.27.99, expected 2.28.0 or later", 3)  # fmt: skip
    expect(tally, "a call without end", stuck, 9, "no end of it for 6 s", 10)
    expect(tally, "ranks that do not meet", late, 9,
           "joining the ranks' devices: NCCL does not come to an end", 35)  # fmt: skip


def test_death_in_init(tally, package, folder):
    """Who waits for a device that does not come hears of its process."""
    logs = tempfile.mkdtemp(dir=folder)
    first, last = start_ranks(package, 2, logs, of_last={"TCC_EMULATED_NCCL_FAULT": "meeting"})
    wait_until(lambda: os.path.exists(f"{logs}/rank-1.calls"), 30)
    last.kill()
    last.communicate()
    expect(tally, "killed where devices meet", [first], 9, "its process ended", 1)


def test_link(tally, package):
    """The link of the simulation is said wrongly."""
    for link in ("20", "x:1", "20:0", "20:1 "):
        run = start(package, "--steps", 1, "--ranks", 2, TCC_EMULATED_LINK=link)
        error = run.communicate(timeout=30)[1]
        said = f"TCC_EMULATED_LINK is '{link}', expected MICROSECONDS:BYTES"
        tally.check(f"link '{link}'", run.returncode == 9 and said in error, error)


def test_no_plugin(tally, package, folder):
    """A runtime that was built without NCCL's plugin."""
    tools = tempfile.mkdtemp(dir=folder)
    for name in ("tcc-run", "libtcc_emulated.so", "libtcc_gloo.so"):
        shutil.copy(os.path.join(harness.BIN, name), tools)
    started = start_ranks(package, 2, tools, tools=tools, TCC_PLUGINS=tools)
    expect(tally, "no plugin", started, 4, "has no collectives: libtcc_nccl.so", 3)


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
            if worlds != [2]:
                test_cases(tally, folder, world)
        for victim in (0, 1):
            test_loss(tally, package, folder, victim)
        test_faults(tally, package, folder, worlds != [2])
        test_death_in_init(tally, package, folder)
        test_no_plugin(tally, package, folder)
        test_few(tally, package)
        test_link(tally, package)
    tally.close()


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]] or [2])
