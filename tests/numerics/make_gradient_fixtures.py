"""Writes fixtures/: needs torch, torchvision. make_gradient_fixtures.py [FAMILY...]"""

import sys

import torch
import torchvision.ops

from numerics import autograd
from numerics.loss_models import weigh


class Namespace:
    """torch.nn.functional and, of what it lacks, torch and torchvision.ops."""

    def __getattr__(self, name):
        modules = torch.nn.functional, torch, torchvision.ops
        return next(getattr(m, name) for m in modules if hasattr(m, name))


def differentiate(function, operands):
    """Of the sum of the results' elements times fixed numbers."""
    leaves = [torch.tensor(x, requires_grad=True) for x in operands]
    results = function(Namespace(), *leaves)
    results = results if isinstance(results, (tuple, list)) else [results]
    loss = torch.zeros((), dtype=torch.float64)
    for y in results:
        y = y.to(torch.float64)
        loss = loss + (y.reshape(-1) * torch.tensor(weigh(y.numel()))).sum()
    found = torch.autograd.grad(loss, leaves, allow_unused=True)
    return [torch.zeros_like(x) if g is None else g for x, g in zip(leaves, found)]


def main(titles):
    for title, cases in autograd.models():
        if titles and title not in titles:
            continue
        rows = [c.row for c in cases]
        gradients = [
            [g.numpy() for g in differentiate(c.function, operands)]
            for c, operands in zip(cases, autograd.find_operands(rows))
        ]
        autograd.save(title, rows, gradients)


if __name__ == "__main__":
    main(sys.argv[1:])
