#!/usr/bin/env python3
"""Packs what tests/gpu/run.sh checks: pack.py FOLDER [--arch sm_90] [--small]

FOLDER/manifest.json lists the checks; packages and data lie beside it.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile

import onnx
import streams

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from harness import BIN, first_line, run_tool  # noqa: E402
from models import cases as model_cases  # noqa: E402
from models import wheels  # noqa: E402
from models.run import compile_flags  # noqa: E402
from numerics import families  # noqa: E402
from numerics.rows import Model, write_model  # noqa: E402
from training import cases  # noqa: E402
from training.cases import FIXTURES  # noqa: E402
from unknowns import FUNCTIONS  # noqa: E402

# What tests on a machine without a GPU pack.
SMALL_FAMILIES = ("reduction", "contraction")
SMALL_MODELS = ("silero_vad_16k",)
LARGE_MODELS = (*SMALL_MODELS, "magika", "ocr_cls")
# What is carried at most.
MOST_BYTES = 50 << 20
# Beside torch: models, batches and types.
TIMED = ("resnet50", "bert_base", "vit_b_16")
BATCHES = (1, 32)
TYPES = ("bf16", "f16")
# Training steps beside torch, in bf16.
TIMED_STEPS = ("resnet50.b64", "gpt2.b8")
# m, n, k of transformers' products and of resnet50's as products, at batch 1 and 32.
PRODUCTS = [
    [tokens, columns, depth]
    for tokens in (128, 4096)
    for columns, depth in ((768, 768), (2304, 768), (3072, 768), (768, 3072))
] + [[100352, 256, 64], [6272, 256, 2304], [8192, 8192, 8192]]
TRAINED = ("cnn_digits", "gpt2_tiny")
# Rows and columns of the kernels whose speed is measured.
ROWS, COLUMNS = 8192, 4096


class Packer:
    def __init__(self, folder, work, small, arch):
        self.folder, self.work, self.small, self.checks = folder, work, small, []
        self.target = ["--target=cuda", "--arch", "none" if small else arch]
        if small:
            self.target += ["--emulate"]
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)

    def path(self, *parts):
        path = os.path.join(self.folder, *parts)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return path

    def compile(self, model, name, *flags):
        """The package's path in the folder; exits where a model is refused."""
        package = f"{name}.tcc"
        run = run_tool("tcc", model, "-q", "-o", self.path(package), *self.target, *flags)
        if run.code != 0:
            sys.exit(f"pack: {name}: {first_line(run)}")
        return package

    def add(self, kind, name, **values):
        self.checks.append({"kind": kind, "name": name, **values})

    def numerics(self):
        for title, rows in families.models():
            if self.small and title not in SMALL_FAMILIES:
                continue
            with tempfile.TemporaryDirectory() as work:
                model, name = Model(rows), f"numerics/{title.replace(' ', '-')}"
                path, data = write_model(model, work)
                package = self.compile(path, name)
                run_tool("tcc", path, "-q", "-o", f"{work}/cpu.tcc")
                kept = self.path(name, "data")
                shutil.copytree(data, kept)
                run = run_tool(
                    "tcc-run", "run", f"{work}/cpu.tcc", "--inputs-dir", data,
                    "--output-dir", kept,
                )  # fmt: skip
                if run.code != 0:
                    sys.exit(f"pack: {name}: {first_line(run)}")
                self.add("compare", title, package=package, data=f"{name}/data")
                # What a GPU runs without libraries, and the emulated device with.
                other = "simulated" if self.small else "none"
                self.add(
                    "compare", f"{title}, libraries: {other}", package=package,
                    data=f"{name}/data", libraries=other,
                )  # fmt: skip

    def models(self):
        known = wheels.models()
        for name in SMALL_MODELS if self.small else LARGE_MODELS:
            folder = wheels.make(name, known[name])
            path = os.path.join(folder, "model.onnx")
            package = self.compile(path, f"models/{name}", *compile_flags(known[name]))
            data = f"models/{name}/data"
            shutil.copytree(model_cases.data_sets(folder)[0], self.path(data))
            self.add("compare", name, package=package, data=data)
            libraries = "simulated" if self.small else None
            self.add("tune", name, package=package, data=data, libraries=libraries)
            if name == SMALL_MODELS[0]:
                self.add("repeats", name, package=package, data=data)
                self.add("sanitizer", name, package=package, data=data)

    def training(self):
        for name in TRAINED:
            case = cases.single(name)
            recipe = self.path(f"training/{name}.toml")
            with open(recipe, "w") as stream:
                stream.write(cases.recipe(name, case.optimizer, "f32"))
            model = os.path.join(FIXTURES, f"{name}.onnx")
            package = self.compile(model, f"training/{name}", f"--train={recipe}")
            data = f"training/{cases.MODELS[name].data}.npz"
            shutil.copy(os.path.join(FIXTURES, os.path.basename(data)), self.path(data))
            kept = cases.load(name)
            self.add("overlap", name, package=package, data=data, steps=20)
            if name == TRAINED[0]:
                self.add("nccl", "one rank")
            self.add("ranks", name, package=package, data=data, steps=2 if self.small else 20)
            self.add(
                "train", name, package=package, data=data,
                steps=2 if self.small else len(kept["f32"]),
                set=list(cases.settings(case)),
                losses=kept["f64"].tolist(), pytorch=kept["f32"].tolist(),
            )  # fmt: skip

    def unknowns(self):
        """What only a machine with a GPU can tell, for at most a minute."""
        bytes_, products, shape = 1 << 28, PRODUCTS, [32, 64, 56, 56]
        if self.small:
            bytes_, products, shape = 1 << 16, [[8, 8, 8]], [1, 4, 8, 8]
        types = ["float32", "tf32", "bfloat16", "float16"]
        for name in FUNCTIONS:
            self.add("unknown", name, bytes=bytes_, shapes=products, types=types, shape=shape)

    def streams(self):
        """Kernels that only move bytes, each alone in its package."""
        rows, columns = (16, 128) if self.small else (ROWS, COLUMNS)
        size = rows * columns * 4
        for name, model, flags, moved in (
            ("gelu", streams.unary("Gelu", rows, columns), (), 2 * size),
            ("softmax", streams.unary("Softmax", rows, columns), (), 2 * size),
            ("log_softmax", streams.unary("LogSoftmax", rows, columns), (), 2 * size),
            ("layer_norm", streams.layer_norm(rows, columns), (), 2 * size),
            ("cross_entropy", streams.cross_entropy(rows, columns),
             ("--grad-of=loss", "--wrt=x"), 2 * size),
            ("adamw", streams.adamw(rows, columns), (), 7 * size),
        ):  # fmt: skip
            path = self.path(f"streams/{name}.onnx")
            onnx.save(model, path)
            package = self.compile(path, f"streams/{name}", *flags)
            os.remove(path)
            self.add("profile", name, package=package, bytes=moved)

    def steps(self):
        """Training steps beside torch's, from the parameters that it writes."""
        import steps

        for name in TIMED_STEPS if not self.small else ("small.b4",):
            model, recipe = (os.path.join(self.work, f"{name}.{end}") for end in ("onnx", "toml"))
            steps.export(name, model)
            with open(recipe, "w") as stream:
                stream.write(steps.SUBJECTS[name].recipe)
            package = self.compile(model, f"steps/{name}", "--weights=none", "--train", recipe)
            self.add("steps", name, package=package, count=8 if self.small else 40)

    def speed(self):
        """Whole models; torch makes the weights there, and is timed."""
        import oracle

        subjects = [
            (name, batch, kind)
            for kind in (TYPES if not self.small else ("f32", "bf16"))
            for batch in (BATCHES if not self.small else (2,))
            for name in (TIMED if not self.small else ("small",))
        ]
        for name, batch, kind in subjects:
            path = os.path.join(self.work, name, "model.onnx")
            if not os.path.exists(path):
                os.makedirs(os.path.dirname(path))
                oracle.export(name, path)
            title = f"{name}.b{batch}.{kind}"
            package = self.compile(path, f"speed/{title}", "--weights=none", "--precision",
                                   kind, "--dim", f"batch={batch}")  # fmt: skip
            subject = {"model": name, "batch": batch, "type": kind}
            self.add("speed", title, package=package, **subject)
        for name, batch, kind in subjects:
            modes = [] if self.small else oracle.COMPILED
            self.add("peers", f"{name}.b{batch}.{kind}", model=name, batch=batch, type=kind,
                     modes=modes)  # fmt: skip


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--arch", default="sm_90")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        packer = Packer(arguments.folder, work, arguments.small, arguments.arch)
        packer.unknowns()
        packer.numerics()
        packer.models()
        packer.training()
        packer.streams()
        try:
            packer.steps()
            packer.speed()
        except ImportError as problem:
            print(f"not available: {problem} (tools/setup --exports)")
    plugins = ["cuda_libs", "nccl", "emulated"] if arguments.small else ["cuda_libs", "nccl"]
    if os.path.exists(os.path.join(BIN, "libtcc_gloo.so")):  # built where there is Gloo
        plugins.append("gloo")
    for tool in ("tcc-run", *(f"libtcc_{plugin}.so" for plugin in plugins)):
        shutil.copy(os.path.join(BIN, tool), packer.path(tool))
    shutil.copy(os.path.join(BIN, "../tests/OneRankTest"), packer.path("OneRankTest"))
    with open(packer.path("manifest.json"), "w") as stream:
        json.dump(packer.checks, stream, indent=1)
    size = sum(
        os.path.getsize(os.path.join(where, file))
        for where, _, files in os.walk(arguments.folder)
        for file in files
    )
    print(f"{len(packer.checks)} checks, {size / 2**20:.1f} MiB")
    if size > MOST_BYTES:
        sys.exit(f"more than the {MOST_BYTES >> 20} MiB that are carried at most")


if __name__ == "__main__":
    main()
