#include "compiler/codegen/cpu/object/EmitObjects.h"

#include "compiler/codegen/cpu/object/ImageLinker.h"
#include "runtime/package/Format.h"

using namespace mlir;

namespace tcc::cpu {

KernelOptions getKernelOptions(const Cpu &cpu) {
  return {cpu.getVectorBytes(), cpu.hasPairProducts()};
}

/// Where the kernels of `module` are in an image of `kernels`.
static std::vector<uint64_t> placeKernels(ModuleOp module,
                                          ArrayRef<exec::KernelOp> kernels,
                                          const Image &image) {
  std::vector<uint64_t> offsets;
  size_t linked = 0;
  for (auto kernel : module.getOps<exec::KernelOp>()) {
    bool isHere = linked < kernels.size() && kernels[linked] == kernel;
    offsets.push_back(isHere ? image.offsets[linked] : format::kNoKernel);
    linked += isHere;
  }
  return offsets;
}

FailureOr<CodeVariant>
emitImage(ModuleOp module, const codegen::Kernels &kernels, const Cpu &cpu,
          StringRef target, int jobs,
          function_ref<FailureOr<Object>(exec::KernelOp)> make) {
  auto objects = codegen::makeAll<Object>(kernels, jobs, make);
  if (failed(objects))
    return failure();
  std::vector<StringRef> bytes;
  std::vector<std::string> names;
  for (exec::KernelOp kernel : kernels)
    names.push_back(kernel.getSymName().str());
  for (const Object &object : *objects)
    bytes.emplace_back(object.data(), object.size());
  llvm::Expected<Image> image = linkImage(bytes, names);
  if (!image)
    return module.emitError(llvm::toString(image.takeError()));
  std::vector<uint64_t> offsets = placeKernels(module, kernels, *image);
  return CodeVariant{target.str(), cpu.name, cpu.features,
                     std::move(image->bytes), std::move(offsets)};
}

} // namespace tcc::cpu
