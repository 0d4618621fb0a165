"""Small nets of kinds that neither torchvision nor transformers has."""

import torch
from bench.nets.net import Net, images, signals, tokens
from torch import nn


def double(inner, outer):
    """Two convolutions with group norm."""
    parts = []
    for channels in (inner, outer):
        parts += [nn.Conv2d(channels, outer, 3, padding=1), nn.GroupNorm(8, outer), nn.SiLU()]
    return nn.Sequential(*parts)


class UNet(nn.Module):
    def __init__(self, widths=(32, 64, 128)):
        super().__init__()
        inner = (3, *widths[:-1])
        self.down = nn.ModuleList(map(double, inner, widths))
        pairs = list(zip(widths[:0:-1], widths[-2::-1], strict=True))
        self.ups = nn.ModuleList(nn.ConvTranspose2d(a, b, 2, stride=2) for a, b in pairs)
        self.merge = nn.ModuleList(double(2 * b, b) for _, b in pairs)
        self.head = nn.Conv2d(widths[0], 4, 1)

    def forward(self, x):
        kept = []
        for i, block in enumerate(self.down):
            x = block(nn.functional.max_pool2d(x, 2) if i else x)
            kept.append(x)
        for up, merge, other in zip(self.ups, self.merge, kept[-2::-1], strict=True):
            x = merge(torch.cat([up(x), other], 1))
        return self.head(x)


class WaveNet(nn.Module):
    """Gated dilated causal convolutions with skips."""

    def __init__(self, width=32, depth=8, classes=256):
        super().__init__()
        self.first = nn.Conv1d(1, width, 1)
        dilations = [2**i for i in range(depth)] * 2
        self.gates = nn.ModuleList(nn.Conv1d(width, 2 * width, 2, dilation=d) for d in dilations)
        self.outs = nn.ModuleList(nn.Conv1d(width, 2 * width, 1) for _ in dilations)
        self.head = nn.Sequential(
            nn.ReLU(), nn.Conv1d(width, width, 1), nn.ReLU(), nn.Conv1d(width, classes, 1)
        )

    def forward(self, x):
        x, total = self.first(x), 0
        for gate, out in zip(self.gates, self.outs, strict=True):
            padded = nn.functional.pad(x, (gate.dilation[0], 0))
            a, b = gate(padded).chunk(2, 1)
            rest, skip = out(torch.tanh(a) * torch.sigmoid(b)).chunk(2, 1)
            x, total = x + rest, total + skip
        return self.head(total)


class Temporal(nn.Module):
    """A temporal convolutional net: residual blocks whose windows grow."""

    def __init__(self, channels=16, width=64, depth=6, classes=10):
        super().__init__()
        self.first = nn.Conv1d(channels, width, 1)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.Conv1d(width, width, 3, padding=2**i, dilation=2**i), nn.ReLU(),
                nn.Conv1d(width, width, 3, padding=2**i, dilation=2**i), nn.ReLU(),
            )
            for i in range(depth)
        )  # fmt: skip
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = torch.relu(x + block(x))
        return self.head(x.mean(2))


class Separable(nn.Module):
    """A speech net of depthwise-separable convolutions over time."""

    def __init__(self, mels=64, width=128, depth=5, classes=30):
        super().__init__()
        self.first = nn.Conv1d(mels, width, 11, stride=2, padding=5)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.Conv1d(width, width, k, padding=k // 2, groups=width, bias=False),
                nn.Conv1d(width, width, 1, bias=False), nn.BatchNorm1d(width), nn.ReLU(),
            )
            for k in range(13, 13 + 4 * depth, 4)
        )  # fmt: skip
        self.head = nn.Conv1d(width, classes, 1)

    def forward(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = x + block(x)
        return self.head(x)


class Recurrent(nn.Module):
    """Two layers of LSTM over embedded tokens, then a class."""

    def __init__(self, vocabulary=1000, width=128, classes=10):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.cells = nn.LSTM(width, width, num_layers=2, batch_first=True)
        self.head = nn.Linear(width, classes)

    def forward(self, ids):
        states, _ = self.cells(self.embed(ids))
        return self.head(states.mean(1))


class Translator(nn.Module):
    """A bidirectional GRU encodes; a GRU that attends decodes."""

    def __init__(self, vocabulary=1000, width=128):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.encode = nn.GRU(width, width // 2, bidirectional=True, batch_first=True)
        self.decode = nn.GRU(width, width, batch_first=True)
        self.merge = nn.Linear(2 * width, width)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, source, target):
        memory, _ = self.encode(self.embed(source))
        states, _ = self.decode(self.embed(target), memory.mean(1)[None])
        weights = torch.softmax(states @ memory.transpose(1, 2) * 0.1, -1)
        merged = torch.tanh(self.merge(torch.cat([weights @ memory, states], -1)))
        return self.head(merged)


class Generator(nn.Module):
    """Of a GAN: a vector becomes a picture of 64 x 64."""

    def __init__(self, latent=100, width=32):
        super().__init__()
        parts, inner = [], latent
        for outer, stride in ((8 * width, 1), (4 * width, 2), (2 * width, 2), (width, 2)):
            parts.append(nn.ConvTranspose2d(inner, outer, 4, stride, stride - 1, bias=False))
            parts += [nn.BatchNorm2d(outer), nn.ReLU()]
            inner = outer
        self.body = nn.Sequential(*parts, nn.ConvTranspose2d(inner, 3, 4, 2, 1), nn.Tanh())

    def forward(self, x):
        return self.body(x[:, :, None, None])


class Discriminator(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        parts, inner = [], 3
        for outer in (width, 2 * width, 4 * width, 8 * width):
            parts.append(nn.Conv2d(inner, outer, 4, 2, 1, bias=inner == 3))
            parts += [nn.BatchNorm2d(outer)] * (inner != 3) + [nn.LeakyReLU(0.2)]
            inner = outer
        self.body = nn.Sequential(*parts, nn.Conv2d(inner, 1, 4))

    def forward(self, x):
        return self.body(x).flatten(1)


class Autoencoder(nn.Module):
    """Strided convolutions down; pixel shuffle and resize up."""

    def __init__(self, width=32):
        super().__init__()
        self.down = nn.Sequential(
            nn.Conv2d(3, width, 3, 2, 1), nn.GELU(), nn.Conv2d(width, 2 * width, 3, 2, 1), nn.GELU()
        )
        self.up = nn.Sequential(
            nn.Conv2d(2 * width, 4 * width, 3, padding=1), nn.PixelShuffle(2), nn.GELU(),
            nn.Upsample(scale_factor=2, mode="bilinear"), nn.Conv2d(width, 3, 5, padding=2),
        )  # fmt: skip

    def forward(self, x):
        return self.up(self.down(x))


class GraphNet(nn.Module):
    """Messages along edges are gathered, transformed and summed at their targets; each
    graph of the batch has its own nodes and edges."""

    def __init__(self, features=32, width=64, layers=3, classes=7):
        super().__init__()
        self.first = nn.Linear(features, width)
        self.messages = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.updates = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(layers))
        self.head = nn.Linear(width, classes)

    def forward(self, nodes, sources, targets):
        x = torch.relu(self.first(nodes))
        for message, update in zip(self.messages, self.updates, strict=True):
            wide = sources[..., None].expand(-1, -1, x.shape[-1])
            sent = torch.relu(message(torch.gather(x, 1, wide)))
            index = targets[..., None].expand(-1, -1, x.shape[-1])
            summed = torch.zeros_like(x).scatter_add(1, index, sent)
            x = x + torch.relu(update(torch.cat([x, summed], -1)))
        return self.head(x).transpose(1, 2)


NODES, EDGES = 200, 800


def graphs(batch, generator):
    ends = [torch.randint(0, NODES, (batch, EDGES), generator=generator) for _ in range(2)]
    return (torch.randn(batch, NODES, 32, generator=generator), *ends)


class Recommender(nn.Module):
    """Embeddings of categories and an MLP of numbers, all pairs multiplied."""

    def __init__(self, tables=8, rows=10000, width=32):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(rows, width) for _ in range(tables))
        self.bottom = nn.Sequential(nn.Linear(13, 64), nn.ReLU(), nn.Linear(64, width), nn.ReLU())
        pairs = (tables + 1) * tables // 2
        self.top = nn.Sequential(nn.Linear(pairs + width, 128), nn.ReLU(), nn.Linear(128, 1))
        self.register_buffer("pairs", torch.tril_indices(tables + 1, tables + 1, -1))

    def forward(self, numbers, categories):
        dense = self.bottom(numbers)
        rows = [table(categories[:, i]) for i, table in enumerate(self.tables)]
        stacked = torch.stack([dense, *rows], 1)
        products = stacked @ stacked.transpose(1, 2)
        chosen = products[:, self.pairs[0], self.pairs[1]]
        return self.top(torch.cat([dense, chosen], 1))


def clicks(batch, generator):
    ids = torch.randint(0, 10000, (batch, 8), generator=generator)
    return (torch.randn(batch, 13, generator=generator), ids)


class WideWindows(nn.Module):
    """Few channels under large windows, as spectrograms have."""

    def __init__(self, classes=20):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 8, 21, padding=10), nn.ReLU(), nn.Conv2d(8, 8, (1, 31), padding=(0, 15)),
            nn.ReLU(), nn.Conv2d(8, 16, (15, 3), stride=2, padding=(7, 1)), nn.ReLU(),
        )  # fmt: skip
        self.head = nn.Linear(16, classes)

    def forward(self, x):
        return self.head(self.body(x).mean((2, 3)))


def vectors(batch, generator):
    return (torch.randn(batch, 100, generator=generator),)


NETS = {
    "unet": Net(UNet, images(96)),
    "wavenet": Net(WaveNet, signals(1, 2048)),
    "tcn": Net(Temporal, signals(16, 512), batch=16),
    "separable_speech": Net(Separable, signals(64, 400)),
    "lstm": Net(Recurrent, tokens(1000, 64), batch=16),
    "gru_seq2seq": Net(Translator, tokens(1000, 32, 32), "causal_lm", batch=16),
    "gan_generator": Net(Generator, vectors, "mse", batch=16),
    "gan_discriminator": Net(Discriminator, images(64), "bce", batch=16),
    "autoencoder": Net(Autoencoder, images(96), "mse"),
    "graph": Net(GraphNet, graphs),
    "recommender": Net(Recommender, clicks, "bce", batch=128),
    "wide_windows": Net(WideWindows, images(96, channels=1)),
}
