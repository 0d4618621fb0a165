"""Writes schedules.json, updates.json, more-updates.json and losses.json: what PyTorch
makes of recipes, in f64.

  make_fixtures.py        needs torch; the tests need only what it wrote
"""

import json
import os
import warnings

import torch
from torch.optim import lr_scheduler

FOLDER = os.path.dirname(os.path.abspath(__file__))
LOSS = "loss.kind = 'mse'\n"
LR = 0.01

# --- Schedules ----------------------------------------------------------------

TOTAL = 24
SCHEDULES = {
    "constant": {},
    "cosine": {"total_steps": TOTAL, "eta_min": 0.001},
    "linear": {"total_steps": TOTAL, "eta_min": 0.002},
    "step": {"step_size": 5, "gamma": 0.3},
    "one_cycle": {"total_steps": TOTAL, "max_lr": 0.1},
}


def to_toml(value):
    return json.dumps(value)


def schedule_toml(kind, keys):
    lines = [f"schedule.kind = '{kind}'"]
    lines += [f"schedule.{key} = {to_toml(value)}" for key, value in keys.items()]
    return "\n".join(lines) + "\n"


def main_scheduler(optimizer, kind, keys, total):
    if kind == "cosine":
        return lr_scheduler.CosineAnnealingLR(optimizer, total, keys["eta_min"])
    if kind == "linear":
        end = keys["eta_min"] / optimizer.defaults["lr"]
        return lr_scheduler.LinearLR(optimizer, 1.0, end, total)
    if kind == "step":
        return lr_scheduler.StepLR(optimizer, keys["step_size"], keys["gamma"])
    if kind == "one_cycle":
        keys = dict(keys)
        strategy = keys.pop("anneal", "cos")
        return lr_scheduler.OneCycleLR(optimizer, anneal_strategy=strategy, **keys)
    return lr_scheduler.ConstantLR(optimizer, factor=1.0, total_iters=1)


def make_scheduler(optimizer, kind, keys):
    """Warm-up rises from lr / steps to lr, then the other scheduler begins."""
    keys = dict(keys)
    warmup = keys.pop("warmup_steps", 0)
    total = keys.get("total_steps", 0) - warmup
    if not warmup:
        return main_scheduler(optimizer, kind, keys, total)
    rise = lr_scheduler.LinearLR(optimizer, 1 / warmup, 1.0, warmup - 1)
    main = main_scheduler(optimizer, kind, keys, total)
    return lr_scheduler.SequentialLR(optimizer, [rise, main], [warmup])


def schedule_cases():
    yield from SCHEDULES.items()
    cycle = SCHEDULES["one_cycle"]
    yield "one_cycle", {**cycle, "anneal": "linear", "pct_start": 0.4}
    yield "one_cycle", {**cycle, "three_phase": True, "div_factor": 10.0}
    yield (
        "one_cycle",
        {**cycle, "three_phase": True, "anneal": "linear", "base_momentum": 0.5},
    )
    yield "one_cycle", {**cycle, "pct_start": 0.02, "final_div_factor": 7.0}
    for kind in ("constant", "cosine", "linear", "step"):
        yield kind, {**SCHEDULES[kind], "warmup_steps": 4}


def trace_schedule(kind, keys):
    weight = torch.nn.Parameter(torch.zeros(1, dtype=torch.float64))
    optimizer = torch.optim.SGD([weight], lr=LR, momentum=0.9)
    scheduler = make_scheduler(optimizer, kind, keys)
    rates, momenta = [], []
    for i in range(TOTAL):
        group = optimizer.param_groups[0]
        rates.append(group["lr"])
        momenta.append(group["momentum"])
        optimizer.step()
        if i + 1 < TOTAL:
            scheduler.step()
    return rates, momenta


def write_schedules():
    cases = []
    for kind, keys in schedule_cases():
        lr, momentum = trace_schedule(kind, keys)
        head = f"optimizer.kind = 'sgd'\noptimizer.lr = {LR}\noptimizer.momentum = 0.9\n"
        recipe = LOSS + head + schedule_toml(kind, keys)
        cases.append({"recipe": recipe, "lr": lr, "momentum": momentum})
    write("schedules.json", cases)


# --- Updates ------------------------------------------------------------------


class Lion(torch.optim.Optimizer):
    """The authors' update, which PyTorch does not have."""

    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            first, second = group["betas"]
            for p in group["params"]:
                mean = self.state[p].setdefault("exp_avg", torch.zeros_like(p))
                direction = (first * mean + (1 - first) * p.grad).sign()
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.sub_(group["lr"] * direction)
                mean.mul_(second).add_((1 - second) * p.grad)


KINDS = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}
KINDS |= {"adamw": torch.optim.AdamW, "lion": Lion, "rmsprop": torch.optim.RMSprop}
OPTIMIZERS = [
    ("sgd", {}),
    ("sgd", {"momentum": 0.9, "weight_decay": 0.1}),
    ("sgd", {"momentum": 0.8, "nesterov": True}),
    ("adam", {"weight_decay": 0.1, "betas": [0.8, 0.95]}),
    ("adamw", {"eps": 1e-3}),
    ("lion", {"weight_decay": 0.2}),
]
# In a file of their own, as files have a largest size.
MORE_OPTIMIZERS = [
    ("rmsprop", {"eps": 1e-3}),
    ("rmsprop", {"alpha": 0.8, "weight_decay": 0.1, "momentum": 0.7}),
    ("rmsprop", {"alpha": 0.9, "centered": True}),
    ("rmsprop", {"centered": True, "momentum": 0.9}),
]
CLIPS = [{}, {"clip_norm": 1.5}, {"clip_value": 0.4}]
CLIPS += [{"clip_norm": 2.0, "clip_value": 0.5}]
UPDATES = 5
SHAPES = {"fc.weight": [2, 3], "fc.bias": [3]}


def make_tensors(seed, scale):
    generator = torch.Generator().manual_seed(seed)
    return {
        name: scale * torch.randn(shape, generator=generator, dtype=torch.float64)
        for name, shape in SHAPES.items()
    }


def run_updates(kind, options, schedule, clip, groups=None, decay=None):
    """The parameters, and their mean if `decay`, after all updates."""
    params = {k: torch.nn.Parameter(v) for k, v in make_tensors(0, 1.0).items()}
    listed = groups(params) if groups else list(params.values())
    optimizer = KINDS[kind](listed, lr=LR, **options)
    scheduler = make_scheduler(optimizer, *schedule)
    mean, norms = None, []
    for i in range(UPDATES):
        for name, gradient in make_tensors(i + 1, 1.0).items():
            params[name].grad = gradient.clone()
        limit = clip.get("clip_norm", float("inf"))
        norms.append(torch.nn.utils.clip_grad_norm_(params.values(), limit).item())
        if "clip_value" in clip:
            torch.nn.utils.clip_grad_value_(params.values(), clip["clip_value"])
        optimizer.step()
        scheduler.step()
        values = torch.cat([p.detach().reshape(-1) for p in params.values()])
        mean = values if mean is None else torch.lerp(mean, values, 1 - (decay or 0))
    return {"norms": norms, "values": values.tolist(), "ema": mean.tolist()}


def update_toml(kind, options, schedule, clip, extra=""):
    lines = [f"optimizer.kind = '{kind}'", f"optimizer.lr = {LR}"]
    lines += [f"optimizer.{k} = {to_toml(v)}" for k, v in options.items()]
    lines += [f"batch.{k} = {v}" for k, v in clip.items()]
    return LOSS + "\n".join(lines) + "\n" + schedule_toml(*schedule) + extra


def write_updates(name, optimizers, more=()):
    matrix = [
        (kind, options, schedule, clip)
        for kind, options in optimizers
        for schedule in SCHEDULES.items()
        for clip in CLIPS
    ]
    cases = [
        {"recipe": update_toml(*case), **run_updates(*case)} for case in matrix
    ]
    cases += more
    for case in cases:
        if "params.ema" not in case["recipe"]:
            del case["ema"]
    steps = [make_tensors(i, 1.0) for i in range(UPDATES + 1)]
    tensors = [[t.reshape(-1).tolist() for t in step.values()] for step in steps]
    write(
        name,
        {"parameters": tensors[0], "gradients": tensors[1:], "cases": cases},
    )


def special_cases():
    base = ("adamw", {"weight_decay": 0.1}, ("step", SCHEDULES["step"]), {})

    def no_bias_decay(params):
        bias = {"params": [params["fc.bias"]], "weight_decay": 0.0}
        return [{"params": [params["fc.weight"]]}, bias]

    def scaled(params):
        bias = {"params": [params["fc.bias"]], "betas": (0.5, 0.6)}
        weight = {"params": [params["fc.weight"]], "lr": 3 * LR, "weight_decay": 0.3}
        return [weight, bias]

    groups = "optimizer.group = [{match='*.weight', lr_scale=3, weight_decay=0.3},"
    groups += " {match=['fc.*'], betas=[0.5, 0.6]}]\n"
    for extra, make, decay in (
        ("optimizer.no_decay = ['ndim<=1']\n", no_bias_decay, None),
        (groups, scaled, None),
        ("params.ema = 0.7\n", None, 0.7),
    ):
        recipe = update_toml(*base, extra=extra)
        yield {"recipe": recipe, **run_updates(*base, groups=make, decay=decay)}


# --- Losses -------------------------------------------------------------------


def write_losses():
    """The sum of the losses and its gradient."""
    values = torch.nn.functional
    generator = torch.Generator().manual_seed(7)

    def make(*shape):
        return 2 * torch.randn(shape, generator=generator, dtype=torch.float64)

    def of_values(kind, function, **options):
        return kind, options, make(4, 3), make(4, 3), function

    def of_classes(**options):
        labels = torch.tensor([0, 2, -100, 1])
        return "cross_entropy", options, make(4, 3), labels, values.cross_entropy

    def of_shares(*shape, **options):
        shares = make(*shape).softmax(1)
        return "soft_cross_entropy", options, make(*shape), shares, values.cross_entropy

    cases = []
    for kind, options, logits, target, function in (
        of_values("mse", values.mse_loss),
        of_values("bce", values.binary_cross_entropy_with_logits),
        of_values("huber", values.huber_loss),
        of_values("huber", values.huber_loss, delta=0.5),
        of_values("huber", values.huber_loss, delta=3.0),
        of_shares(4, 3),
        of_shares(2, 3, 5, label_smoothing=0.125),
        of_classes(),
        of_classes(label_smoothing=0.25),
    ):
        logits.requires_grad = True
        loss = function(logits, target, reduction="sum", **options)
        loss.backward()
        lines = [f"kind = '{kind}'"] + [f"{k} = {v}" for k, v in options.items()]
        head = "optimizer.kind = 'sgd'\nprecision.compute = 'f64'\n[loss]\n"
        cases.append({
            "recipe": head + "\n".join(lines), "loss": loss.item(),
            "logits": logits.reshape(-1).tolist(), "shape": list(logits.shape),
            "target": target.reshape(-1).tolist(),
            "gradient": logits.grad.reshape(-1).tolist(),
        })  # fmt: skip
    write("losses.json", cases)


def write(name, content):
    with open(os.path.join(FOLDER, name), "w", encoding="utf-8") as stream:
        json.dump(content, stream, separators=(",", ":"))
        stream.write("\n")


if __name__ == "__main__":
    # What SequentialLR says about its own calls.
    warnings.filterwarnings("ignore", category=UserWarning)
    write_schedules()
    write_updates("updates.json", OPTIMIZERS, special_cases())
    write_updates("more-updates.json", MORE_OPTIMIZERS)
    write_losses()
