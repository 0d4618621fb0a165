"""The modules of workloads.py."""

import os
import warnings

import numpy as np
import torch
import torchvision
from bench import workloads
from models.exports import LanguageModel
from torch import nn
from torch.utils.flop_counter import FlopCounterMode
from transformers import GPT2Config, GPT2LMHeadModel

OPTIMIZERS = {"sgd": torch.optim.SGD, "adamw": torch.optim.AdamW}


def mlp():
    return nn.Sequential(
        nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10)
    )


def cnn():
    return nn.Sequential(
        nn.Unflatten(1, (1, 8, 8)),
        nn.Conv2d(1, 32, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(1024, 128),
        nn.ReLU(),
        nn.Linear(128, 10),
    )


def gpt2(**sizes):
    rates = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0)
    return LanguageModel(GPT2LMHeadModel(GPT2Config(**rates, **sizes)))


def gpt2_tiny():
    sizes = {"n_layer": 4, "n_embd": 256, "n_head": 8, "n_positions": 128}
    return gpt2(**sizes, vocab_size=256, bos_token_id=0, eos_token_id=0)


MODULES = {
    "mlp_digits": mlp,
    "cnn_digits": cnn,
    "gpt2_tiny": gpt2_tiny,
    "resnet18": torchvision.models.resnet18,
    "gpt2": gpt2,
}


def build(name):
    """The module, with the same parameters in every process."""
    torch.manual_seed(0)
    return MODULES[name]()


def export(name, folder):
    """Writes model.onnx and, by torch's names, parameters.npz."""
    module = build(name).eval()
    example, _ = workloads.batches(name)[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            module, (torch.from_numpy(example),), optimize=False, verbose=False
        )
    program.save(os.path.join(folder, "model.onnx"), external_data=True)
    parameters = {n: p.detach().numpy() for n, p in module.named_parameters()}
    np.savez(os.path.join(folder, "parameters.npz"), **parameters)


def count_flops(name):
    """Of the products and convolutions of a step, forward and backward."""
    x, target = map(torch.from_numpy, workloads.batches(name)[0])
    with FlopCounterMode(display=False) as counter:
        loss_of(build(name), x, target).backward()
    return counter.get_total_flops()


def loss_of(module, x, target):
    return nn.functional.cross_entropy(module(x).flatten(0, -2), target.flatten())


def make_step(name, is_narrow, fused=False, compiled=False, wrap=lambda module: module):
    """A function from a batch to its loss, which updates the module. What is fused
    has pictures with the channels last."""
    layout = torch.channels_last if fused else torch.contiguous_format
    module = wrap(build(name).train().to(memory_format=layout))
    options = dict(workloads.WORKLOADS[name].optimizer)
    make_optimizer = OPTIMIZERS[options.pop("kind")]
    optimizer = make_optimizer(module.parameters(), fused=fused or None, **options)
    loss_function = torch.compile(loss_of) if compiled else loss_of

    def step(x, target):
        optimizer.zero_grad()
        x, target = torch.from_numpy(x), torch.from_numpy(target)
        if x.dim() == 4:
            x = x.contiguous(memory_format=layout)
        with torch.autocast("cpu", torch.bfloat16, enabled=is_narrow):
            loss = loss_function(module, x, target)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step
