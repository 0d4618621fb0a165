"""One engine that trains one workload, in a process of its own.

  trainer.py ENGINE WORKLOAD FOLDER THREADS PRECISION

FOLDER holds what train.py wrote. Makes the first steps at once and then as many as
it is told to, as worker.py. A step takes its batch from NumPy arrays and gives its
loss. The facts that it prints:

  losses    of the first steps
  first_s   CPU seconds from the parameters to the end of the first step, compilers
            in processes of their own included
  first_clock_s  the same by the clock
  peak_mb   of memory, beyond what is there after the imports
"""

import importlib
import itertools
import os
import resource
import sys
import tempfile
import time

from bench import workloads
from bench.worker import cpu_seconds, serve, status_bytes
from harness import BIN

FIRST_STEPS = 8


def open_tcc(capi, name, folder, threads, precision):
    library = capi.Library(os.path.join(BIN, "../runtime/libtcc_runtime.so"))
    package = os.path.join(folder, f"{precision}.tcc")
    session = capi.Session(library, library.open(package), threads)
    return lambda *batch: session.step(*batch).loss


def open_torch(torch_models, name, folder, threads, precision, **variant):
    torch_models.torch.set_num_threads(threads)
    return torch_models.make_step(name, precision == "bf16", **variant)


def open_torch_fused(*arguments):
    return open_torch(*arguments, fused=True)


def open_torch_compile(*arguments):
    return open_torch(*arguments, fused=True, compiled=True)


def open_jax(jax_models, name, folder, threads, precision):
    return jax_models.make_step(name, os.path.join(folder, "parameters.npz"))


# The module that an engine is imported with, and what opens it.
ENGINES = {
    "tcc": ("spine.capi", open_tcc),
    "torch": ("bench.torch_models", open_torch),
    "torch_fused": ("bench.torch_models", open_torch_fused),
    "torch_compile": ("bench.torch_models", open_torch_compile),
    "jax": ("bench.jax_models", open_jax),
}


def all_cpu_seconds():
    return cpu_seconds() + cpu_seconds(resource.RUSAGE_CHILDREN)


def pin(cores):
    """All threads."""
    for task in os.listdir("/proc/self/task"):
        os.sched_setaffinity(int(task), cores)


def main(engine, name, folder, threads, precision):
    # Before any thread starts: they all inherit it. What compiles for long leaves
    # the others alone.
    compiles_long = engine == "torch_compile"
    os.sched_setaffinity(0, [os.cpu_count() - 1] if compiles_long else range(threads))
    if threads == 1:
        os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
    # No processes that live on, and nothing compiled before.
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = tempfile.mkdtemp(dir=folder)
    module, open_engine = ENGINES[engine]
    module = importlib.import_module(module)
    batches = itertools.cycle(workloads.batches(name))
    imported, start = status_bytes("VmRSS"), all_cpu_seconds()
    clock = time.perf_counter()
    step = open_engine(module, name, folder, threads, precision)
    losses = [step(*next(batches))]
    first, first_clock = all_cpu_seconds() - start, time.perf_counter() - clock
    losses += [step(*next(batches)) for _ in range(FIRST_STEPS - 1)]
    pin(range(threads))

    def facts():
        peak = (status_bytes("VmHWM") - imported) / 1e6
        facts = {"losses": losses, "first_s": first, "peak_mb": peak}
        return facts | {"first_clock_s": first_clock}

    serve(lambda: step(*next(batches)), threads, facts)


if __name__ == "__main__":
    engine, name, folder, threads, precision = sys.argv[1:]
    main(engine, name, folder, int(threads), precision)
