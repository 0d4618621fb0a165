#include "compiler/pipeline/GenerateCode.h"

#include "compiler/codegen/cpu/ObjectEmitter.h"
#include "compiler/codegen/kernel/KernelEmitter.h"
#include "dialects/exec/ExecOps.h"

#include <atomic>
#include <thread>

using namespace mlir;
using namespace tcc;

using Code = llvm::SmallVector<char, 0>;

static SmallVector<exec::KernelOp> getKernels(ModuleOp module) {
  return SmallVector<exec::KernelOp>(module.getOps<exec::KernelOp>());
}

static FailureOr<OwningOpRef<ModuleOp>> emitLoops(exec::KernelOp kernel,
                                                  const cpu::Cpu &cpu) {
  auto fused = cast<graph::FusedOp>(kernel.getComputation());
  codegen::KernelOptions options;
  options.vectorBytes = cpu.getVectorBytes();
  options.hasPairProducts = cpu.hasPairProducts();
  return codegen::emitKernel(fused, kernel.getSymName(), options);
}

static FailureOr<Code> compileKernel(exec::KernelOp kernel, const cpu::Cpu &cpu,
                                     cpu::CodeForm form) {
  FailureOr<OwningOpRef<ModuleOp>> loops = emitLoops(kernel, cpu);
  if (failed(loops))
    return failure();
  return cpu::emitCode(loops->get(), cpu, cpu.getVectorBytes(), form);
}

/// Compiles kernel i to objects[i]; threads take the next one until all are
/// done.
static bool compileAll(ArrayRef<exec::KernelOp> kernels, const cpu::Cpu &cpu,
                       int jobs, MutableArrayRef<Code> objects) {
  std::atomic<size_t> next = 0;
  std::atomic<bool> ok = true;
  auto work = [&] {
    for (size_t i; ok && (i = next++) < kernels.size();) {
      FailureOr<Code> object =
          compileKernel(kernels[i], cpu, cpu::CodeForm::Object);
      if (failed(object))
        ok = false;
      else
        objects[i] = std::move(*object);
    }
  };
  std::vector<std::jthread> threads;
  for (int i = 1; i < jobs; ++i)
    threads.emplace_back(work);
  work();
  threads.clear();
  return ok;
}

FailureOr<cpu::Image> tcc::generateImage(ModuleOp module, const cpu::Cpu &cpu,
                                         int jobs) {
  SmallVector<exec::KernelOp> kernels = getKernels(module);
  std::vector<Code> objects(kernels.size());
  if (!compileAll(kernels, cpu, jobs, objects))
    return failure();
  std::vector<llvm::StringRef> bytes;
  std::vector<std::string> names;
  for (auto [kernel, object] : llvm::zip_equal(kernels, objects)) {
    bytes.emplace_back(object.data(), object.size());
    names.push_back(kernel.getSymName().str());
  }
  llvm::Expected<cpu::Image> image = cpu::linkImage(bytes, names);
  if (!image)
    return module.emitError(llvm::toString(image.takeError()));
  return std::move(*image);
}

FailureOr<std::string> tcc::printLoops(ModuleOp module, const cpu::Cpu &cpu) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  for (exec::KernelOp kernel : getKernels(module)) {
    FailureOr<OwningOpRef<ModuleOp>> loops = emitLoops(kernel, cpu);
    if (failed(loops))
      return failure();
    (*loops)->print(stream);
    stream << '\n';
  }
  return text;
}

FailureOr<std::string> tcc::printAssembly(ModuleOp module,
                                          const cpu::Cpu &cpu) {
  std::string text;
  for (exec::KernelOp kernel : getKernels(module)) {
    FailureOr<Code> code = compileKernel(kernel, cpu, cpu::CodeForm::Assembly);
    if (failed(code))
      return failure();
    text.append(code->begin(), code->end());
  }
  return text;
}
