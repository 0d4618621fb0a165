"""What a net of the zoo is, and how it is built, fed and scored alike everywhere."""

from typing import Callable, NamedTuple

import torch
from models.exports import SEED, calibrate_batch_norms, perturb
from torch import nn
from torch.nn.modules.dropout import _DropoutNd
from torchvision.ops import StochasticDepth


class Net(NamedTuple):
    """`inputs(batch, generator)` makes the tuple that the module takes; the first
    axis of each is the batch. The module returns one tensor in `loss`'s form: logits
    [batch, classes, ...] for cross_entropy, [batch, tokens, classes] for causal_lm,
    else what is compared with a target of its own shape."""

    make: Callable[[], nn.Module]
    inputs: Callable
    loss: str = "cross_entropy"
    batch: int = 8  # in training
    training_inputs: Callable | None = None  # smaller ones
    training_file: str = "model.onnx"  # or .pt2

    def feed(self, batch, is_training=False, seed=0):
        """The same in every process."""
        inputs = self.training_inputs if is_training and self.training_inputs else self.inputs
        return inputs(batch, torch.Generator().manual_seed(seed))


RATE, DECAY = 1e-4, 0.01  # of AdamW, PyTorch's own decay

LOSS_TABLES = {
    "cross_entropy": {"kind": "cross_entropy"},
    "causal_lm": {"kind": "causal_lm", "shift": False},
    "mse": {"kind": "mse"},
    "bce": {"kind": "bce"},
}


def images(pixels, channels=3):
    def make(batch, generator):
        return (torch.rand(batch, channels, pixels, pixels, generator=generator) * 2 - 1,)

    return make


def signals(channels, length):
    def make(batch, generator):
        return (torch.randn(batch, channels, length, generator=generator),)

    return make


def tokens(vocabulary, *lengths):
    """A row of ids an input."""

    def make(batch, generator):
        return tuple(
            torch.randint(0, vocabulary, (batch, length), generator=generator)
            for length in lengths
        )

    return make


def drop_nothing(module):
    """Losses are compared: nothing is drawn."""
    for part in module.modules():
        if isinstance(part, (_DropoutNd, StochasticDepth)):
            part.p = 0.0


def build(net, is_training):
    """The module with the same weights in every process: fresh ones in training, for
    inference such that no bias, scale or statistic is 0 or 1."""
    torch.manual_seed(0)
    module = net.make()
    drop_nothing(module)
    if is_training:
        return module.train()
    with torch.no_grad():
        perturb(module.eval(), torch.Generator().manual_seed(SEED))
        calibrate_batch_norms(module, net.feed(8))
    return module.eval().requires_grad_(False)


def make_target(net, output, generator):
    """Random, for an output of the module."""
    if net.loss == "cross_entropy":
        places = output.shape[:1] + output.shape[2:]
        return torch.randint(0, output.shape[1], places, generator=generator)
    if net.loss == "causal_lm":
        return torch.randint(0, output.shape[-1], output.shape[:-1], generator=generator)
    if net.loss == "bce":
        return torch.randint(0, 2, output.shape, generator=generator).float()
    return torch.randn(output.shape, generator=generator)


def loss_of(kind, output, target):
    if kind == "cross_entropy":
        return nn.functional.cross_entropy(output, target)
    if kind == "causal_lm":
        return nn.functional.cross_entropy(output.flatten(0, -2), target.flatten())
    if kind == "bce":
        return nn.functional.binary_cross_entropy_with_logits(output, target)
    return nn.functional.mse_loss(output, target)
