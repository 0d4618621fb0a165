"""One engine with one model in a process of its own.

  worker.py ENGINE MODEL PACKAGE DATA_SET THREADS PRECISION

Reads a number of seconds a line, runs for that long and prints a JSON line: the
milliseconds of each run, on one thread those that the process itself used, and
the CPU seconds of all. An idle worker sleeps, so that engines in turns do not
disturb each other.
"""

import contextlib
import glob
import json
import os
import resource
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import numpy_helper


def load_inputs(data_set):
    count = len(glob.glob(os.path.join(data_set, "input_*.pb")))
    arrays = []
    for i in range(count):
        with open(os.path.join(data_set, f"input_{i}.pb"), "rb") as stream:
            arrays.append(numpy_helper.to_array(onnx.load_tensor_from_string(stream.read())))
    return arrays


def open_tcc(model, package, inputs, threads, precision):
    from harness import BIN
    from models.cases import inputs_of
    from spine import capi

    library = capi.Library(os.path.join(BIN, "../runtime/libtcc_runtime.so"))
    context = capi.Context(library, library.open(package), threads)
    names = [name for name, _, _ in inputs_of(onnx.load(model, load_external_data=False))]
    context.run(dict(zip(names, inputs)), [])
    return lambda: library.call("tcc_context_run", context.handle)


def open_onnxruntime(model, package, inputs, threads, precision):
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model, options, providers=["CPUExecutionProvider"]
    )
    feeds = {info.name: x for info, x in zip(session.get_inputs(), inputs)}
    return lambda: session.run(None, feeds)


def open_openvino(model, package, inputs, threads, precision):
    import openvino

    core = openvino.Core()
    network = core.read_model(model)
    network.reshape({network.inputs[i]: list(x.shape) for i, x in enumerate(inputs)})
    settings = {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_NUM_THREADS": threads,
        "INFERENCE_PRECISION_HINT": precision,
        "NUM_STREAMS": 1,
    }
    request = core.compile_model(network, "CPU", settings).create_infer_request()
    for i, array in enumerate(inputs):
        request.set_input_tensor(i, openvino.Tensor(np.asarray(array, order="C")))
    return request.infer


def open_torch(model, package, inputs, threads, precision):
    """The module that an export was made from, by torch.compile."""
    import torch
    from models import exports

    torch.set_num_threads(threads)
    architecture = os.path.basename(os.path.dirname(model)).split(".")[0]
    module, _ = exports.build(architecture)
    compiled = torch.compile(module, options={"freezing": True})
    tensors = [torch.from_numpy(np.array(x)) for x in inputs]

    def run():
        with torch.no_grad():
            compiled(*tensors)

    run()
    return run


def open_iree(model, package, inputs, threads, precision):
    import iree.runtime

    if threads != 1:
        raise RuntimeError("IREE is measured on one thread")
    with tempfile.TemporaryDirectory() as work:
        compiled = iree.runtime.load_vm_flatbuffer_file(
            compile_for_iree(model, work), driver="local-sync"
        )
    run = compiled["main_graph"]
    return lambda: run(*inputs)


def compile_for_iree(model, work):
    """Tiled for the caches as far as IREE can."""
    from iree.compiler import CompilerToolError, compile_file

    imported, path = os.path.join(work, "model.mlir"), os.path.join(work, "model.vmfb")
    importer = [sys.executable, "-m", "iree.compiler.tools.import_onnx"]
    subprocess.run([*importer, model, "-o", imported], check=True)
    for extra in (["--iree-opt-data-tiling"], []):
        with contextlib.suppress(CompilerToolError):
            compile_file(
                imported,
                input_type="onnx",
                target_backends=["llvm-cpu"],
                output_file=path,
                extra_args=["--iree-llvmcpu-target-cpu=host", *extra],
            )
            return path
    raise RuntimeError("IREE does not compile it")


ENGINES = {
    "tcc": open_tcc,
    "onnxruntime": open_onnxruntime,
    "openvino": open_openvino,
    "torch": open_torch,
    "iree": open_iree,
}


def cpu_seconds(who=resource.RUSAGE_SELF):
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def status_bytes(field):
    with open("/proc/self/status") as stream:
        for line in stream:
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
    return 0


def serve(run, threads, facts=dict):
    """Prints, beside times, what `facts()` gives."""
    clock = time.process_time if threads == 1 else time.perf_counter
    for line in sys.stdin:
        times, begin = [], cpu_seconds()
        end = time.perf_counter() + float(line)
        while not times or time.perf_counter() < end:
            start = clock()
            run()
            times.append((clock() - start) * 1e3)
        reply = {"ms": times, "cpu": cpu_seconds() - begin, **facts()}
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    engine, model, package, data_set, threads, precision = sys.argv[1:]
    # Before any thread starts: they all inherit it.
    os.sched_setaffinity(0, range(int(threads)))
    inputs = load_inputs(data_set)
    run = ENGINES[engine](model, package, inputs, int(threads), precision)
    serve(run, int(threads))
