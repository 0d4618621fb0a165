#include "tests/compiler/codegen/cpu/kernels/KernelHarness.h"

#include "compiler/codegen/cpu/object/Cpu.h"
#include "compiler/codegen/region/RegionFrame.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include <cmath>

using namespace mlir;

namespace tcc {

KernelHarness::KernelHarness() {
  DialectRegistry registry;
  registerEvaluatorDialects(registry);
  context.appendDialectRegistry(registry);
  loadKernelDialects(context);
}

func::FuncOp KernelHarness::getFunction() {
  return module->lookupSymbol<func::FuncOp>("f");
}

void KernelHarness::parse(graph::KernelKind kind, const std::string &source,
                          ArrayRef<int64_t> values) {
  symbols.assign(values.begin(), values.end());
  module = parseSourceString<ModuleOp>(source, &context);
  ASSERT_TRUE(module) << source;
  func::FuncOp copy = getFunction().clone();
  copy.setName("kernel");
  module->push_back(copy);
  region = fuse(copy, kind);
  ASSERT_TRUE(succeeded(verify(*module)));
}

RankedTensorType KernelHarness::getRunType(Type type) const {
  auto tensor = cast<RankedTensorType>(type);
  SmallVector<int64_t> shape;
  for (AffineExpr extent : graph::getExtents(tensor))
    shape.push_back(graph::evaluate(extent, symbols));
  return RankedTensorType::get(shape, tensor.getElementType());
}

void KernelHarness::compile(llvm::StringRef cpu) {
  auto compiled = CompiledKernel::compile(region, cpu);
  ASSERT_TRUE(bool(compiled)) << toString(compiled.takeError());
  kernel.emplace(std::move(*compiled));
}

std::vector<HostTensor> KernelHarness::makeInputs() {
  std::vector<HostTensor> inputs;
  uint32_t state = 1;
  for (Type type : getFunction().getArgumentTypes()) {
    HostTensor tensor{getRunType(type), {}};
    Type elementType = tensor.type.getElementType();
    for (int64_t i = 0; i < tensor.type.getNumElements(); ++i) {
      state = state * 1664525u + 1013904223u;
      double unit = double(state >> 8) / (1 << 24);
      Scalar scalar;
      if (tensor.isFloat())
        scalar.f = 4 * unit - 2;
      else
        scalar.i = elementType.isInteger(1) ? unit > 0.5 : int64_t(3 * unit);
      tensor.elements.push_back(roundTo(elementType, scalar));
    }
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

KernelRun KernelHarness::run(ArrayRef<HostTensor> inputs,
                             int64_t tasksPerCall) {
  KernelRun run;
  std::vector<Bytes> storage;
  for (const HostTensor &input : inputs)
    storage.push_back(makeBytes(input));
  for (Type type : getFunction().getResultTypes()) {
    HostTensor empty{getRunType(type), {}};
    empty.elements.resize(empty.type.getNumElements(), Scalar{.i = 0});
    run.results.push_back(makeBytes(empty));
  }
  std::vector<void *> buffers;
  for (Bytes &bytes : storage)
    buffers.push_back(bytes.data());
  for (Bytes &bytes : run.results)
    buffers.push_back(bytes.data());
  buffers.push_back(run.fault);
  kernel->run(buffers, symbols, tasksPerCall);
  return run;
}

/// |got - expected| <= tolerance * the largest |expected|, or the last place of
/// a narrow type.
static void compare(const HostTensor &expected, const Bytes &bytes,
                    double tolerance) {
  auto got = readBytes(expected.type, bytes);
  ASSERT_TRUE(bool(got)) << toString(got.takeError());
  Type type = expected.type.getElementType();
  if (type.isF16())
    tolerance = std::max(tolerance, 1e-3);
  if (type.isBF16())
    tolerance = std::max(tolerance, 8e-3);
  double largest = 0;
  if (expected.isFloat())
    for (Scalar x : expected.elements)
      if (std::isfinite(x.f))
        largest = std::max(largest, std::fabs(x.f));
  for (size_t i = 0; i < expected.elements.size(); ++i) {
    Scalar want = expected.elements[i], have = got->elements[i];
    if (expected.isFloat() && std::isnan(want.f))
      ASSERT_TRUE(std::isnan(have.f)) << "element " << i << ": " << have.f;
    else if (expected.isFloat() && std::isinf(want.f))
      ASSERT_EQ(have.f, want.f) << "element " << i;
    else if (expected.isFloat())
      ASSERT_NEAR(have.f, want.f, tolerance * largest) << "element " << i;
    else
      ASSERT_EQ(have.i, want.i) << "element " << i;
  }
}

/// Puts what is not an ordinary number into some rows of float inputs.
static void addSpecialValues(MutableArrayRef<HostTensor> inputs) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const double specials[] = {std::nan(""), infinity, -0.0, -infinity, 0.0};
  size_t next = 0;
  for (HostTensor &input : inputs)
    if (input.isFloat())
      for (size_t i = 2; i < input.elements.size(); i += 13 + i / 3)
        input.elements[i].f = specials[next++ % std::size(specials)];
}

void KernelHarness::compareWithReference(ArrayRef<HostTensor> inputs,
                                         const KernelRun &run,
                                         double tolerance) {
  auto expected = Evaluator(symbols).evaluate(getFunction(), inputs);
  ASSERT_TRUE(bool(expected)) << toString(expected.takeError());
  for (auto [tensor, bytes] : llvm::zip_equal(*expected, run.results))
    compare(tensor, bytes, tolerance);
}

static bool hasTileRegisters(llvm::StringRef name) {
  std::string error;
  std::optional<cpu::Cpu> cpu = cpu::resolveCpu(name, error);
  return cpu && cpu->hasTileRegisters();
}

/// Those that this machine can run, and that have code of their own.
std::vector<std::string> KernelHarness::listCpus() {
  std::vector<std::string> cpus = {"native"};
  if (usesTileRegisters("native"))
    cpus.push_back("cooperlake"); // pairs without tile registers
  cpus.push_back("x86-64-v3");
  return cpus;
}

bool KernelHarness::usesTileRegisters(llvm::StringRef cpu) {
  auto isNarrow = [](Value x) { return getElementTypeOrSelf(x).isBF16(); };
  Operation *product = codegen::getAnchor(getRegion());
  return hasTileRegisters(cpu) && product &&
         llvm::any_of(product->getOperands(), isNarrow);
}

void KernelHarness::check(graph::KernelKind kind, const std::string &source,
                          ArrayRef<int64_t> values, double tolerance) {
  SCOPED_TRACE(source);
  ASSERT_NO_FATAL_FAILURE(parse(kind, source, values));
  std::vector<HostTensor> inputs = makeInputs(), special = inputs;
  // What a padded zero times a weight of NaN is, nobody says: weights stay.
  bool hasWeights = kind == graph::KernelKind::contraction ||
                    kind == graph::KernelKind::window;
  addSpecialValues(
      MutableArrayRef(special).take_front(hasWeights ? 1 : special.size()));
  std::optional<KernelRun> first;
  for (const std::string &cpu : listCpus()) {
    SCOPED_TRACE(cpu);
    ASSERT_NO_FATAL_FAILURE(compile(cpu));
    for (int64_t tasksPerCall : {int64_t(1) << 40, int64_t(1), int64_t(3)}) {
      KernelRun next = run(inputs, tasksPerCall);
      EXPECT_EQ(next.fault[0], 0);
      if (!first)
        first = std::move(next);
      else
        EXPECT_EQ(next.results, first->results)
            << "other bits with " << tasksPerCall << " tasks a call";
    }
    compareWithReference(inputs, *first, tolerance);
    {
      SCOPED_TRACE("special values");
      compareWithReference(special, run(special), tolerance);
    }
    // Tile registers add in an order of their own.
    if (usesTileRegisters(cpu))
      first.reset();
  }
}

} // namespace tcc
