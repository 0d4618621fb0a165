#!/usr/bin/env python3
"""Exports a PyTorch module as tcc can train it.

    export-training.py MODULE:FUNCTION OUT.onnx|OUT.pt2

FUNCTION of the Python module MODULE, found here or in PYTHONPATH, takes nothing and
returns the torch module and a tuple of example inputs, and as a third value, where
extents are to stay open, what torch.export takes as dynamic_shapes. The file keeps
every parameter under its own name, batch norms and dropouts. Only a pt2 file has
dropouts of whole channels and of alpha: ONNX has no operator for them, and they are
left out with a note.
"""

import importlib
import json
import os
import sys

import torch
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.dropout import Dropout, _DropoutNd


def set_modes(module, has_all_dropouts):
    """Dropouts as in training; batch norms as they are used afterwards, since tcc
    makes the training form itself."""
    module.train()
    for name, part in module.named_modules():
        if isinstance(part, _NormBase):
            part.eval()
        elif isinstance(part, _DropoutNd) and not (has_all_dropouts or type(part) is Dropout):
            print(f"note: {name}: {type(part).__name__} is left out", file=sys.stderr)
            part.eval()


def find_aliases(module, names):
    """Further names of tied tensors, those of `names` by the others."""
    state = module.state_dict(keep_vars=True)
    kept = {id(state[name]): name for name in names if name in state}
    return {
        alias: kept[id(tensor)]
        for alias, tensor in state.items()
        if alias not in names and id(tensor) in kept
    }


def export_training(module, inputs, path, dynamic_shapes=None):
    """Writes `module`, called with the tuple `inputs`, to a file .onnx or .pt2; the
    module is left in training mode."""
    is_pt2 = path.endswith(".pt2")
    set_modes(module, has_all_dropouts=is_pt2)
    if is_pt2:
        torch.export.save(
            torch.export.export(module, inputs, dynamic_shapes=dynamic_shapes), path
        )
    else:
        # The optimizer of the exporter folds batch norms, transposes weights under
        # other names and drops the dropout of attention.
        program = torch.onnx.export(
            module, inputs, dynamo=True, optimize=False, dynamic_shapes=dynamic_shapes
        )
        # The exporter keeps one of their names; a state_dict has them all.
        aliases = find_aliases(module, program.model.graph.initializers)
        program.model.metadata_props["tcc.aliases"] = json.dumps(aliases)
        program.save(path)


def main():
    if len(sys.argv) != 3 or ":" not in sys.argv[1] or not sys.argv[2].endswith((".onnx", ".pt2")):
        sys.exit(__doc__.split("\n\n")[1].strip())
    sys.path.insert(0, os.getcwd())
    module, function = sys.argv[1].split(":", 1)
    module, inputs, *shapes = getattr(importlib.import_module(module), function)()
    export_training(module, tuple(inputs), sys.argv[2], *shapes)


if __name__ == "__main__":
    main()
