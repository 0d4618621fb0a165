"""The modules whose weights torch writes, and torch as their oracle and peer.

  oracle.py write NAME BATCH TYPE FOLDER    weights, inputs and outputs; JSON of errors
  oracle.py time NAME BATCH TYPE DEVICE     JSON of milliseconds, by engine

Weights are seeded, so each process has the same. `write` computes on the CPU in f64:
output_<i>.npy are that, in f32; `apart` is how far torch itself is off in the type.
"""

import json
import os
import sys
import tempfile
import time

import numpy as np
import torch
import unknowns

TYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
TOKENS = 128
# Modes of torch.compile; max-autotune takes minutes a model.
COMPILED = ("reduce-overhead",)
ITERATIONS = 20


def images(batch, generator, pixels=224):
    return (torch.rand(batch, 3, pixels, pixels, generator=generator) * 2 - 1,)


def tokens(batch, generator):
    return (torch.randint(0, 30522, (batch, TOKENS), generator=generator),)


def vision(name):
    import torchvision

    return getattr(torchvision.models, name)()


def transformer(name):
    """With a head that is not zeros, which torchvision begins with."""
    module = vision(name)
    torch.nn.init.normal_(module.heads.head.weight, std=0.02)
    return module


class Bert(torch.nn.Module):
    def __init__(self):
        super().__init__()
        from transformers import BertConfig, BertModel

        self.model = BertModel(BertConfig(), add_pooling_layer=False)

    def forward(self, input_ids):
        return self.model(input_ids=input_ids).last_hidden_state


def small():
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1),
        torch.nn.BatchNorm2d(8),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(8 * 16 * 16, 10),
    )


# Name: module, inputs.
MODELS = {
    "resnet50": (lambda: vision("resnet50"), images),
    "vit_b_16": (lambda: transformer("vit_b_16"), images),
    "bert_base": (Bert, tokens),
    "small": (small, lambda batch, generator: images(batch, generator, 16)),
}


def build(name):
    """The module with the same weights everywhere."""
    torch.manual_seed(0)
    return MODELS[name][0]().eval().requires_grad_(False)


def inputs(name, batch):
    return MODELS[name][1](batch, torch.Generator().manual_seed(batch))


def export(name, path):
    """For a batch of any size; initializers have the names of the state."""
    from torch.export import Dim

    torch.onnx.export(
        build(name), inputs(name, 2), dynamo=True, optimize=False, verbose=False,
        dynamic_shapes=({0: Dim("batch", min=1, max=64)},),
    ).save(path, external_data=True)  # fmt: skip


def cast(values, dtype, device="cpu"):
    """Floats of the type; the tokens stay."""
    return [x.to(device, dtype) if x.is_floating_point() else x.to(device) for x in values]


def write(name, batch, kind, folder):
    from safetensors.torch import save_file

    module, feed = build(name), inputs(name, batch)
    # A package also has the buffers that torch saves in no state.
    state = dict(module.named_buffers()) | module.state_dict()
    state = {key: value.clone() for key, value in state.items()}
    save_file(state, os.path.join(folder, "weights.safetensors"))
    for i, x in enumerate(feed):
        np.save(os.path.join(folder, f"input_{i}.npy"), x.numpy())
    device = "cuda" if torch.cuda.is_available() else "cpu"
    exact = module.to(device, torch.float64)(*cast(feed, torch.float64, device)).cpu()
    np.save(os.path.join(folder, "output_0.npy"), exact.float().numpy())
    own = module.to(TYPES[kind])(*cast(feed, TYPES[kind], device)).cpu().double()
    return {"apart": float((own - exact).abs().max() / exact.abs().max())}


def time_torch(module, feed, device):
    """Milliseconds of a run, inputs and outputs on the device."""
    import unknowns

    with torch.inference_mode():
        return 1e3 * unknowns.measure(torch, device, lambda: module(*feed))


def time_onnxruntime(name, batch, kind, device):
    """In f16 and f32, as torch exports the module; on tensors of the host."""
    import onnxruntime

    wanted = "CUDAExecutionProvider" if device == "cuda" else "CPUExecutionProvider"
    if wanted not in onnxruntime.get_available_providers():
        raise ImportError(f"{wanted} of onnxruntime")
    if kind == "bf16":
        raise ImportError("bf16 of onnxruntime's operators")
    with tempfile.TemporaryDirectory() as folder:
        path, feed = os.path.join(folder, "m.onnx"), cast(inputs(name, batch), TYPES[kind])
        module = build(name).to(TYPES[kind])
        torch.onnx.export(
            module, tuple(feed), dynamo=True, verbose=False
        ).save(path, external_data=True)  # fmt: skip
        session = onnxruntime.InferenceSession(path, providers=[wanted])
        values = {i.name: x.numpy() for i, x in zip(session.get_inputs(), feed)}
        seconds = []
        for _ in range(ITERATIONS):
            start = time.perf_counter()
            session.run(None, values)
            seconds.append(time.perf_counter() - start)
    return 1e3 * sorted(seconds)[len(seconds) // 2]


def time_all(name, batch, kind, device, modes):
    """By engine its milliseconds, or why there are none."""
    module = build(name).to(device, TYPES[kind])
    feed = cast(inputs(name, batch), TYPES[kind], device)
    engines = {"eager": lambda: time_torch(module, feed, device)}
    for mode in modes:
        engines[f"torch.compile {mode}"] = lambda mode=mode: time_torch(
            torch.compile(module, mode=mode), feed, device
        )
    engines["onnxruntime"] = lambda: time_onnxruntime(name, batch, kind, device)
    for engine, run in engines.items():
        try:
            found = {"engine": engine, "ms": run()}
        except Exception as problem:  # whatever a compiler meets
            found = {"engine": engine, "missing": f"{problem}".splitlines()[0][:120]}
        print(json.dumps(found), flush=True)


def main(command, name, batch, kind, *rest):
    torch.set_grad_enabled(False)
    if command == "write":
        print(json.dumps(write(name, int(batch), kind, *rest)))
    else:
        device, *modes = rest
        time_all(name, int(batch), kind, device, modes)


if __name__ == "__main__":
    main(*sys.argv[1:])
