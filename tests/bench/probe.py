"""One measurement of tcc or ONNX Runtime in a fresh process.

  probe.py KIND MODEL PACKAGE DATA_SET

Prints a JSON object. All times are the process's own, in milliseconds, on one
thread; the files are in the page cache.

  load, load-checked, load-onnxruntime   `first` call and `median` one; `first`
      includes the opening, with the digests of weights in load-checked
  memory-onnxruntime   `bytes` of the peak beyond what is there after the import
  contexts             `ratio` of runs a second by two contexts in two threads to
      those by one, `bytes` that the second one added, `plan` of one
"""

import ctypes
import json
import os
import resource
import statistics
import sys
import threading
import time

import onnx
from bench import worker
from harness import BIN
from models.cases import inputs_of
from spine import capi

RUNS = 7
SECONDS = 1.0  # of each measurement of contexts


def own_milliseconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return (usage.ru_utime + usage.ru_stime) * 1e3


def touch(path):
    """Through a buffer so small that no later allocation reuses it."""
    buffer = bytearray(1 << 16)
    with open(path, "rb", buffering=0) as stream:
        while stream.readinto(buffer):
            pass


def time_calls(open_engine):
    """`open_engine` opens, runs once and returns a function that runs."""
    start = own_milliseconds()
    run = open_engine()
    first, times = own_milliseconds() - start, []
    for _ in range(RUNS):
        start = own_milliseconds()
        run()
        times.append(own_milliseconds() - start)
    return {"first": first, "median": statistics.median(times)}


class TccModel:
    def __init__(self, model, package, data_set):
        self.library = capi.Library(os.path.join(BIN, "../runtime/libtcc_runtime.so"))
        self.package = package
        names = [name for name, _, _ in inputs_of(onnx.load(model, load_external_data=False))]
        self.feed = dict(zip(names, worker.load_inputs(data_set)))
        touch(package)

    def open_context(self, program):
        context = capi.Context(self.library, program, 1)
        context.run(self.feed, [])
        return context

    def open(self, check_weights):
        context = self.open_context(self.library.open(self.package, check_weights))
        return lambda: self.library.call("tcc_context_run", context.handle)


def probe_load(*paths, check_weights=False):
    model = TccModel(*paths)
    return time_calls(lambda: model.open(check_weights))


def probe_load_checked(*paths):
    return probe_load(*paths, check_weights=True)


def probe_load_onnxruntime(model, package, data_set):
    import onnxruntime  # not part of the time

    assert onnxruntime
    inputs = worker.load_inputs(data_set)
    for name in os.listdir(os.path.dirname(model)):
        path = os.path.join(os.path.dirname(model), name)
        if os.path.isfile(path):
            touch(path)

    def open_engine():
        run = worker.open_onnxruntime(model, package, inputs, 1, "f32")
        run()
        return run

    return time_calls(open_engine)


def probe_memory_onnxruntime(model, package, data_set):
    import onnxruntime

    assert onnxruntime
    inputs = worker.load_inputs(data_set)
    before = worker.status_bytes("VmRSS")
    worker.open_onnxruntime(model, package, inputs, 1, "f32")()
    return {"bytes": worker.status_bytes("VmHWM") - before}


def run_for(library, context, core, rates, begin):
    """Appends the runs per second of the thread's own time."""
    os.sched_setaffinity(0, [core])
    begin.wait()
    runs, start, end = 0, time.thread_time(), time.monotonic() + SECONDS
    while time.monotonic() < end:
        library.call("tcc_context_run", context.handle)
        runs += 1
    rates.append(runs / (time.thread_time() - start))


def measure_rate(library, contexts, cores):
    rates, begin = [], threading.Barrier(len(contexts))
    threads = [
        threading.Thread(target=run_for, args=(library, context, core, rates, begin))
        for context, core in zip(contexts, cores)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(rates)


def probe_contexts(*paths):
    model = TccModel(*paths)
    program = model.library.open(model.package, False)
    contexts = [model.open_context(program)]
    before = worker.status_bytes("VmRSS")
    contexts.append(model.open_context(program))
    added = worker.status_bytes("VmRSS") - before
    plan = model.library.lib.tcc_context_planned_bytes
    plan.restype = ctypes.c_uint64
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        raise RuntimeError("two contexts need two cores")
    ratios = []
    for _ in range(RUNS):
        alone = measure_rate(model.library, contexts[:1], cores)
        ratios.append(measure_rate(model.library, contexts, cores) / alone)
    return {
        "ratio": statistics.median(ratios),
        "bytes": added,
        "plan": plan(contexts[0].handle),
    }


PROBES = {
    "load": probe_load,
    "load-checked": probe_load_checked,
    "load-onnxruntime": probe_load_onnxruntime,
    "memory-onnxruntime": probe_memory_onnxruntime,
    "contexts": probe_contexts,
}

if __name__ == "__main__":
    kind, *arguments = sys.argv[1:]
    print(json.dumps(PROBES[kind](*arguments)))
