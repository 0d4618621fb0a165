"""Installs the runtime, moves the prefix, and builds examples/embed with it.

  install.py BUILD_DIR

By CMake's find_package (shared and static) and by pkg-config; each program
refuses a missing package with the API's code. Also the size and the needs of the
shared library.
"""

import os
import subprocess
import sys
import tempfile

from harness import ROOT, Tally

MAX_BYTES = 2 << 20
NEEDED = {"libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1"}
NEEDED |= {"libpthread.so.0", "ld-linux-x86-64.so.2"}
EMBED = os.path.join(ROOT, "examples", "embed")
MISSING_FILE = 5


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, **options)


def check(tally, name, done):
    tail = (done.stdout + done.stderr)[-300:]
    return tally.check(name, done.returncode == 0, tail)


def install_and_move(tally, build, work):
    first, moved = os.path.join(work, "first"), os.path.join(work, "moved")
    done = run("cmake", "--install", build, "--prefix", first)
    if not check(tally, "installs", done):
        tally.close()
    os.rename(first, moved)
    return moved


def check_library(tally, prefix, work):
    library = os.path.join(prefix, "lib", "libtcc_runtime.so")
    stripped = os.path.join(work, "stripped.so")
    run("strip", "-o", stripped, library)
    size = os.path.getsize(stripped)
    tally.check("library size", size <= MAX_BYTES, f"{size} bytes")
    dynamic = run("objdump", "-p", library).stdout.split("\n")
    needed = {line.split()[1] for line in dynamic if "NEEDED" in line}
    tally.check("library needs", needed <= NEEDED, f"{needed - NEEDED}")
    symbols = run("nm", "-D", "--defined-only", library).stdout.split("\n")
    names = [line.split()[-1] for line in symbols if line]
    foreign = [n for n in names if not n.startswith(("tcc_", "TCC_"))]
    tally.check("library symbols", not foreign, f"{foreign[:3]}")


def check_program(tally, name, program, environment=None):
    done = run(program, "missing.tcc", env=environment)
    message = f"exit {done.returncode}: {done.stderr[:200]}"
    named = "missing.tcc" in done.stderr
    tally.check(name, done.returncode == MISSING_FILE and named, message)


def check_cmake(tally, prefix, work):
    folder = os.path.join(work, "cmake")
    flags = [f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_CXX_COMPILER=clang++-19"]
    flags += ["-DCMAKE_C_COMPILER=clang-19", "-G", "Ninja"]
    check(tally, "CMake configures", run("cmake", "-S", EMBED, "-B", folder, *flags))
    check(tally, "CMake builds", run("cmake", "--build", folder))
    for name in ("embed_c", "embed_cpp", "embed_static"):
        check_program(tally, name, os.path.join(folder, name))


def check_pkg_config(tally, prefix, work):
    lib = os.path.join(prefix, "lib")
    environment = {
        **os.environ,
        "PKG_CONFIG_PATH": os.path.join(lib, "pkgconfig"),
        "LD_LIBRARY_PATH": lib,
    }
    flags = run("pkg-config", "--cflags", "--libs", "tcc", env=environment)
    if not check(tally, "pkg-config", flags):
        return
    program = os.path.join(work, "by_pkg_config")
    source = os.path.join(EMBED, "embed.c")
    done = run("clang-19", source, "-o", program, *flags.stdout.split())
    if check(tally, "pkg-config builds", done):
        check_program(tally, "embed by pkg-config", program, environment)


def main(build):
    tally = Tally()
    with tempfile.TemporaryDirectory() as work:
        prefix = install_and_move(tally, build, work)
        check_library(tally, prefix, work)
        check_cmake(tally, prefix, work)
        check_pkg_config(tally, prefix, work)
    tally.close()


if __name__ == "__main__":
    main(sys.argv[1])
