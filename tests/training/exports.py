"""Trains what PyTorch exports: exports.py (needs torch and transformers)

Names and refusals of the usual exports of large models, a deep one beside PyTorch,
and trained parameters that PyTorch loads strictly.
"""

import importlib.util
import json
import os
import tempfile
import warnings

import numpy as np
import torch
from harness import ROOT, Tally, first_line, run_tool
from models import exports
from safetensors.torch import load_file
from training import cases, parity
from training import make_parity_fixtures as fixtures

DEEP = cases.Model(4, 8, "causal_lm", "text")

spec = importlib.util.spec_from_file_location("tool", ROOT + "/tools/export-training.py")
tool = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tool)


def write_recipe(path, loss, *more):
    lines = ["[loss]", f'kind = "{loss}"', *more, "[optimizer]", 'kind = "sgd"', "lr = 0.01"]
    with open(path, "w") as stream:
        stream.write("\n".join(lines) + "\n")
    return path


def compile_model(folder, model, loss, *more):
    recipe = write_recipe(f"{folder}/recipe.toml", loss, *more)
    package = f"{folder}/m.tcc"
    return package, run_tool("tcc", model, f"--train={recipe}", "-q", "-o", package)


def tensors_of(package):
    """Shapes of parameters and buffers by name."""
    info = json.loads(run_tool("tcc-run", "info", package, "--json").out)
    kinds = "parameter", "buffer"
    return {v["name"]: v["shape"] for v in info["variables"] if v["kind"] in kinds}


def check_names(tally, name, package, module, constant=()):
    """The package has each tensor of the module once, under one of its names."""
    tensors, missing = tensors_of(package), []
    state = module.state_dict()
    known = {t.data_ptr() for n, t in state.items() if n in tensors}
    for key, value in state.items():
        if key in tensors:
            if tensors[key] != list(value.shape):
                missing.append(f"{key}: {tensors[key]}, not {list(value.shape)}")
        elif value.data_ptr() not in known and key not in constant:
            missing.append(key)
    extra = sorted(set(tensors) - set(state))
    tally.check(f"{name} names", not missing and not extra, f"{missing} {extra}")


def check_usual(tally, folder, name, loss, *more):
    """The export that users have: named as in the module."""
    module, _ = exports.build(name)
    model = os.path.join(exports.make(f"{name}.b1", {}), "model.onnx")
    package, compiled = compile_model(folder, model, loss, *more)
    if tally.check(f"{name} compiles", compiled.code == 0, first_line(compiled)):
        check_names(tally, name, package, module)


def check_class_token(tally, folder):
    """The usual export of vit repeats it for the batch, which cannot be undone."""
    module, inputs = exports.build("vit_b_16")
    model = os.path.join(exports.make("vit_b_16.b1", {}), "model.onnx")
    _, refused = compile_model(folder, model, "cross_entropy")
    says = all(word in refused.err for word in ("class_token", "'expand'", "optimize=False"))
    tally.check("vit_b_16 is refused", refused.code == 4 and says, first_line(refused))
    constant = '[params]\nconstant = ["expand"]'
    package, compiled = compile_model(folder, model, "cross_entropy", constant)
    if tally.check("vit_b_16 compiles", compiled.code == 0, first_line(compiled)):
        check_names(tally, "vit_b_16", package, module, ["class_token"])
    model = f"{folder}/vit.onnx"
    exports.export("vit_b_16", module, inputs(1), model, False, optimize=False)
    package, compiled = compile_model(folder, model, "cross_entropy")
    if tally.check("vit_b_16 as exported for training", compiled.code == 0, first_line(compiled)):
        check_names(tally, "vit_b_16 as exported for training", package, module)


def check_deep(tally, folder):
    """Twelve layers for eight steps beside PyTorch, both in f64."""
    cases.FIXTURES = folder
    cases.MODELS["gpt2_deep"] = DEEP
    case = cases.Case("gpt2_deep", "adamw", "one_cycle", "norm", 1)
    data = fixtures.make_data("text")
    np.savez(f"{folder}/text.npz", **data)
    example = torch.tensor(data["x"][: DEEP.batch])
    fixtures.export(fixtures.make_model("gpt2_deep"), "gpt2_deep", example)
    losses, _, module = fixtures.train(case, data, torch.float64)
    expected = np.concatenate(cases.summary(losses, fixtures.tensors_of(module)))
    package = parity.compile_model(folder, case.model, case.optimizer)
    worst = parity.compare(tally, "gpt2_deep", package, case, expected)
    print(f"gpt2_deep: f64 {worst:.1e}", flush=True)


def check_strict(tally, folder, name, module, example, loss, classes):
    """What was trained goes back into the module, all of it."""
    model, data = f"{folder}/{name}.onnx", f"{folder}/{name}.npz"
    tool.export_training(module, (example,), model)
    package, compiled = compile_model(folder, model, loss)
    if not tally.check(f"{name} compiles", compiled.code == 0, first_line(compiled)):
        return
    labels = example if loss == "causal_lm" else torch.arange(len(example)) % classes
    info = json.loads(run_tool("tcc-run", "info", package, "--json").out)
    predict = next(e for e in info["entries"] if e["name"] == "predict")
    key = predict["inputs"][0]["name"]
    np.savez(data, **{key: example.numpy(), "labels": labels.numpy()})
    trained = f"{folder}/{name}.safetensors"
    options = ["--steps", 2, "--export", trained, "-q"]
    ran = run_tool("tcc-run", "train", package, "--data", f"npz:{data}", *options)
    if not tally.check(f"{name} trains", ran.code == 0, first_line(ran)):
        return
    state = load_file(trained)
    try:
        module.load_state_dict(state, strict=True)
        refusal = None
    except RuntimeError as error:
        refusal = str(error).replace("\n", " ")
    tally.check(f"{name} loads strictly", not refusal, refusal)
    counts = {int(n) for k, n in state.items() if k.endswith("num_batches_tracked")}
    tally.check(f"{name} counts batches", counts <= {2}, str(counts))
    again = run_tool("tcc", model, f"--weights={trained}", "-q", "-o", f"{folder}/i.tcc")
    tally.check(f"{name} back into the model", again.code == 0, first_line(again))
    options = ["--init", trained, "--steps", 1, "-q"]
    ran = run_tool("tcc-run", "train", package, "--data", f"npz:{data}", *options)
    tally.check(f"{name} trains on", ran.code == 0, first_line(ran))


def main():
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    tally = Tally()
    resnet, images = exports.build("resnet18")
    with tempfile.TemporaryDirectory() as folder:
        check_strict(tally, folder, "resnet18", resnet, *images(4), "cross_entropy", 1000)
        gpt, tokens = fixtures.make_model("gpt2_tiny"), torch.arange(24).reshape(2, 12)
        check_strict(tally, folder, "gpt2_tiny", gpt, tokens, "causal_lm", 0)
        check_deep(tally, folder)
        check_usual(tally, folder, "gpt2", "causal_lm")
        check_usual(tally, folder, "bert_base", "cross_entropy", 'logits = "pooler_output"')
        check_class_token(tally, folder)
    tally.close()


if __name__ == "__main__":
    main()
