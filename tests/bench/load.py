"""Loaders of training data, without training: load.py [--models SUBJECTS] [--peers ENGINES]
       [--threads N] [--rounds N] [--seconds S] [--pictures N] [--json FILE] [--table FILE]

crop: JPEGs of 500 x 375 (pieces of two photos, quality 90, 4:2:0) in tar shards, of which each
batch takes 32, a random piece of 224 x 224 of each, flipped or not. resized: the same with a
random part of the area. scaled: a random part of it for 64 x 64 pixels, decoded scaled. cached: crop, of images that are in memory from the second epoch on, which
others decode again. tokens: windows of 1025 tokens of 16 bits, widened. Beside PyTorch's
DataLoader with torchvision's transforms, on tensors and on images of Pillow, and DALI on the CPU;
libjpeg's time for decoding as many whole files and nothing more; a copy of as many bytes.

With one thread times are those of the processes, with more those of the clock, and tcc's on one
thread stands beside.
"""

import importlib
import os
import sys
import tarfile
import tempfile

import numpy as np

from bench import load_worker, reports
from bench.subjects import matching, measure_all
from bench.turns import Worker, take_turns
from harness import ROOT

TITLES = {
    "tcc": "tcc",
    "libjpeg": "libjpeg",
    "memcpy": "copy",
    "torchvision": "torchvision",
    "pillow": "on Pillow",
    "dali": "DALI",
}
PACKAGES = {"libjpeg": "numpy", "memcpy": "numpy", "pillow": "torchvision", "dali": "nvidia.dali"}
SUBJECTS = {
    "crop": {"libjpeg", "torchvision", "pillow", "dali"},
    "cached": {"libjpeg", "torchvision", "pillow", "dali"},
    "scaled": {"libjpeg", "torchvision", "pillow", "dali"},
    "resized": {"libjpeg", "torchvision", "pillow", "dali"},
    "tokens": {"memcpy"},
}
ONE_THREAD = {"libjpeg", "memcpy"}
WIDTH, HEIGHT, SHARDS = 500, 375, 4


def read_photos():
    sys.path.insert(0, os.path.join(ROOT, "examples/train-images"))
    return list(importlib.import_module("prepare").read_photos())


def write_pictures(folder, count):
    """As files and in shards."""
    random, photos = np.random.default_rng(0), read_photos()
    files = os.path.join(folder, "jpg")
    os.mkdir(files)
    for number in range(SHARDS):
        path = os.path.join(folder, f"shard-{number}.tar")
        with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as shard:
            for i in range(number, count, SHARDS):
                photo = photos[i % len(photos)]
                left = int(random.integers(photo.width - WIDTH + 1))
                top = int(random.integers(photo.height - HEIGHT + 1))
                picture = photo.crop((left, top, left + WIDTH, top + HEIGHT))
                image, label = os.path.join(files, f"{i}.jpg"), os.path.join(folder, "label")
                picture.save(image, "JPEG", quality=90)
                with open(label, "w") as stream:
                    stream.write(str(i % 10))
                shard.add(image, f"{i:06}.jpg")
                shard.add(label, f"{i:06}.cls")


def write_tokens(folder):
    random = np.random.default_rng(0)
    tokens = random.integers(0, 50257, 50_000_000, dtype="u2")
    tokens.tofile(os.path.join(folder, "tokens.bin"))


def measure(subject, folder, options):
    """A JSON row."""
    peers = [p for p in options.peers if p in SUBJECTS[subject]]
    if options.threads > 1:
        peers = [peer for peer in peers if peer not in ONE_THREAD]

    def start(engine, threads):
        return Worker("load_worker.py", engine, subject, folder, threads)

    workers = {engine: start(engine, options.threads) for engine in ("tcc", *peers)}
    if options.threads > 1:
        workers["tcc_alone"] = start("tcc", 1)
    return take_turns({"model": subject}, workers, options)


def rate(subject, milliseconds):
    """Thousands of images, or millions of tokens, a second."""
    if subject == "tokens":
        tokens = load_worker.WINDOWS * load_worker.LENGTH * load_worker.BATCHES
        return tokens / milliseconds * 1e-3
    return load_worker.BATCH * load_worker.BATCHES / milliseconds


def show(row):
    engines = [engine for engine in (*TITLES, "tcc_alone") if engine in row]
    rates = (f"{engine} {rate(row['model'], row[engine]):.2f}" for engine in engines)
    ratios = (f"{engine} {row[engine + '_ratio']:.2f}" for engine in engines if engine != "tcc")
    mark = " (disturbed)" if row["disturbed"] else ""
    return f"{row['model']}{mark}: {', '.join(rates)}; / tcc: {', '.join(ratios)}"


def table(rows, peers):
    header = ["data", "threads", "tcc"]
    for peer in peers:
        header += [TITLES[peer], "/ tcc"]
    lines = []
    for row in rows:
        fields = [row["model"], str(row["threads"]), f"{rate(row['model'], row['tcc']):.2f}"]
        for peer in peers:
            runs = peer in row
            fields += [f"{rate(row['model'], row[peer]):.2f}" if runs else "-",
                       f"{row[peer + '_ratio']:.2f}" if runs else "-"]  # fmt: skip
        lines.append(fields)
    return reports.markdown(header, lines)


def main():
    options = reports.read_options(TITLES, PACKAGES, seconds=2.0, pictures=512)
    chosen = matching(SUBJECTS, options.models) if options.models else list(SUBJECTS)
    with tempfile.TemporaryDirectory() as folder:
        write_pictures(folder, int(options.pictures))
        write_tokens(folder)
        rows, failed = measure_all({name: () for name in chosen},
                                   lambda name: measure(name, folder, options), show)  # fmt: skip
    reports.write(options, rows, table(rows, options.peers))
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
