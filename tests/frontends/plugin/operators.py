"""The operators of Formulas.c in PyTorch, and a module that calls them."""

import torch
from torch import nn


@torch.library.custom_op("mine::scaled_swish", mutates_args=())
def scaled_swish(x: torch.Tensor, scale: torch.Tensor, beta: float = 1.0) -> torch.Tensor:
    return x * torch.sigmoid(beta * x) * scale


@torch.library.custom_op("mine::halves", mutates_args=())
def halves(x: torch.Tensor, axis: int = -1) -> tuple[torch.Tensor, torch.Tensor]:
    first, second = torch.chunk(x, 2, axis)
    return first.clone(), second - first**2


scaled_swish.register_fake(lambda x, scale, beta=1.0: torch.empty_like(x))
halves.register_fake(lambda x, axis=-1: tuple(torch.empty_like(y) for y in x.chunk(2, axis)))


class Custom(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.linspace(0.5, 2, 6))

    def forward(self, x):
        y = torch.ops.mine.scaled_swish(x, self.scale, 0.5)
        first, second = torch.ops.mine.halves(y)
        top, rest = torch.ops.mine.halves(torch.relu(x), 0)
        return y, first + 1, second, top, rest
