"""One engine with one net of the zoo in a process of its own.

  zoo_worker.py MODE ENGINE NAME FOLDER THREADS PRECISION

MODE is infer or train; FOLDER holds what zoo.py wrote. Runs and prints as worker.py;
in training also the facts of trainer.py.
"""

import itertools
import os
import sys
import tempfile

import numpy as np
import torch
from bench import nets, worker
from bench.nets import net as common
from bench.trainer import pin
from harness import BIN
from spine import capi

FIRST_STEPS = 3
BATCHES = 2  # different ones, over and over


def layout_of(module):
    """That of PyTorch's fastest convolutions."""
    kinds = {type(part) for part in module.modules()}
    if torch.nn.Conv3d in kinds:
        return torch.channels_last_3d
    return torch.channels_last if torch.nn.Conv2d in kinds else torch.contiguous_format


def tensors(arrays, layout):
    made = [torch.from_numpy(array) for array in arrays]
    rank = {torch.channels_last: 4, torch.channels_last_3d: 5}.get(layout)
    return [x.contiguous(memory_format=layout) if x.dim() == rank else x for x in made]


def open_torch_inference(name, folder, inputs, threads, precision, compiled):
    torch.set_num_threads(threads)
    module = common.build(nets.ALL[name], is_training=False)
    layout = layout_of(module)
    module = module.to(memory_format=layout)
    inputs = tensors(map(np.array, inputs), layout)  # that may be written
    if compiled:
        module = torch.compile(module, options={"freezing": True})

    def run():
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            module(*inputs)

    run()
    return run


def infer(engine, name, folder, threads, precision):
    inputs = worker.load_inputs(os.path.join(folder, "test_data_set_0"))
    if engine.startswith("torch"):
        compiled = engine == "torch_compile"
        run = open_torch_inference(name, folder, inputs, threads, precision, compiled)
    else:
        model, package = (os.path.join(folder, file) for file in ("model.onnx", "model.tcc"))
        run = worker.ENGINES[engine](model, package, inputs, threads, precision)
    worker.serve(run, threads)


def open_torch_step(name, threads, precision, compiled):
    torch.set_num_threads(threads)
    net = nets.ALL[name]
    module = common.build(net, is_training=True)
    layout = layout_of(module)
    module = module.to(memory_format=layout)
    optimizer = torch.optim.AdamW(module.parameters(), lr=common.RATE, fused=True)

    def loss_of(*batch):
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            return common.loss_of(net.loss, module(*batch[:-1]), batch[-1])

    loss_function = torch.compile(loss_of) if compiled else loss_of

    def step(*batch):
        optimizer.zero_grad()
        loss = loss_function(*tensors(batch, layout))
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def open_tcc_step(name, folder, threads):
    library = capi.Library(os.path.join(BIN, "../runtime/libtcc_runtime.so"))
    package = os.path.join(folder, "model.tcc")
    session = capi.Session(library, library.open(package), threads)
    return lambda *batch: session.step(*batch).loss


def load_batches(folder):
    with np.load(os.path.join(folder, "batches.npz")) as stored:
        arrays = dict(stored)
    count = len(arrays) // BATCHES
    return [[arrays[f"{b}.{i}"] for i in range(count)] for b in range(BATCHES)]


def train(engine, name, folder, threads, precision):
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = tempfile.mkdtemp(dir=folder)
    batches = itertools.cycle(load_batches(folder))
    imported = worker.status_bytes("VmRSS")
    if engine == "tcc":
        step = open_tcc_step(name, folder, threads)
    else:
        step = open_torch_step(name, threads, precision, engine == "torch_compile")
    losses = [step(*next(batches)) for _ in range(FIRST_STEPS)]
    pin(range(threads))

    def facts():
        peak = (worker.status_bytes("VmHWM") - imported) / 1e6
        return {"losses": losses, "peak_mb": peak}

    worker.serve(lambda: step(*next(batches)), threads, facts)


MODES = {"infer": infer, "train": train}

if __name__ == "__main__":
    mode, engine, name, folder, threads, precision = sys.argv[1:]
    # Before any thread starts: they all inherit it.
    os.sched_setaffinity(0, range(int(threads)))
    MODES[mode](engine, name, folder, int(threads), precision)
