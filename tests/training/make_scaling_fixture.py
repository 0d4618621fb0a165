"""Writes fixtures/scaling.json: what torch.amp.GradScaler makes of scaling.py's runs.

Needs torch; the test needs only what it wrote.
"""

import json

import torch
from torch.optim import lr_scheduler
from training import scaling

KINDS = {"sgd": torch.optim.SGD, "adamw": torch.optim.AdamW}
SLOTS = {"momentum": "momentum_buffer", "adamw": "exp_avg"}
PREFIX = 12  # rates are kept of all of these; then they are linear but for skips


def train(case):
    weight = torch.nn.Parameter(torch.tensor(scaling.make_weights()))
    options = dict(scaling.OPTIMIZERS[case.optimizer])
    optimizer = KINDS[options.pop("kind")]([weight], **options)
    scheduler = lr_scheduler.LinearLR(optimizer, 1.0, scaling.END, scaling.UPDATES)
    scaler = torch.amp.GradScaler("cpu")
    data = {key: torch.tensor(value) for key, value in scaling.make_data(case.accumulate).items()}
    batches = zip(*(data[key].split(scaling.MICRO) for key in ("x", "labels")))
    skipped, scales, rates = [], [], []
    for update in range(scaling.UPDATES):
        optimizer.zero_grad()
        scale, rate = scaler.get_scale(), scheduler.get_last_lr()[0]
        for _ in range(case.accumulate):
            x, labels = next(batches)
            loss = torch.nn.functional.cross_entropy(x[:, :-1] @ weight * x[:, -1:], labels)
            scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        weight.grad /= case.accumulate
        torch.nn.utils.clip_grad_norm_([weight], scaling.CLIP)
        scaler.step(optimizer)
        scaler.update()
        is_skipped = scaler.get_scale() < scale
        if not scales or scales[-1][1] != scale:
            scales.append((update, scale))
        if is_skipped:
            skipped.append(update)
        if update < PREFIX or update in (2009, 2010, 2011, scaling.UPDATES - 1):
            rates.append((update, rate))
        if case.on_skip == "advance" or not is_skipped:
            scheduler.step()
    slot = SLOTS[case.optimizer]
    tensors = {"weight": weight.detach(), f"{slot}/weight": optimizer.state[weight][slot]}
    tensors = {name: value.flatten().tolist() for name, value in tensors.items()}
    return {"skipped": skipped, "scales": scales, "rates": rates,
            "growth": scaler._growth_tracker.item(), "tensors": tensors}  # fmt: skip


def main():
    torch.set_num_threads(1)
    with open(scaling.FIXTURE, "w") as stream:
        kept = {scaling.name_of(case): train(case) for case in scaling.CASES}
        json.dump(kept, stream, indent=1)
        stream.write("\n")


if __name__ == "__main__":
    main()
