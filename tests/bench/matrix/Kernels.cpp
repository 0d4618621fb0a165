#include "tests/bench/matrix/Kernels.h"

#include "compiler/codegen/cpu/object/Cpu.h"
#include "mlir/Parser/Parser.h"
#include "tests/compiler/codegen/cpu/kernels/CompiledKernel.h"
#include "llvm/Support/FormatVariadic.h"
#include <random>

using namespace mlir;
using namespace tcc;
using namespace tcc::bench;
using llvm::formatv;

std::string MatmulShape::getName() const {
  return formatv("matmul {0}x{1}x{2}", m, n, k);
}

std::string ConvolutionShape::getName() const {
  return formatv("{0} {1}x{1}/{2} {3}->{4} @{5}",
                 isDepthwise ? "depthwise" : "conv", taps, stride, channels,
                 filters, size);
}

namespace {

/// Memory as a package's is: aligned to 64 bytes.
struct Tensor {
  std::unique_ptr<void, decltype(&free)> memory;

  explicit Tensor(Type type) : memory(nullptr, free) {
    int64_t count = cast<RankedTensorType>(type).getNumElements();
    memory.reset(aligned_alloc(64, llvm::alignTo(count * sizeof(float), 64)));
    static std::mt19937 generator(1);
    std::uniform_real_distribution<float> uniform(-1, 1);
    auto *values = static_cast<float *>(memory.get());
    std::generate_n(values, count, [&] { return uniform(generator); });
  }
};

/// A kernel with its buffers, and the context of its expressions.
struct Workload {
  std::unique_ptr<MLIRContext> context;
  CompiledKernel kernel;
  std::vector<Tensor> tensors;
  SmallVector<void *> buffers;
};

} // namespace

static std::function<void()> makeRun(const std::string &source,
                                     graph::KernelKind kind,
                                     const std::string &cpu) {
  auto context = std::make_unique<MLIRContext>();
  loadKernelDialects(*context);
  auto module = parseSourceString<ModuleOp>(source, context.get());
  if (!module)
    exit(1);
  auto function = module->lookupSymbol<func::FuncOp>("f");
  llvm::ExitOnError check("matrix-bench: ");
  auto kernel = check(CompiledKernel::compile(fuse(function, kind), cpu));
  std::shared_ptr<Workload> workload(
      new Workload{std::move(context), std::move(kernel), {}, {}});
  for (TypeRange types : {TypeRange(function.getArgumentTypes()),
                          TypeRange(function.getResultTypes())})
    for (Type type : types) {
      workload->tensors.emplace_back(type);
      workload->buffers.push_back(workload->tensors.back().memory.get());
    }
  return [workload] { workload->kernel.run(workload->buffers, {}); };
}

int tcc::bench::getVectorBytes(const std::string &cpu) {
  std::string error;
  if (auto known = cpu::resolveCpu(cpu, error))
    return known->getVectorBytes();
  fprintf(stderr, "matrix-bench: %s\n", error.c_str());
  exit(2);
}

std::function<void()> tcc::bench::makeMatmul(MatmulShape shape,
                                             const std::string &cpu) {
  auto [m, n, k] = shape;
  constexpr char kSource[] = R"(
    !a = tensor<{0}x{2}xf32>
    !b = tensor<{3}x{2}x{4}xf32>
    !c = tensor<{0}x{1}xf32>
    func.func @f(%a: !a, %b: !b) -> !c {{
      %c = graph.matmul %a, %b {{packed_rhs} : (!a, !b) -> !c
      return %c : !c
    })";
  int64_t width = graph::MatmulOp::getPanelColumns(n);
  return makeRun(formatv(kSource, m, n, k, llvm::divideCeil(n, width), width),
                 graph::KernelKind::contraction, cpu);
}

std::function<void()> tcc::bench::makeConvolution(ConvolutionShape shape,
                                                  const std::string &cpu) {
  bool isDepthwise = shape.isDepthwise;
  int64_t taps = shape.taps * shape.taps;
  int64_t width = graph::MatmulOp::getPanelColumns(shape.filters);
  std::string filter =
      isDepthwise
          ? formatv("{0}x{1}", taps, shape.channels).str()
          : formatv("1x{0}x{1}x{2}", llvm::divideCeil(shape.filters, width),
                    shape.channels * taps, width)
                .str();
  constexpr char kSource[] = R"(
    !x = tensor<1x{1}x{1}x{0}xf32>
    !w = tensor<{2}xf32>
    !y = tensor<1x{4}x{4}x{3}xf32>
    func.func @f(%x: !x, %w: !w) -> !y {{
      %y = graph.conv %x, %w {{filters = {3} : i64, groups = {5} : i64,
        window = array<i64: {6}, {6}>, strides = array<i64: {7}, {7}>,
        pad_low = array<i64: {8}, {8}>, pad_high = array<i64: {8}, {8}>,
        dilations = array<i64: 1, 1>, channels_last,
        packed_filter} : (!x, !w) -> !y
      return %y : !y
    })";
  std::string source =
      formatv(kSource, shape.channels, shape.size, filter, shape.filters,
              shape.output(), isDepthwise ? shape.channels : 1, shape.taps,
              shape.stride, shape.pad());
  return makeRun(source,
                 isDepthwise ? graph::KernelKind::window
                             : graph::KernelKind::contraction,
                 cpu);
}
