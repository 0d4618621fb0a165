#include "tests/compiler/codegen/cpu/kernels/CompiledKernel.h"

#include "compiler/codegen/Targets.h"
#include "compiler/codegen/cpu/kernels/KernelEmitter.h"
#include "compiler/codegen/cpu/object/ImageLinker.h"
#include "compiler/codegen/cpu/object/ObjectEmitter.h"
#include <span>

using namespace mlir;

namespace tcc {

void loadKernelDialects(MLIRContext &context) {
  DialectRegistry registry;
  registry.insert<func::FuncDialect, graph::GraphDialect>();
  cpu::registerCodeEmission(registry);
  registerAllTargets();
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
}

graph::FusedOp fuse(func::FuncOp function, graph::KernelKind kind) {
  Block &entry = function.front();
  Operation *terminator = entry.getTerminator();
  OpBuilder b(terminator);
  SmallVector<Value> results(terminator->getOperands());
  auto fused = b.create<graph::FusedOp>(
      function.getLoc(), function.getResultTypes(), kind, entry.getArguments());
  Block &body = fused.getBody().emplaceBlock();
  body.getOperations().splice(body.end(), entry.getOperations(), entry.begin(),
                              fused->getIterator());
  b.setInsertionPointToEnd(&body);
  b.create<graph::YieldOp>(function.getLoc(), results);
  for (Value argument : entry.getArguments()) {
    Value inner = body.addArgument(argument.getType(), argument.getLoc());
    argument.replaceUsesWithIf(inner, [&](OpOperand &use) {
      return use.getOwner()->getBlock() == &body;
    });
  }
  terminator->setOperands(fused.getResults());
  return fused;
}

static llvm::Expected<cpu::Image> compileImage(graph::FusedOp region,
                                               const cpu::Cpu &cpu) {
  KernelOptions options;
  options.vectorBytes = cpu.getVectorBytes();
  options.hasPairProducts = cpu.hasPairProducts();
  options.hasTileRegisters = cpu.hasTileRegisters();
  auto loops = cpu::emitKernel(region, "kernel", options);
  if (failed(loops))
    return llvm::createStringError("the region has no kernel");
  auto object = cpu::emitCode(loops->get(), cpu, cpu.getVectorBytes());
  if (failed(object))
    return llvm::createStringError("the kernel cannot be compiled");
  return cpu::linkImage(llvm::StringRef(object->data(), object->size()),
                        std::string("kernel"));
}

llvm::Expected<CompiledKernel> CompiledKernel::compile(graph::FusedOp region,
                                                       llvm::StringRef name) {
  std::string error;
  std::optional<cpu::Cpu> cpu = cpu::resolveCpu(name, error);
  if (!cpu)
    return llvm::createStringError(error);
  llvm::Expected<cpu::Image> image = compileImage(region, *cpu);
  if (!image)
    return image.takeError();
  auto mapped = runtime::CodeImage::map(std::as_bytes(std::span(image->bytes)));
  if (!mapped.ok())
    return llvm::createStringError(mapped.takeStatus().message());
  FailureOr<KernelInfo> info = cpu::analyzeKernel(region);
  if (failed(info))
    return llvm::createStringError("the region has no kernel");
  return CompiledKernel(std::move(*mapped), image->offsets[0],
                        std::move(*info));
}

CompiledKernel::CompiledKernel(runtime::CodeImage code, uint64_t offset,
                               KernelInfo information)
    : image(std::move(code)), function(image.kernelAt(offset)),
      info(std::move(information)) {
  size_t bytes = llvm::alignTo(info.workerScratchBytes + 1, 64);
  scratch.reset(aligned_alloc(64, bytes));
}

void CompiledKernel::run(ArrayRef<void *> buffers, ArrayRef<int64_t> symbols,
                         int64_t tasksPerCall) const {
  SmallVector<int64_t> sizes;
  for (unsigned symbol : info.usedSymbols)
    sizes.push_back(symbols[symbol]);
  for (int64_t last = graph::evaluate(info.tasks, symbols); last > 0;
       last -= tasksPerCall)
    function(buffers.data(), sizes.data(),
             std::max<int64_t>(0, last - tasksPerCall), last, scratch.get());
}

} // namespace tcc
