"""One loader of batches in a process of its own.

  load_worker.py ENGINE SUBJECT FOLDER THREADS

Of pictures a batch are 32 images of f32, channels first, 0 to 1, and their classes; of tokens
two arrays of i64, the second a token ahead. The shards are in the page cache.
"""

import glob
import io
import itertools
import os
import sys
import tarfile

import numpy as np

from bench.worker import serve
from harness import BIN

BATCH, SIDE, SMALL = 32, 224, 64
BATCHES = 8  # of one time: workers of others give several at once
WINDOWS, LENGTH = 64, 1024  # of tokens in a batch
TRANSFORMS = {
    "crop": [f"random_crop {SIDE}", "flip"],
    "cached": [f"random_crop {SIDE}", "flip"],
    "resized": [f"random_resized_crop {SIDE}", "flip"],
    "scaled": ["decode scaled", f"random_resized_crop {SMALL}", "flip"],
}


def side_of(subject):
    return SMALL if subject == "scaled" else SIDE


def shards(folder):
    return sorted(glob.glob(os.path.join(folder, "*.tar")))


def open_tcc(subject, folder, threads):
    """Whoever reads a batch helps, so that one worker makes two threads."""
    from spine.loaders import Loader, describe

    settings = [f"workers={threads - 1}"]
    if subject == "tokens":
        data, shape = "tokens:" + os.path.join(folder, "tokens.bin"), (WINDOWS, LENGTH)
        tensors = [describe("x", "int64", shape, False, 0), describe("y", "int64", shape, True, 1)]
    else:
        data = "webdataset:" + ",".join(shards(folder))
        tensors = [describe("image", "float32", (BATCH, 3, side_of(subject), side_of(subject))),
                   describe("label", "int64", (BATCH,), True)]  # fmt: skip
        settings += ['map={image="jpg", label="cls"}', f"train.image={TRANSFORMS[subject]}"]
    if subject == "cached":
        settings += ["cache=ram:4GiB"]
    loader, number = Loader(data, tensors, *settings), iter(range(1 << 40))
    return lambda: loader.read(next(number))


def open_libjpeg(subject, folder, threads):
    """Decodes the files, each whole, and nothing more."""
    os.execv(os.path.join(BIN, "jpeg-decode"), ["jpeg-decode", *glob.glob(folder + "/jpg/*")])


def open_memcpy(subject, folder, threads):
    """As many bytes as a batch of tokens has."""
    size = 2 * 8 * WINDOWS * LENGTH
    source = np.ones(size, "u1")
    targets = itertools.cycle([np.zeros(size, "u1") for _ in range(4)])
    return lambda: np.copyto(next(targets), source)


def read_shards(folder):
    """[JPEG as bytes, class]"""
    samples = []
    for path in shards(folder):
        with tarfile.open(path) as shard:
            files = [shard.extractfile(member).read() for member in shard]
        samples += [(image, int(label)) for image, label in zip(files[::2], files[1::2])]
    return samples


class Samples:
    """A data set as torch's DataLoader takes it."""

    def __init__(self, samples, decode, transform):
        self.samples, self.decode, self.transform = samples, decode, transform

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        image, label = self.samples[index]
        return self.transform(self.decode(image)), label


def open_dataloader(decode, subject, folder, threads):
    import torch
    from torchvision.transforms import v2

    torch.set_num_threads(1)
    crop = v2.RandomResizedCrop if subject in ("resized", "scaled") else v2.RandomCrop
    steps = [crop(side_of(subject)), v2.RandomHorizontalFlip(), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]
    samples = Samples(read_shards(folder), decode, v2.Compose(steps))
    loader = torch.utils.data.DataLoader(samples, BATCH, shuffle=True, drop_last=True,
                                         num_workers=threads if threads > 1 else 0,
                                         persistent_workers=threads > 1)  # fmt: skip
    batches = (batch for _ in iter(int, 1) for batch in loader)
    return lambda: next(batches)


def open_torchvision(subject, folder, threads):
    """Decodes to tensors, the faster way."""
    import torch
    from torchvision.io import decode_jpeg

    def decode(data):
        return decode_jpeg(torch.frombuffer(bytearray(data), dtype=torch.uint8))

    return open_dataloader(decode, subject, folder, threads)


def open_pillow(subject, folder, threads):
    """Decodes to images of Pillow, the usual way."""
    from PIL import Image

    return open_dataloader(lambda data: Image.open(io.BytesIO(data)).convert("RGB"), subject,
                           folder, threads)  # fmt: skip


def open_dali(subject, folder, threads):
    from nvidia.dali import fn, pipeline_def, types

    @pipeline_def(batch_size=BATCH, num_threads=threads, device_id=None, seed=7)
    def make():
        jpegs, labels = fn.readers.webdataset(paths=shards(folder), ext=["jpg", "cls"],
                                              random_shuffle=True)  # fmt: skip
        if subject not in ("resized", "scaled"):
            place = {f"crop_pos_{axis}": fn.random.uniform(range=(0.0, 1.0)) for axis in "xy"}
            images = fn.decoders.image_crop(jpegs, crop=(SIDE, SIDE), **place)
        else:
            images = fn.decoders.image_random_crop(jpegs, random_area=[0.08, 1.0],
                                                   random_aspect_ratio=[0.75, 1.333])  # fmt: skip
            images = fn.resize(images, size=(side_of(subject),) * 2, interp_type=types.INTERP_LINEAR,
                               antialias=True)  # fmt: skip
        return fn.crop_mirror_normalize(images, mirror=fn.random.coin_flip(), std=[255.0] * 3,
                                        output_layout="CHW"), labels  # fmt: skip

    pipeline = make()
    pipeline.build()
    return pipeline.run


ENGINES = {
    "tcc": open_tcc,
    "libjpeg": open_libjpeg,
    "memcpy": open_memcpy,
    "torchvision": open_torchvision,
    "pillow": open_pillow,
    "dali": open_dali,
}


if __name__ == "__main__":
    engine, subject, folder, threads = sys.argv[1:]
    # Before any thread starts: they all inherit it.
    os.sched_setaffinity(0, range(int(threads)))
    read = ENGINES[engine](subject, folder, int(threads))
    serve(lambda: [read() for _ in range(BATCHES)], int(threads))
