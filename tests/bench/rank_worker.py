"""One process of a job of ranks.py: trains one workload with one engine.

  rank_worker.py ENGINE WORKLOAD PACKAGE RANK WORLD PORT CORE

Reads a number of steps a line, makes them and prints a JSON line: the seconds and the
losses. An engine is "tcc" or "torch"; WORLD processes train together, on one thread and
one core each.
"""

import importlib
import itertools
import json
import os
import sys
import time

from bench import workloads
from harness import BIN


def open_tcc(name, package, rank, world, port):
    capi = importlib.import_module("spine.capi")
    library = capi.Library(os.path.join(BIN, "../runtime/libtcc_runtime.so"))
    place = f"127.0.0.1:{port}"
    session = capi.Session(library, library.open(package), 1, world, rank, place)
    return lambda *batch: session.step(*batch).loss


def open_torch(name, package, rank, world, port):
    """DistributedDataParallel over Gloo, as its documentation has it."""
    torch_models = importlib.import_module("bench.torch_models")
    torch_models.torch.set_num_threads(1)
    if world == 1:
        return torch_models.make_step(name, False, fused=True)
    distributed = importlib.import_module("torch.distributed")
    parallel = importlib.import_module("torch.nn.parallel")
    place = f"tcp://127.0.0.1:{port}"
    distributed.init_process_group("gloo", init_method=place, rank=rank, world_size=world)
    return torch_models.make_step(
        name, False, fused=True, wrap=parallel.DistributedDataParallel
    )


ENGINES = {"tcc": open_tcc, "torch": open_torch}


def main(engine, name, package, rank, world, port, core):
    os.sched_setaffinity(0, [core])
    # Ranks take batches in turns.
    batches = itertools.islice(itertools.cycle(workloads.batches(name)), rank, None, world)
    step = ENGINES[engine](name, package, rank, world, port)
    for line in sys.stdin:
        begin = time.perf_counter()
        losses = [step(*next(batches)) for _ in range(int(line))]
        print(json.dumps({"seconds": time.perf_counter() - begin, "losses": losses}), flush=True)
    os._exit(0)  # without waiting for others


if __name__ == "__main__":
    main(*sys.argv[1:4], *map(int, sys.argv[4:]))
