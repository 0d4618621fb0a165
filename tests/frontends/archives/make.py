"""Writes fixtures/: archives of the modules, and what PyTorch makes of them.

  make.py [NAME...|sequences]

Needs torch; the tests need only what it wrote. The archives are PyTorch's but for
traces of where they were made, which are cut, and the JSON, which is compressed.
"""

import inspect
import json
import os
import sys
import tempfile
import warnings
import zipfile

import numpy as np
import torch
from frontends.archives import modules

FIXTURES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fixtures")
# Not read, and parts of tests have none.
DROPPED = ("data/sample_inputs/", ".data/")


def strip(value):
    """Cuts paths of this machine from a program."""
    if isinstance(value, dict):
        value.pop("torch_fn", None)
        if "stack_trace" in value:
            *_, last = value["stack_trace"].split('File "')
            path, rest = last.split('"', 1)
            value["stack_trace"] = f'File "{os.path.basename(path)}"{rest}'
    if isinstance(value, (dict, list)):
        for inner in value.values() if isinstance(value, dict) else value:
            strip(inner)


def save_program(module, inputs, path, dynamic_shapes=None):
    """What torch.export.save writes, but for traces."""
    program = torch.export.export(module, inputs, dynamic_shapes=dynamic_shapes)
    with tempfile.TemporaryDirectory() as folder:
        torch.export.save(program, f"{folder}/m.pt2")
        with zipfile.ZipFile(f"{folder}/m.pt2") as whole, zipfile.ZipFile(path, "w") as archive:
            for name in whole.namelist():
                own = name.split("/", 1)[1]
                if own.startswith(DROPPED):
                    continue
                data, method = whole.read(name), zipfile.ZIP_STORED
                if own.startswith("models/"):
                    model = json.loads(data)
                    strip(model)
                    data = json.dumps(model, separators=(",", ":")).encode()
                    method = zipfile.ZIP_DEFLATED
                info = zipfile.ZipInfo(f"m/{own}")
                archive.writestr(info, data, method)


def save_script(script, path):
    """What torch.jit.save writes, but for what debuggers read."""
    with tempfile.TemporaryDirectory() as folder:
        torch.jit.save(script, f"{folder}/m.pt")
        with zipfile.ZipFile(f"{folder}/m.pt") as whole, zipfile.ZipFile(path, "w") as archive:
            for info in whole.infolist():
                own = info.filename.split("/", 1)[1]
                if own.endswith(".debug_pkl") or own.startswith(".data/serial"):
                    continue
                is_code = own.startswith("code/")
                method = zipfile.ZIP_DEFLATED if is_code else zipfile.ZIP_STORED
                archive.writestr(zipfile.ZipInfo(f"m/{own}"), whole.read(info), method)


def shape_flags(module, inputs):
    """The flags that give a scripted module its shapes."""
    names = inspect.signature(module.forward).parameters
    shapes = ("x".join(map(str, x.shape)) for x in inputs)
    return [f"--input-shape={name}={shape}" for name, shape in zip(names, shapes)]


def save_scripts(name, module, inputs):
    traced = torch.jit.trace(module, inputs, check_trace=False)
    save_script(traced, f"{FIXTURES}/{name}.traced.pt")
    if name in modules.SCRIPTED:
        save_script(torch.jit.script(module), f"{FIXTURES}/{name}.scripted.pt")
    if name == "digits":
        frozen = torch.jit.freeze(torch.jit.script(module))
        save_script(frozen, f"{FIXTURES}/{name}.frozen.pt")


def save_sequences():
    """Scripted modules called several times: of the first each call is one of its
    own, the other keeps what it computed."""
    torch.manual_seed(0)
    for name, module, count, shape in (
        ("flow", modules.Flow(), modules.FLOW_RUNS, (2, 4)),
        ("counter", modules.Counter(), modules.COUNTER_RUNS, (3,)),
    ):
        script = torch.jit.script(module.eval())
        save_script(script, f"{FIXTURES}/{name}.sequence.pt")
        # Large ones take no step of a loop, small ones many.
        scales = torch.linspace(0.1, 10, count).reshape(-1, *(1 for _ in shape))
        inputs = torch.randn(count, *shape) * scales
        with torch.no_grad():
            outputs = zip(*(script(x) for x in inputs))
        arrays = {f"outputs_{i}": np.stack([y.numpy() for y in ys]) for i, ys in enumerate(outputs)}
        flags = shape_flags(module, [inputs[0]])
        np.savez_compressed(f"{FIXTURES}/{name}.npz", inputs=inputs.numpy(), flags=flags, **arrays)


def save_data(module, inputs, path):
    with torch.no_grad():
        outputs = module(*(x.clone() for x in inputs))
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    arrays = {f"input_{i}": x.numpy() for i, x in enumerate(inputs)}
    arrays |= {f"output_{i}": y.numpy() for i, y in enumerate(outputs)}
    np.savez_compressed(path, flags=shape_flags(module, inputs), **arrays)


def main(names):
    warnings.filterwarnings("ignore")
    os.makedirs(FIXTURES, exist_ok=True)
    for name, (make_module, make_inputs) in modules.MODULES.items():
        if names and name not in names:
            continue
        torch.manual_seed(0)
        module, inputs = make_module().eval(), make_inputs()
        save_data(module, inputs, f"{FIXTURES}/{name}.npz")
        save_program(module, inputs, f"{FIXTURES}/{name}.pt2")
        if name in modules.TRACED:
            save_scripts(name, module, inputs)
    if not names or "sequences" in names:
        save_sequences()


if __name__ == "__main__":
    main(sys.argv[1:])
