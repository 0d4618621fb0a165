"""An installed and moved runtime builds C and C++ programs that run a package; an
installed compiler checks an operator that is built against it.

  installation.py BUILD_DIR C_COMPILER CXX_COMPILER
"""

import os
import shutil
import subprocess
import sys
import tempfile

import harness

MAX_LIBRARY_BYTES = 2 << 20
LIBRARIES = {"libc", "libm", "libstdc++", "libpthread"}
DATA_LIBRARIES = {*LIBRARIES, "libtcc_runtime", "libjpeg", "libpng16", "libwebp", "libz", "libzstd", "libcsv", "ld-linux-x86-64"}
EXPECTED = "y: f32 1x4 1 1 1 1\n"


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, **options)


def install(tally, build, folder):
    """Installs, then moves the prefix."""
    for component in ("runtime", "compiler"):
        done = run("cmake", "--install", build, "--component", component,
                   "--prefix", f"{folder}/first")  # fmt: skip
        tally.check(f"install the {component}", done.returncode == 0, done.stderr)
    shutil.move(f"{folder}/first", f"{folder}/prefix")


def check_library(tally, library, folder, libraries):
    stripped = f"{folder}/stripped.so"
    run("strip", "-o", stripped, library)
    size = os.path.getsize(stripped)
    tally.check("size", size <= MAX_LIBRARY_BYTES, f"{size} bytes")
    dynamic = run("readelf", "-d", library).stdout
    needed = {
        line.split("[")[1].split(".so")[0]
        for line in dynamic.splitlines()
        if "(NEEDED)" in line
    }
    tally.check("needed libraries", needed <= libraries, str(needed))
    symbols = run("nm", "-D", "--defined-only", library).stdout.split("\n")
    foreign = [s for s in symbols if s and " tcc_" not in s]
    tally.check("exported symbols", not foreign, str(foreign[:3]))


def build_example(tally, name, folder, c_compiler, cxx_compiler):
    """Builds an example against what is installed, in a folder of its name."""
    source = os.path.join(harness.ROOT, "examples", name)
    configured = run("cmake", "-G", "Ninja", "-S", source, "-B", f"{folder}/{name}",
                     f"-DCMAKE_PREFIX_PATH={folder}/prefix",
                     f"-DCMAKE_C_COMPILER={c_compiler}",
                     f"-DCMAKE_CXX_COMPILER={cxx_compiler}")  # fmt: skip
    tally.check(f"{name}: find_package", configured.returncode == 0, configured.stderr)
    built = run("cmake", "--build", f"{folder}/{name}")
    tally.check(f"{name}: build", built.returncode == 0, built.stdout[-2000:])


def check_cmake(tally, folder, c_compiler, cxx_compiler, package):
    build_example(tally, "embed", folder, c_compiler, cxx_compiler)
    for program in ("embed_c", "embed_cpp", "embed_static"):
        path = f"{folder}/embed/{program}"
        tally.check(f"{program} is built", os.path.exists(path))
        if os.path.exists(path):
            done = run(path, package)
            tally.check(program, done.stdout == EXPECTED, done.stdout + done.stderr)
    done = run(f"{folder}/embed/embed_c", "/absent.tcc")
    tally.check("exit code", done.returncode == 5, done.stderr)


def check_loader(tally, folder, cxx_compiler):
    """A program of the loader's API builds against what is installed, and starts."""
    source = os.path.join(harness.ROOT, "examples/train-images/TrainImages.cpp")
    environment = {**os.environ, "PKG_CONFIG_PATH": f"{folder}/prefix/lib/pkgconfig"}
    flags = run("pkg-config", "--cflags", "--libs", "tcc-data", env=environment)
    built = run(cxx_compiler, "-std=c++17", source, "-o", f"{folder}/loader", *flags.stdout.split())
    tally.check("compile a loader", built.returncode == 0, flags.stderr + built.stderr)
    environment = {**os.environ, "LD_LIBRARY_PATH": f"{folder}/prefix/lib"}
    done = run(f"{folder}/loader", "/absent.tcc", "a.toml", "b.toml", env=environment)
    tally.check("run a loader", done.returncode == 1 and "absent.tcc" in done.stderr, done.stderr)


def check_plugin(tally, folder, c_compiler, cxx_compiler):
    """The example of an operator exports what tcc reads, and nothing else."""
    build_example(tally, "custom-op", folder, c_compiler, cxx_compiler)
    library = f"{folder}/custom-op/librow_swish.so"
    symbols = run("nm", "-D", "--defined-only", library).stdout
    tally.check("it exports tcc_plugin", " tcc_plugin" in symbols, symbols)
    compiler = f"{folder}/prefix/bin/tcc"
    if not os.path.exists(compiler):
        print("no compiler is installed: it was not built")
        return
    for target in ("cpu", "cuda"):
        done = run(compiler, "--check-plugin", library, "--target", target)
        tally.check(f"an installed compiler checks it on {target}", done.returncode == 0, done.stderr)


def check_pkg_config(tally, folder, c_compiler, package):
    library_dir = f"{folder}/prefix/lib"
    environment = {**os.environ, "PKG_CONFIG_PATH": f"{library_dir}/pkgconfig"}
    flags = run("pkg-config", "--cflags", "--libs", "tcc", env=environment)
    tally.check("pkg-config", flags.returncode == 0, flags.stderr)
    source = os.path.join(harness.ROOT, "examples/embed/embed.c")
    built = run(c_compiler, source, "-o", f"{folder}/by_pc", *flags.stdout.split())
    tally.check("compile by pkg-config", built.returncode == 0, built.stderr)
    if built.returncode == 0:
        environment = {**os.environ, "LD_LIBRARY_PATH": library_dir}
        done = run(f"{folder}/by_pc", package, env=environment)
        tally.check("run by pkg-config", done.stdout == EXPECTED, done.stderr)


def main(build, c_compiler, cxx_compiler):
    tally = harness.Tally()
    with tempfile.TemporaryDirectory() as folder:
        package = f"{folder}/m.tcc"
        run(f"{build}/tests/tcc_write_fixture", "add_one", package)
        install(tally, build, folder)
        check_library(tally, f"{folder}/prefix/lib/libtcc_runtime.so", folder, LIBRARIES)
        check_library(tally, f"{folder}/prefix/lib/libtcc_data.so", folder, DATA_LIBRARIES)
        check_cmake(tally, folder, c_compiler, cxx_compiler, package)
        check_pkg_config(tally, folder, c_compiler, package)
        check_loader(tally, folder, cxx_compiler)
        check_plugin(tally, folder, c_compiler, cxx_compiler)
    tally.close()


main(*sys.argv[1:])
