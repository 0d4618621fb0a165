"""Compiles the Triton kernels of RowSoftmax.cpp; no GPU is needed.

  row_softmax.py FOLDER ARCH...     as: row_softmax.py build/triton 80 90

Writes FOLDER/NAME.sm_ARCH.cubin of each kernel, and RowSoftmaxLaunch.h, how they are
launched. A kernel takes pointers, then integers (i64) or floats (fp64); Triton adds two
pointers to scratch memory at the end, which are not used here.
"""

import pathlib
import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

WIDTH = 4096  # the most columns
WARPS = 8


@triton.jit
def row_softmax(x, y, columns, WIDTH: tl.constexpr):
    at = tl.arange(0, WIDTH)
    inside = at < columns
    at += tl.program_id(0) * columns
    row = tl.load(x + at, mask=inside, other=float("-inf"))
    powers = tl.exp(row - tl.max(row, 0))
    tl.store(y + at, powers / tl.sum(powers, 0), mask=inside)


@triton.jit
def row_softmax_gradient(y, dy, dx, columns, WIDTH: tl.constexpr):
    at = tl.arange(0, WIDTH)
    inside = at < columns
    at += tl.program_id(0) * columns
    row = tl.load(y + at, mask=inside, other=0.0)
    slope = tl.load(dy + at, mask=inside, other=0.0)
    tl.store(dx + at, row * (slope - tl.sum(row * slope, 0)), mask=inside)


KERNELS = {row_softmax: ["x", "y"], row_softmax_gradient: ["y", "dy", "dx"]}


def compile_kernel(kernel, buffers, arch):
    types = {**dict.fromkeys(buffers, "*fp32"), "columns": "i64", "WIDTH": "constexpr"}
    source = ASTSource(kernel, types, constexprs={"WIDTH": WIDTH})
    compiled = triton.compile(
        source, target=GPUTarget("cuda", arch, 32), options={"num_warps": WARPS}
    )
    made = compiled.metadata
    if made.num_ctas != 1 or made.global_scratch_size or made.profile_scratch_size:
        sys.exit(f"{made.name}: needs clusters or scratch memory")
    return compiled.asm["cubin"], made.shared


def main(folder, *archs):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"#define ROW_SOFTMAX_WIDTH {WIDTH}", f"#define ROW_SOFTMAX_THREADS {32 * WARPS}"]
    for kernel, buffers in KERNELS.items():
        name = kernel.fn.__name__
        shared = 0
        for arch in archs:
            cubin, needed = compile_kernel(kernel, buffers, int(arch))
            (folder / f"{name}.sm_{arch}.cubin").write_bytes(cubin)
            shared = max(shared, needed)
        lines.append(f"#define {name.upper()}_SHARED {shared}")
    (folder / "RowSoftmaxLaunch.h").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
