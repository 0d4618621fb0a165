"""Writes fixtures/: models, data, and what PyTorch makes of each case.

  make_parity_fixtures.py [MODEL...]

Needs torch and transformers; the tests need only what it wrote. The digits are
a part of scikit-learn's (UCI optdigits, CC BY 4.0).
"""

import gzip
import os
import sys
import warnings
import zipfile

import numpy as np
import onnx
import torch
from compiler.train.make_fixtures import KINDS, make_scheduler
from frontends.archives.make import save_program, save_script
from models.wheels import wheel
from torch import nn
from training import cases
from transformers import GPT2Config, GPT2LMHeadModel

SCIKIT = "scikit-learn==1.9.1"
DIGITS = 512
ROLE = "pkg.torch.export.graph_signature"
# Lincoln at Gettysburg, 1863.
TEXT = """Four score and seven years ago our fathers brought forth on this \
continent, a new nation, conceived in Liberty, and dedicated to the proposition \
that all men are created equal. Now we are engaged in a great civil war, testing \
whether that nation, or any nation so conceived and so dedicated, can long endure. \
We are met on a great battle-field of that war. We have come to dedicate a portion \
of that field, as a final resting place for those who here gave their lives that \
that nation might live. It is altogether fitting and proper that we should do this. \
But, in a larger sense, we can not dedicate, we can not consecrate, we can not \
hallow, this ground. The brave men, living and dead, who struggled here, have \
consecrated it, far above our poor power to add or detract. The world will little \
note, nor long remember what we say here, but it can never forget what they did \
here. It is for us the living, rather, to be dedicated here to the unfinished work \
which they who fought here have thus far so nobly advanced."""
SEQUENCE = 12
# Layers, width, heads.
GPTS = {"gpt2_tiny": (2, 16, 2), "gpt2_deep": (12, 64, 4)}


class GPT(nn.Module):
    def __init__(self, layers, width, heads):
        super().__init__()
        rates = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0)
        sizes = {"n_layer": layers, "n_embd": width, "n_head": heads}
        sizes["n_positions"] = SEQUENCE
        tokens = {"vocab_size": 128, "bos_token_id": 0, "eos_token_id": 0}
        self.model = GPT2LMHeadModel(GPT2Config(**rates, **sizes, **tokens))

    def forward(self, x):
        return self.model(input_ids=x, use_cache=False).logits


class Layers(nn.Sequential):
    """Its input has the name of the data's."""

    def forward(self, x):
        return super().forward(x)


def convolutional(norm):
    # A bias that a batch norm subtracts again has gradients of rounding errors
    # alone, which adam and lion would make as large as any other.
    bias = norm is nn.Identity
    return Layers(
        nn.Unflatten(1, (1, 8, 8)),
        nn.Conv2d(1, 8, 3, padding=1, bias=bias),
        norm(8),
        nn.ReLU(),
        nn.Conv2d(8, 16, 3, stride=2, padding=1, bias=bias),
        norm(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64, 10),
    )


def make_model(name):
    torch.manual_seed(1)
    if name in GPTS:
        return GPT(*GPTS[name])
    if name == "mlp_digits":
        layers = nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 16), nn.GELU()
        return Layers(*layers, nn.Linear(16, 10))
    norms = {"bn_digits": nn.BatchNorm2d, "gn_digits": lambda count: nn.GroupNorm(4, count)}
    return convolutional(norms.get(name, nn.Identity))


def make_data(name):
    if name == "text":
        text = np.frombuffer(TEXT.encode(), np.uint8).astype(np.int64)
        rows = text[: len(text) // SEQUENCE * SEQUENCE].reshape(-1, SEQUENCE)
        return {"x": rows, "labels": rows}
    with zipfile.ZipFile(wheel(SCIKIT)) as archive:
        packed = archive.read("sklearn/datasets/data/digits.csv.gz")
    lines = gzip.decompress(packed).decode().splitlines()[:DIGITS]
    table = np.array([line.split(",") for line in lines], float)
    pixels = (table[:, :64] / 16).astype(np.float32)
    return {"x": pixels, "labels": table[:, 64].astype(np.int64)}


def export(module, name, example):
    """As tcc asks for it, and without the exporter's traces."""
    path = os.path.join(cases.FIXTURES, name + ".onnx")
    dims = {0: "batch"} if name == "mlp_digits" else None
    torch.onnx.export(
        module.eval(),
        (example,),
        path,
        optimize=False,
        external_data=False,
        dynamic_shapes=[dims],
        input_names=["x"],
        output_names=["logits"],
        verbose=False,
    )
    model = onnx.load(path)
    del model.metadata_props[:], model.graph.metadata_props[:], model.functions[:]
    del model.graph.value_info[:]
    for node in model.graph.node:
        del node.metadata_props[:]
        node.doc_string = ""
    for value in model.graph.initializer:
        kept = [p for p in value.metadata_props if p.key.startswith(ROLE)]
        del value.metadata_props[:]
        value.metadata_props.extend(kept)
    onnx.checker.check_model(model)
    onnx.save(model, path)


class Batches:
    """Tensors of batch after batch, the data over and over."""

    def __init__(self, data, size, compute):
        self.data, self.size, self.compute = data, size, compute
        self.count = len(data["x"]) // size

    def get(self, index):
        first = index % self.count * self.size
        x, y = (
            torch.tensor(self.data[key][first : first + self.size])
            for key in ("x", "labels")
        )
        return (x.to(self.compute) if x.is_floating_point() else x), y


def loss_of(module, model, batch):
    logits, target = module(batch[0]), batch[1]
    if model.loss == "causal_lm":
        logits, target = logits[:, :-1].flatten(0, 1), target[:, 1:].flatten()
    return nn.functional.cross_entropy(logits, target)


def tensors_of(module):
    """The exporter keeps one of the names of a tied tensor."""
    return {
        name: value.detach().numpy().copy()
        for name, value in module.state_dict().items()
        if value.is_floating_point() and not name.endswith("wte.weight")
    }


def make_optimizer(module, case):
    options = dict(cases.OPTIMIZERS[case.optimizer])
    optimizer = KINDS[options.pop("kind")](module.parameters(), **options)
    keys = cases.schedule_keys(case)
    if case.schedule == "one_cycle" and case.optimizer == "sgd":
        # Compiled without momentum, it has none at run time.
        keys["cycle_momentum"] = False
    return optimizer, make_scheduler(optimizer, case.schedule, keys)


def clip(module, clips):
    if "clip_norm" in clips:
        nn.utils.clip_grad_norm_(module.parameters(), clips["clip_norm"])
    if "clip_value" in clips:
        nn.utils.clip_grad_value_(module.parameters(), clips["clip_value"])


def train(case, data, compute):
    """Losses, gradients of the first step, and the module after the last."""
    module = make_model(case.model).to(compute).train()
    model = cases.MODELS[case.model]
    batches = Batches(data, model.batch, compute)
    optimizer, scheduler = make_optimizer(module, case)
    losses, gradients = [], None
    for step in range(cases.steps_of(case)):
        optimizer.zero_grad()
        losses.append(0.0)
        for i in range(case.accumulate):
            batch = batches.get(step * case.accumulate + i)
            loss = loss_of(module, model, batch) / case.accumulate
            loss.backward()
            losses[-1] += loss.item()
        if gradients is None:
            gradients = {n: p.grad.numpy().copy() for n, p in module.named_parameters()}
        clip(module, cases.CLIPS[case.clip])
        optimizer.step()
        scheduler.step()
    return losses, gradients, module


def make(name):
    data = make_data(cases.MODELS[name].data)
    size = cases.MODELS[name].batch
    example = torch.tensor(data["x"][:size])
    export(make_model(name), name, example)
    if name in cases.PROGRAMS:
        path, module = os.path.join(cases.FIXTURES, name), make_model(name).eval()
        save_program(module, (example,), path + ".pt2")
        traced = torch.jit.trace(module, (example,), check_trace=False)
        save_script(traced, path + ".pt")
    kept = {}
    for case in filter(lambda case: case.model == name, cases.cases()):
        losses, _, module = train(case, data, torch.float64)
        parts = cases.summary(losses, tensors_of(module))
        kept[cases.name_of(case)] = np.concatenate(parts)
    single = cases.single(name)
    curve, gradients, _ = train(single, data, torch.float64)
    kept["f64"] = np.asarray(curve)
    kept["f32"] = np.asarray(train(single, data, torch.float32)[0])
    gradients = {n.replace("transformer.wte", "lm_head"): g for n, g in gradients.items()}
    kept |= {f"gradient/{n}": g.astype(np.float32) for n, g in gradients.items()}
    cases.save(name, kept)


def main(names):
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    os.makedirs(cases.FIXTURES, exist_ok=True)
    for name in ("digits", "text"):
        path = os.path.join(cases.FIXTURES, name + ".npz")
        np.savez_compressed(path, **make_data(name))
    for name in names or cases.MODELS:
        make(name)


if __name__ == "__main__":
    main(sys.argv[1:])
