"""Small modules that together call the operators of frontends/aten, by family."""

from typing import Dict, List, NamedTuple

import torch
import torch.nn.functional as F
from torch import nn


class Pointwise(nn.Module):
    def forward(self, x, y, n):
        z = x.abs() + 0.5
        return (
            x + 2 * y, x - y, 3.0 - x, x * y, x / z, x / 3, n // 3, x**2, z**0.5, z**y, 2.0**x,
            torch.div(x, z, rounding_mode="floor"), torch.div(x, 0.3, rounding_mode="trunc"),
            n % 5, torch.remainder(x, 0.7), torch.fmod(x, 0.7), x.exp(), z.log(), z.log2(),
            z.log1p(), z.sqrt(), z.rsqrt(), z.reciprocal(), x.sin(), x.cos(), x.tanh(), x.erf(),
            x.floor(), x.ceil(), x.round(), x.trunc(), x.sign(), -x, torch.maximum(x, y),
            torch.minimum(x, y), x.clamp(-0.5, 0.7), x.clamp(min=0), torch.where(x > y, x, 0.0),
            x.masked_fill(x < 0, -1.0), (x > 0) & (y < 0), (x >= y) | (x == 0), ~(x <= y),
            n.float() + True, n / 2, x.to(torch.int64), x.isnan(), torch.addcmul(x, y, z),
            torch.addcdiv(x, y, z, value=2), torch.expm1(x), n.bool(), x != y, torch.max(x, y),
            torch.min(x, y),
        )  # fmt: skip


class Activations(nn.Module):
    def forward(self, x):
        return (
            F.relu(x), F.relu6(4 * x), F.gelu(x), F.gelu(x, approximate="tanh"), F.silu(x),
            F.sigmoid(x), F.hardswish(4 * x), F.hardsigmoid(4 * x), F.hardtanh(x), F.elu(x, 0.7),
            F.leaky_relu(x, 0.2), F.softplus(x, 2.0, 1.5), F.mish(x), F.selu(x), F.logsigmoid(x),
            F.glu(x, 1), F.softmax(x, 1), F.log_softmax(x, 0), F.tanh(x),
        )  # fmt: skip


class Reductions(nn.Module):
    def forward(self, x, n):
        values, places = x.max(1)
        return (
            x.sum(), x.sum(1), x.sum((0, 2), keepdim=True), x.mean(), x.mean(-1, keepdim=True),
            x.amax(1), x.amin((1, 2)), x.max(), values, places, x.min(2)[0], x.argmax(),
            x.argmin(1, keepdim=True), (x > 0).any(), (x > -2).all(1), x.cumsum(1), n.cumsum(0),
            n.sum(), (n > 2).sum(1), x.prod(1), x.var(1), x.std(1, unbiased=False), x.norm(dim=1),
            torch.linalg.vector_norm(x, 1, dim=2), x.logsumexp(1), torch.diff(x, dim=1),
        )  # fmt: skip


class Products(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(6, 5)
        self.plain = nn.Linear(6, 4, bias=False)

    def forward(self, a, b, v):
        return (
            a @ b, a[0] @ b[0], a @ v, v @ v, torch.mm(a[0], b[0]), torch.bmm(a, b),
            torch.addmm(v[:3], a[0], b[0, :, :3], beta=0.5, alpha=2), torch.outer(v, v),
            torch.baddbmm(a[:, :, :3], a, b[:, :, :3]), self.linear(a), self.plain(v),
            torch.einsum("bij,bjk->bki", a, b), torch.einsum("bij,i->j", a, v[:4]),
            torch.einsum("...ij,...jk->...ik", a, b), torch.einsum("bij,bjk", a, b),
        )  # fmt: skip


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(6, 3, num_layers=2, bidirectional=True, batch_first=True)
        self.gru = nn.GRU(6, 4, bias=False)
        self.rnn = nn.RNN(4, 3, nonlinearity="relu")

    def forward(self, x):
        y, (h, c) = self.lstm(x)
        z, n = self.gru(x)
        w, m = self.rnn(z[:, 0])
        return y, h, c, z, n, w, m


class Shapes(nn.Module):
    def forward(self, x):
        first, second, third = x.split(2, 2)
        return (
            x.view(2, -1), x.reshape(-1), x.flatten(1), x.unflatten(2, (2, -1)), x.transpose(0, 2),
            x.permute(2, 0, 1), x[0].t(), x.unsqueeze(-1), x[:, :1].squeeze(1), x[:1].squeeze(),
            x[:, :1].expand(-1, 4, -1), x.repeat(2, 1, 2), x[1, :, 2], x[:, 1:, ::2], x[:, -2:-1],
            x.narrow(1, 1, 2), first, second + third, *x.chunk(2, 1), *x[0].unbind(0),
            torch.cat([x, x[:, :1]], 1), torch.stack([x, x + 1], 1), x.roll(1, 1), x.flip(1),
            F.pad(x, (1, 2, 0, 1), value=3.0), F.pad(x, (1, 1), mode="reflect"),
            x.movedim(0, 2), torch.tile(x, (2, 1)), x.repeat_interleave(2, 1),
            F.pixel_shuffle(x[None, 0, :, :].reshape(1, 4, 2, 3), 2),
        )  # fmt: skip


class Creation(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        return (
            torch.arange(n), torch.arange(1, 9, 3), torch.arange(0.0, 1.0, 0.25), torch.eye(3),
            torch.zeros(2, 3) + x[0, 0], torch.ones_like(x), torch.full((2,), 7), x.new_zeros(3),
            torch.full_like(x, 0.5), torch.linspace(0, 1, 5), x.tril(), x.triu(1), x.new_ones(2, 2),
            F.one_hot(torch.arange(3) + 1, 5), torch.scalar_tensor(2.5), x.clone(),
        )  # fmt: skip


class Indexing(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(7, 3)

    def forward(self, x, i):
        top, places = x.topk(2, 1)
        rows = torch.arange(2)[:, None]
        ordered, order = x.sort(1, descending=True)
        return (
            self.table(i), x.index_select(1, i[0]), x.gather(1, i), x[:, i[0]], x[rows, i],
            x.scatter(1, i, 9.0), x.scatter_add(1, i, x[:, :3]), top, places, ordered, order,
            torch.zeros(7, 3).index_put((i,), x[:, :3, None].expand(2, 3, 3)),
        )  # fmt: skip


class Lookup(nn.Module):
    """Inputs that index: scripts do not say that they are integers."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(7, 3)

    def forward(self, x, i, j):
        rows = self.table(i.view(-1)[1:])
        return rows, x[j], torch.gather(x, 0, i.t()) + x[0, 0], x.index_select(1, j)


class Windows(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(4, 6, 3, stride=2, padding=1)
        self.same = nn.Conv2d(4, 4, (3, 2), padding="same", groups=2, bias=False)
        self.deep = nn.Conv2d(4, 4, 3, dilation=2, groups=4)
        self.line = nn.Conv1d(4, 3, 3)
        self.up = nn.ConvTranspose2d(4, 3, 2, stride=2)
        self.spread = nn.ConvTranspose2d(4, 3, 3, stride=2, padding=1, output_padding=1)

    def forward(self, x):
        return (
            self.conv(x), self.same(x), self.deep(x), self.line(x[:, :, 0]), self.up(x),
            self.spread(x), F.max_pool2d(x, 3, 2, 1), F.max_pool2d(x, 2, ceil_mode=True),
            F.avg_pool2d(x, 3, 2, 1), F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
            F.avg_pool2d(x, 2, divisor_override=3), F.adaptive_avg_pool2d(x, 1),
            F.adaptive_avg_pool2d(x, (2, 4)), F.max_pool1d(x[:, 0], 2),
        )  # fmt: skip


class Volumes(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv3d(4, 3, (2, 3, 1), stride=(1, 2, 1), padding=1, bias=False)

    def forward(self, x):
        return (
            self.conv(x), F.max_pool3d(x, 2), F.avg_pool3d(x, (1, 3, 2), 1),
            F.adaptive_avg_pool3d(x, 1), F.adaptive_avg_pool3d(x, (2, 1, 3)),
        )  # fmt: skip


class Norms(nn.Module):
    def __init__(self):
        super().__init__()
        self.batch = nn.BatchNorm2d(4)
        self.group = nn.GroupNorm(2, 4)
        self.instance = nn.InstanceNorm2d(4, affine=True)
        self.layer = nn.LayerNorm((6, 8))
        self.rms = nn.RMSNorm(8)
        with torch.no_grad():
            self.batch.running_mean.uniform_(-1, 1)
            self.batch.running_var.uniform_(0.5, 2)

    def forward(self, x):
        return (
            self.batch(x), self.group(x), self.instance(x), self.layer(x), self.rms(x),
            F.layer_norm(x, (8,)),
        )  # fmt: skip


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, q, k, v, mask):
        attend = F.scaled_dot_product_attention
        x = q.transpose(1, 2).flatten(2)
        return (
            attend(q, k, v), attend(q, k, v, is_causal=True), attend(q, k, v, mask > 0),
            attend(q, k, v, mask, scale=0.3), attend(q, k[:, :1], v[:, :1], enable_gqa=True),
            self.heads(x, x, x, need_weights=False)[0],
        )  # fmt: skip


class InPlace(nn.Module):
    """Writes through views, and reads of what was written through others."""

    def forward(self, x):
        a = x.clone()
        view = a[:, 1:3]
        a.add_(1)
        view.mul_(2)
        a[0] = 7
        a.t()[1].sub_(3)
        b = x * 1
        flat = b.view(-1)
        flat[::2] = 0
        b[1].fill_(5)
        c = x.clone()
        d = c
        c = c.relu_()
        c[:, 0].copy_(x[:, 1])
        e = torch.zeros(3, 4)
        e[1:, 2] += x[0, 0]
        return a, view, b, flat, d, e, x


class Copies(nn.Module):
    """Writes to what PyTorch copies, and to what it does not."""

    def forward(self, x):
        a, b = x * 1, torch.zeros(3, 4)
        copy = a.to(torch.float32, copy=True)
        copy.add_(1)
        b.reshape(-1)[::2] = 5
        b.contiguous().view(4, 3)[1] = x[:, 0]
        c = a.t().reshape(-1)  # its strides decide: a is not read again
        c.mul_(2)
        d = x.relu().flatten(1).clamp_(max=1)
        return copy, b, c, d, x.reshape(3, 4).mul(2)


class Quotients(nn.Module):
    """Where rounding of a quotient, or of a number, would show."""

    def forward(self, x):
        y = torch.floor(x * 4) / 4
        return (
            torch.tensor([1.0, 2.0, 0.3, -1.0, -0.3]) // 0.1,
            torch.div(y, torch.tensor([0.1, -0.1, 3.0, -0.7]), rounding_mode="floor"),
            torch.linspace(0, 10, 5, dtype=torch.int64) + x[0, 0].long(),
            torch.linspace(7, -4, 6, dtype=torch.int32) + x[0, 0].int(),
            torch.full((2,), 2, dtype=torch.bool) & (x[0, :2] < 9),
            torch.flip(x, []), torch.flip(x, [0]),
        )  # fmt: skip


class Views(nn.Module):
    """Buffers that lie in one storage."""

    def __init__(self):
        super().__init__()
        whole = torch.arange(12.0).reshape(3, 4)
        for name, value in {"a": whole[0], "b": whole[1], "c": whole[0], "d": whole[:, 1:]}.items():
            self.register_buffer(name, value)

    def forward(self, x):
        return x + self.a, x + self.b, x + self.c, x[:, :3] * self.d


class Branches(nn.Module):
    def forward(self, x):
        def double(x):
            return x * 2, x.sum()

        def square(x):
            return x * x, x.mean()

        return torch.cond(x.sum() > 0, double, square, (x,))


class Pair(NamedTuple):
    first: torch.Tensor
    second: torch.Tensor


class Flow(nn.Module):
    """Branches and loops on data, lists, dictionaries, strings and tuples."""

    scales: List[float]

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.layers = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])
        self.scales = [0.5, 2.0]
        self.mode = "full"

    def helper(self, x: torch.Tensor, n: int = 2) -> Pair:
        return Pair(x * n, x - n)

    def forward(self, x: torch.Tensor):
        if bool(x.sum() > 0):
            y = self.linear(x)
            shift = 1.0
        else:
            y = x * 2
            shift = -1.0
        count = 0
        while bool(y.abs().sum() < 30.0):
            y = y * 1.5 + 0.1
            count = count + 1
        parts: List[torch.Tensor] = []
        for i in range(x.size(0)):
            parts.append(y[i] * self.scales[i % 2])
        for layer in self.layers:
            parts.append(layer(x[0]))
        named: Dict[str, torch.Tensor] = {"a": x}
        named["b"] = named["a"] + shift
        if self.mode == "full" and x.dim() == 2 and len(parts) > 1:
            named["b"] *= 3
        pair = self.helper(x, n=3)
        z = x.clone()
        if bool(x[0, 0] > 0):
            z[0] = 5.0
        else:
            z[1:, 0] += 2
        return y, torch.stack(parts), named["b"], pair.first + pair.second, z, y.sum() + count


class Counter(nn.Module):
    """Attributes that forward changes: a buffer, an empty tensor, numbers."""

    last: torch.Tensor

    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(3))
        self.last = torch.zeros(0)
        self.calls = 0

    def forward(self, x: torch.Tensor):
        if len(self.last) == 0:
            self.last = torch.zeros(3)
        y = x + self.last
        self.last = y * 0.5
        self.total.add_(x)
        if self.calls == 0:
            self.calls = 1
        return y, self.total * 2


class Digits(nn.Module):
    """A network with what whole models have: batch norm, dropout, a tied weight."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, stride=2, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.drop = nn.Dropout(0.5)
        self.first = nn.Linear(16, 16)
        self.tied = nn.Linear(16, 16)
        self.tied.weight = self.first.weight

    def forward(self, x):
        x = F.relu(self.norm(self.conv(x)), inplace=True)
        x = F.avg_pool2d(x, 2).flatten(1)
        return self.tied(self.drop(F.relu(self.first(x))))


class Draws(nn.Module):
    """Random numbers: 1 where mean, variance and shares are what they should be, whatever
    the seed."""

    def forward(self, x):
        uniform, normal = torch.rand_like(x), torch.randn_like(x)
        ones = torch.bernoulli(uniform * 0 + 0.25)
        rows = torch.rand(3, x.shape[0], 40)
        places = torch.multinomial(x[0, :4].abs() * 0 + torch.tensor([1.0, 2, 3, 4]), 4000, True)
        few = torch.randn(64, 64)
        found = torch.stack([
            uniform.mean(), uniform.var(), normal.mean(), normal.var(), (normal.abs() < 1).float().mean(),
            ones.mean(), (ones * (1 - ones)).sum(), rows.mean(), few.mean(), few.var(),
            (places == 0).float().mean(), (places == 3).float().mean(), (uniform < 0).float().sum(),
            (uniform >= 1).float().sum(),
        ])  # fmt: skip
        expected = torch.tensor([0.5, 1 / 12, 0, 1, 0.683, 0.25, 0, 0.5, 0, 1, 0.1, 0.4, 0, 0])
        return ((found - expected).abs() < 0.07).float()


def tensors(*shapes):
    return tuple(torch.rand(shape) * 2 - 1 for shape in shapes)


def integers(high, *shape):
    return torch.randint(0, high, shape)


# Name: module, inputs.
MODULES = {
    "pointwise": (Pointwise, lambda: (*tensors((3, 4), (3, 4)), integers(9, 3, 4) - 4)),
    "activations": (Activations, lambda: tensors((4, 6))),
    "reductions": (Reductions, lambda: (*tensors((2, 3, 4)), integers(5, 3, 2))),
    "products": (Products, lambda: tensors((2, 4, 6), (2, 6, 4), (6,))),
    "recurrent": (Recurrent, lambda: tensors((2, 5, 6))),
    "shapes": (Shapes, lambda: tensors((2, 4, 6))),
    "creation": (Creation, lambda: tensors((3, 4))),
    "indexing": (Indexing, lambda: (*tensors((2, 5)), integers(5, 2, 3))),
    "lookup": (
        Lookup,
        lambda: (*tensors((5, 3)), integers(5, 2, 3), integers(3, 4)),
    ),
    "windows": (Windows, lambda: tensors((2, 4, 6, 8))),
    "volumes": (Volumes, lambda: tensors((1, 4, 4, 3, 6))),
    "norms": (Norms, lambda: tensors((2, 4, 6, 8))),
    "attention": (
        Attention,
        lambda: tensors((2, 2, 5, 4), (2, 2, 5, 4), (2, 2, 5, 4), (2, 1, 5, 5)),
    ),
    "in_place": (InPlace, lambda: tensors((3, 4))),
    "copies": (Copies, lambda: tensors((3, 4))),
    "quotients": (Quotients, lambda: tensors((3, 4))),
    "views": (Views, lambda: tensors((3, 4))),
    "branches": (Branches, lambda: tensors((3, 4))),
    "digits": (Digits, lambda: tensors((3, 1, 8, 8))),
    "draws": (Draws, lambda: tensors((64, 64))),
}

# What TorchScript is made of: traced and, as far as code and types allow, scripted.
TRACED = tuple(name for name in MODULES if name != "branches")
SCRIPTED = (
    "attention", "creation", "digits", "draws", "in_place", "lookup", "norms", "products", "recurrent",
    "windows",
)  # fmt: skip
FLOW_RUNS, COUNTER_RUNS = 200, 30
