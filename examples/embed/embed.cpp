// Runs a package on zeros, from two threads at once, and prints the first
// values of each output.
//
//   embed_cpp MODEL.tcc

#include <tcc/runtime.hpp>

#include <cstdio>
#include <thread>
#include <vector>

/// A context, and the memory that its inputs are read from.
struct Worker {
  explicit Worker(const tcc::Program &program) : context(program) {
    for (size_t i = 0; i < program.inputCount(); ++i) {
      const tcc_tensor_spec &spec = program.input(i);
      if (spec.is_fixed || spec.state >= 0)
        continue;
      std::vector<int64_t> shape;
      size_t bytes = tcc_dtype_size(spec.dtype);
      for (size_t axis = 0; axis < spec.rank; ++axis) {
        const tcc_dim &dim = spec.dims[axis];
        shape.push_back(dim.symbol ? dim.min : dim.extent);
        bytes *= static_cast<size_t>(shape.back());
      }
      // operator new aligns for any element type.
      inputs.emplace_back(bytes);
      context.bindBytes(i, inputs.back().data(), spec.dtype, shape);
    }
  }

  tcc::Context context;
  std::vector<std::vector<char>> inputs;
};

static void print(const tcc::Program &program, const tcc::Context &context) {
  for (size_t i = 0; i < program.outputCount(); ++i) {
    tcc::Tensor output = context.output(i);
    std::printf("%s: %s", program.output(i).name,
                tcc_dtype_name(output.dtype()));
    for (size_t axis = 0; axis < output.rank(); ++axis)
      std::printf("%c%lld", axis ? 'x' : ' ',
                  static_cast<long long>(output.extent(axis)));
    if (output.dtype() == TCC_F32)
      for (size_t j = 0; j < output.size() && j < 4; ++j)
        std::printf(" %g", output.data<float>()[j]);
    std::printf("\n");
  }
}

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: embed_cpp MODEL.tcc\n");
    return 2;
  }
  try {
    tcc::Package package = tcc::Package::open(argv[1]);
    tcc::Program program(package);
    Worker first(program), second(program);
    std::exception_ptr failure;
    std::thread other([&] {
      try {
        second.context.run();
      } catch (...) {
        failure = std::current_exception();
      }
    });
    try {
      first.context.run();
    } catch (...) {
      other.join();
      throw;
    }
    other.join();
    if (failure)
      std::rethrow_exception(failure);
    print(program, first.context);
    return 0;
  } catch (const tcc::Error &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return error.code();
  }
}
