"""Writes fixtures/evaluations.json: what PyTorch measures while it trains.

  make_evaluation_fixture.py

Needs torch and transformers; the test needs only what it wrote. Parameters, and their
running mean of torch.optim.swa_utils, are measured after every few updates, in f64.
"""

import copy
import json
import math

import numpy as np
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from training import evaluation
from training.make_parity_fixtures import make_model


def rates_of_classes(pairs):
    """Means over the classes that occur, of pairs[class, taken for]."""
    rates = {"precision": [], "recall": [], "f1": []}
    for i in range(len(pairs)):
        right, taken, own = pairs[i][i], pairs[:, i].sum(), pairs[i].sum()
        if taken == 0 and own == 0:
            continue
        precision = right / taken if taken else 0.0
        recall = right / own if own else 0.0
        rates["precision"].append(precision)
        rates["recall"].append(recall)
        both = precision + recall
        rates["f1"].append(2 * precision * recall / both if both else 0.0)
    return {name: float(np.mean(values)) for name, values in rates.items()}


def measure_classes(logits, target, k):
    """Of logits [place, class]."""
    loss = nn.functional.cross_entropy(logits, target).item()
    kept = target != -100
    logits, target = logits[kept], target[kept]
    best = logits.argmax(1)
    near = (logits.topk(k, dim=1).indices == target[:, None]).any(1)
    pairs = torch.zeros(logits.shape[1], logits.shape[1], dtype=torch.int64)
    for own, taken in zip(target.tolist(), best.tolist(), strict=True):
        pairs[own, taken] += 1
    return {
        "loss": loss,
        "accuracy": (best == target).double().mean().item(),
        f"top{k}": near.double().mean().item(),
        "perplexity": math.exp(loss),
        **rates_of_classes(pairs.numpy()),
        "confusion": pairs.tolist(),
    }


def measure_values(logits, target):
    difference = logits - target
    return {
        "loss": nn.functional.mse_loss(logits, target).item(),
        "mae": difference.abs().mean().item(),
        "mse": (difference**2).mean().item(),
        "rmse": (difference**2).mean().sqrt().item(),
    }


def measure_truths(logits, target):
    yes, taken = target > 0.5, torch.sigmoid(logits) > 0.5
    right, most = (yes & taken).sum().item(), max(taken.sum().item(), 1)
    return {
        "loss": nn.functional.binary_cross_entropy_with_logits(logits, target).item(),
        "accuracy": (yes == taken).double().mean().item(),
        "precision": right / most,
        "recall": right / yes.sum().item(),
        "f1": 2 * right / (taken.sum().item() + yes.sum().item()),
    }


def get_loss(case, logits, target):
    if case.kind == "mse":
        return nn.functional.mse_loss(logits, target)
    if case.kind == "bce":
        return nn.functional.binary_cross_entropy_with_logits(logits, target)
    if case.kind == "causal_lm":
        logits, target = logits[:, :-1].flatten(0, 1), target[:, 1:].flatten()
    return nn.functional.cross_entropy(logits, target)


@torch.no_grad()
def measure(case, module, x, target):
    logits = module(x)
    if case.kind == "mse":
        return measure_values(logits, target)
    if case.kind == "bce":
        return measure_truths(logits, target)
    if case.kind == "causal_lm":
        logits, target = logits[:, :-1].flatten(0, 1), target[:, 1:].flatten()
    return measure_classes(logits, target, case.k)


def to_tensors(arrays):
    x, target = (torch.tensor(arrays[name]) for name in ("x", "labels"))
    return (x.double() if x.is_floating_point() else x,
            target.double() if target.is_floating_point() else target)  # fmt: skip


def run(case):
    module = make_model(case.model).double()
    means = AveragedModel(copy.deepcopy(module),
                          multi_avg_fn=get_ema_multi_avg_fn(evaluation.EMA))  # fmt: skip
    x, target = to_tensors(evaluation.make_data(case)[0])
    measured = to_tensors(evaluation.make_data(case)[1])
    optimizer = torch.optim.SGD(module.parameters(), lr=case.lr, momentum=0.9)
    rows = {"parameters": {}, "ema": {}}
    for step in range(1, evaluation.STEPS + 1):
        first = (step - 1) * case.batch % (len(x) // case.batch * case.batch)
        part = slice(first, first + case.batch)
        optimizer.zero_grad()
        get_loss(case, module(x[part]), target[part]).backward()
        optimizer.step()
        means.update_parameters(module)
        if step % evaluation.EVERY == 0:
            for key, own in (("parameters", module), ("ema", means.module)):
                found = measure(case, own, *measured)
                rows[key][step] = {name: found[name] for name in ["loss", *case.metrics]}
    return rows


def main():
    torch.set_num_threads(1)
    rows = {name: run(case) for name, case in evaluation.CASES.items()}
    with open(evaluation.FIXTURE, "w", encoding="utf-8") as file:
        json.dump(rows, file)
        file.write("\n")


if __name__ == "__main__":
    main()
