"""Training steps of torch: the oracle and the peer of tcc-run train.

  steps.py write NAME FOLDER DEVICE    weights.safetensors, data.npz; JSON of losses
  steps.py time NAME DEVICE            JSON of milliseconds a step, by engine

Parameters and batches are seeded, so each process has the same. A step is forward,
loss, backward and a fused optimizer's update, under autocast to bf16, pictures with
the channels last.
"""

import collections
import json
import os
import sys
import time

import numpy as np
import oracle
import torch
from torch import nn

# Batches, one after the other and over again.
BATCHES = 4
# Whose losses are compared.
COMPARED = 8
WARM_UP, STEPS, ROUNDS = 5, 15, 5

Subject = collections.namedtuple("Subject", "module batch optimizer recipe")

SGD = {"lr": 0.01, "momentum": 0.9, "weight_decay": 1e-4}
ADAMW = {"lr": 1e-4, "betas": [0.9, 0.95], "weight_decay": 0.1}
OPTIMIZERS = {"sgd": torch.optim.SGD, "adamw": torch.optim.AdamW}


class LanguageModel(nn.Module):
    def __init__(self, **sizes):
        super().__init__()
        from transformers import GPT2Config, GPT2LMHeadModel

        rates = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0)
        self.model = GPT2LMHeadModel(GPT2Config(**rates, **sizes))

    def forward(self, input_ids):
        return self.model(input_ids=input_ids, use_cache=False).logits


def pictures(count, pixels, classes):
    def make(generator):
        x = torch.randn(BATCHES * count, 3, pixels, pixels, generator=generator)
        return x, torch.randint(0, classes, (len(x),), generator=generator)

    return make


def tokens(count, length, vocabulary):
    def make(generator):
        shape = (BATCHES * count, length + 1)
        rows = torch.randint(0, vocabulary, shape, generator=generator)
        return rows[:, :-1].clone(), rows[:, 1:].clone()

    return make


def recipe(loss, optimizer, **keys):
    tables = {
        "loss": loss,
        "optimizer": {"kind": optimizer, **keys},
        "precision": {"compute": "bf16"},
    }
    lines = []
    for table, values in tables.items():
        lines += [f"[{table}]", *(f"{key} = {json.dumps(v)}" for key, v in values.items())]
    return "\n".join(lines) + "\n"


CLASSIFIER = {"kind": "cross_entropy"}
LANGUAGE = {"kind": "causal_lm", "shift": False}
SUBJECTS = {
    "resnet50.b64": Subject(
        lambda: oracle.vision("resnet50"), pictures(64, 224, 1000),
        ("sgd", SGD), recipe(CLASSIFIER, "sgd", **SGD),
    ),
    "gpt2.b8": Subject(
        LanguageModel, tokens(8, 1024, 50257), ("adamw", ADAMW),
        recipe(LANGUAGE, "adamw", **ADAMW),
    ),
    "small.b4": Subject(
        oracle.small, pictures(4, 16, 10), ("sgd", SGD), recipe(CLASSIFIER, "sgd", **SGD)
    ),
}  # fmt: skip


def build(name):
    torch.manual_seed(0)
    return SUBJECTS[name].module()


def batches(name):
    """(inputs, targets) of each batch."""
    x, target = SUBJECTS[name].batch(torch.Generator().manual_seed(1))
    return list(zip(x.chunk(BATCHES), target.chunk(BATCHES)))


def export(name, path):
    example = batches(name)[0][0]
    torch.onnx.export(
        build(name).eval(), (example,), input_names=["x"], dynamo=True, optimize=False,
        verbose=False,
    ).save(path, external_data=True)  # fmt: skip


def make_step(name, device, mode=None):
    """A function that makes one step and gives its loss, a tensor of the device."""
    layout = {"memory_format": torch.channels_last}
    module, feed = build(name).train().to(device), batches(name)
    feed = [(x.to(device), target.to(device)) for x, target in feed]
    if feed[0][0].dim() == 4:
        module = module.to(**layout)
        feed = [(x.contiguous(**layout), target) for x, target in feed]
    kind, options = SUBJECTS[name].optimizer
    optimizer = OPTIMIZERS[kind](module.parameters(), fused=True, **options)

    def find_loss(x, target):
        logits = module(x)
        return nn.functional.cross_entropy(
            logits.reshape(-1, logits.shape[-1]), target.flatten()
        )

    if mode:
        find_loss = torch.compile(find_loss, mode=mode)
    made = 0

    def step():
        nonlocal made
        x, target = feed[made % BATCHES]
        made += 1
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device, torch.bfloat16):
            loss = find_loss(x, target)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def write(name, folder, device):
    from safetensors.torch import save_file

    state = build(name).state_dict()
    # The embedding is the head's tensor too, and goes by the head's name.
    kept = {key: value.clone() for key, value in state.items() if "wte" not in key}
    save_file(kept, os.path.join(folder, "weights.safetensors"))
    x, target = map(torch.cat, zip(*batches(name)))
    np.savez(os.path.join(folder, "data.npz"), x=x.numpy(), labels=target.numpy())
    step = make_step(name, device)
    return {"losses": [float(step()) for _ in range(COMPARED)]}


def measure(step, device):
    """Milliseconds a step: the median of rounds."""
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    for _ in range(WARM_UP):
        step()
    rounds = []
    for _ in range(ROUNDS):
        wait()
        start = time.perf_counter()
        for _ in range(STEPS):
            step()
        wait()
        rounds.append((time.perf_counter() - start) / STEPS * 1e3)
    return sorted(rounds)[ROUNDS // 2]


def time_all(name, device):
    """By engine its milliseconds, or why there are none."""
    modes = (None, "default") if device == "cuda" else (None,)
    for mode in modes:
        engine = f"torch.compile {mode}" if mode else "eager"
        try:
            found = {"engine": engine, "ms": measure(make_step(name, device, mode), device)}
        except Exception as problem:  # whatever a compiler meets
            found = {"engine": engine, "missing": f"{problem}".splitlines()[0][:120]}
        print(json.dumps(found), flush=True)


def main(command, name, *rest):
    if command == "write":
        print(json.dumps(write(name, *rest)))
    else:
        time_all(name, *rest)


if __name__ == "__main__":
    main(*sys.argv[1:])
