"""Writes fixtures/precision.json: how far torch.autocast is from f32.

Needs torch and transformers; the test needs only what it wrote.
"""

import json
import warnings

import numpy as np
import torch
from training import cases, precision
from training import make_parity_fixtures as parity

DTYPES = {"f32": None, "bf16": torch.bfloat16, "f16": torch.float16}
SCALE = 65536


def autocast(compute):
    return torch.autocast("cpu", dtype=DTYPES[compute], enabled=compute != "f32")


def measure_gradients(name, compute):
    model = cases.MODELS[name]
    module = parity.make_model(name).train()
    batch = parity.Batches(parity.make_data(model.data), model.batch, torch.float32).get(0)
    with autocast(compute):
        loss = parity.loss_of(module, model, batch)
    scale = SCALE if compute == "f16" else 1
    (loss * scale).backward()
    gradients = {
        n.replace("transformer.wte", "lm_head"): p.grad.numpy() / scale
        for n, p in module.named_parameters()
    }
    return precision.measure(gradients, precision.load_gradients(name))


def mean_loss(compute):
    name, optimizer = precision.CURVE
    model = cases.MODELS[name]
    module = parity.make_model(name).train()
    batches = parity.Batches(parity.make_data(model.data), model.batch, torch.float32)
    case = cases.Case(name, optimizer, "constant", "free", 1)
    optimizer, _ = parity.make_optimizer(module, case)
    losses = []
    for step in range(precision.STEPS):
        optimizer.zero_grad()
        with autocast(compute):
            loss = parity.loss_of(module, model, batches.get(step))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return float(np.mean(losses[-precision.LAST :]))


def main():
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    kept = {
        model: {compute: measure_gradients(model, compute) for compute in precision.TYPES}
        for model in precision.MODELS
    }
    kept["losses"] = {compute: mean_loss(compute) for compute in ("f32", "bf16")}
    with open(precision.FIXTURE, "w") as stream:
        json.dump(kept, stream, indent=1)
        stream.write("\n")


if __name__ == "__main__":
    main()
