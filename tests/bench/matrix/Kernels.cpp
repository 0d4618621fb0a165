#include "tests/bench/matrix/Kernels.h"
#include "compiler/codegen/cpu/Contraction.h"
#include "compiler/codegen/cpu/Convolution.h"
#include "compiler/codegen/cpu/Packing.h"
#include "compiler/codegen/cpu/Window.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace tcc;
using namespace tcc::bench;
using cpu::KernelBuilder;

Kernel::Kernel(std::unique_ptr<Jit> jit, int64_t scratchBytes)
    : jit(std::move(jit)), scratch(scratchBytes) {
  function = reinterpret_cast<Function>(this->jit->lookup("kernel"));
}

void Kernel::run(const float *lhs, const float *rhs, float *out) {
  function(lhs, rhs, out, scratch.data());
}

namespace {

cpu::VectorUnit unitOf(const std::string &cpu) {
  return {cpu == "x86-64-v3" || cpu == "haswell" ? 32 : 64};
}

/// func @kernel(lhs, rhs, out, scratch), and a builder in its body.
struct Frame {
  OwningOpRef<ModuleOp> module;
  cpu::Memory lhs, rhs, out;
  func::FuncOp function;

  explicit Frame(KernelBuilder &b) : module(ModuleOp::create(b.getLoc())) {
    b.setInsertionPointToEnd(module->getBody());
    SmallVector<Type> pointers(4, LLVM::LLVMPointerType::get(b.getContext()));
    function =
        b.create<func::FuncOp>("kernel", b.getFunctionType(pointers, {}));
    Block *body = function.addEntryBlock();
    b.setInsertionPointToEnd(body);
    lhs = {body->getArgument(0), b.getF32Type()};
    rhs = {body->getArgument(1), b.getF32Type()};
    out = {body->getArgument(2), b.getF32Type()};
  }

  void emit(KernelBuilder &b, const cpu::Contraction &contraction) {
    Value scratch = function.getArgument(3);
    cpu::emitContraction(b, contraction, b.index(0),
                         cpu::contractionTasks(b, contraction), scratch);
    b.create<func::ReturnOp>();
  }
};

} // namespace

static cpu::EpilogueFunction storeTo(cpu::Memory out, Value batchStride,
                                     Value rowStride) {
  return [=](KernelBuilder &b, Value sum, Value batch, Value i, Value j) {
    Value at = b.add(b.linearize({batch, i}, {batchStride, rowStride}), j);
    b.store(sum, out, at);
  };
}

Kernel Kernel::matmul(MLIRContext &context, MatmulShape shape,
                      const std::string &cpuName) {
  KernelBuilder b(UnknownLoc::get(&context), &context);
  auto [m, n, k] = shape;
  Frame frame(b);
  cpu::Contraction c{b.index(1), b.index(m), b.index(n), b.index(k)};
  c.unit = unitOf(cpuName);
  auto atZero = [](KernelBuilder &b, Value) { return b.index(0); };
  c.lhs = cpu::packedRows({frame.lhs, atZero, b.index(k)}, c.unit);
  c.rhs.view = [k, base = frame.rhs](KernelBuilder &b, Value) {
    return cpu::packedPanels(b, base, b.index(0), cpu::panelColumns,
                             b.index(k));
  };
  c.arithmetic.sum = b.getF32Type();
  c.epilogue = storeTo(frame.out, b.index(0), b.index(n));
  c.blocking = cpu::chooseBlocking({1, m, n, k});
  int64_t scratchBytes = cpu::contractionScratchBytes(
      c.blocking, c.arithmetic.sum, c.lhs.packedType, c.rhs.packedType);
  frame.emit(b, c);
  return Kernel(Jit::compile(*frame.module, cpuName), scratchBytes);
}

Kernel Kernel::convolution(MLIRContext &context, ConvolutionShape shape,
                           const std::string &cpuName) {
  KernelBuilder b(UnknownLoc::get(&context), &context);
  int64_t k = shape.channels * shape.taps * shape.taps;
  int64_t pixels = shape.output() * shape.output();
  Frame frame(b);
  cpu::Contraction c{b.index(1), b.index(shape.filters), b.index(pixels),
                     b.index(k)};
  c.lhs.view = [k, base = frame.lhs](KernelBuilder &b, Value) {
    return cpu::packedPanels(b, base, b.index(0), cpu::panelRows, b.index(k));
  };
  cpu::WindowDimension d{b.index(shape.size),
                         b.index(shape.output()),
                         b.index(shape.taps),
                         shape.stride,
                         1,
                         b.index(shape.pad())};
  cpu::ConvolutionInput input{
      frame.rhs, b.index(0), b.index(shape.channels), {d, d}};
  c.unit = unitOf(cpuName);
  c.rhs = cpu::gatheredPatches(input, c.unit);
  c.arithmetic.sum = b.getF32Type();
  c.epilogue =
      storeTo(frame.out, b.index(shape.filters * pixels), b.index(pixels));
  c.blocking = cpu::chooseBlocking({1, shape.filters, pixels, k},
                                   shape.taps * shape.taps);
  int64_t scratchBytes = cpu::contractionScratchBytes(
      c.blocking, c.arithmetic.sum, c.lhs.packedType, c.rhs.packedType);
  frame.emit(b, c);
  return Kernel(Jit::compile(*frame.module, cpuName), scratchBytes);
}

Kernel Kernel::depthwise(MLIRContext &context, ConvolutionShape shape,
                         const std::string &cpuName) {
  KernelBuilder b(UnknownLoc::get(&context), &context);
  int64_t taps = shape.taps, size = shape.output();
  Frame frame(b);
  cpu::WindowDimension d{
      b.index(shape.size), b.index(size), b.index(taps), shape.stride, 1,
      b.index(shape.pad())};
  cpu::Window window{b.index(1), b.index(shape.channels), {d, d}};
  window.input = {frame.rhs, b.index(0), nullptr, b.getF32Type()};
  window.initial = b.getF32FloatAttr(0);
  window.combine = [taps, base = frame.lhs](KernelBuilder &b, Value partial,
                                            Value input, Value channel,
                                            ValueRange tap) -> Value {
    Value at = b.linearize({channel, tap[0], tap[1]},
                           {b.index(taps * taps), b.index(taps), b.index(1)});
    Value weight = b.load(base, at);
    Value all = b.create<vector::BroadcastOp>(input.getType(), weight);
    return b.create<vector::FMAOp>(input, all, partial);
  };
  window.epilogue = [size, base = frame.out](KernelBuilder &b, Value result,
                                             Value, Value channel,
                                             ValueRange position) {
    Value at = b.linearize({channel, position[0], position[1]},
                           {b.index(size * size), b.index(size), b.index(1)});
    b.store(result, base, at);
  };
  window.unit = unitOf(cpuName);
  window.planesPerTask = cpu::chooseWindowGrain(size * size * taps * taps);
  cpu::emitWindow(b, window, b.index(0), cpu::windowTasks(b, window));
  b.create<func::ReturnOp>();
  return Kernel(Jit::compile(*frame.module, cpuName), 0);
}

Buffer tcc::bench::packPanels(const Buffer &matrix, int64_t rows, int64_t depth,
                              int64_t width, int64_t rowStride,
                              int64_t depthStride) {
  Buffer panels(llvm::alignTo(rows, width) * depth);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t k = 0; k < depth; ++k)
      panels[(i / width * depth + k) * width + i % width] =
          matrix[i * rowStride + k * depthStride];
  return panels;
}
