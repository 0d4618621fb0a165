#include "compiler/codegen/cpu/object/EmitObjects.h"

#include "compiler/codegen/cache/KernelKey.h"
#include "compiler/codegen/cpu/object/ImageLinker.h"
#include "runtime/package/Format.h"

#include "llvm/ObjCopy/ConfigManager.h"
#include "llvm/ObjCopy/ObjCopy.h"
#include "llvm/Object/Binary.h"

using namespace mlir;

namespace tcc::cpu {

KernelOptions getKernelOptions(const Cpu &cpu) {
  return {cpu.getVectorBytes(), cpu.hasPairProducts(), cpu.hasTileRegisters()};
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

llvm::Expected<Object> isolate(llvm::MemoryBufferRef object, StringRef from,
                               StringRef to) {
  auto binary = llvm::object::createBinary(object);
  if (!binary)
    return binary.takeError();
  llvm::objcopy::ConfigManager config;
  auto name = llvm::objcopy::NameOrPattern::create(
      from, llvm::objcopy::MatchStyle::Literal,
      [](llvm::Error error) { return error; });
  if (!name)
    return name.takeError();
  if (llvm::Error error =
          config.Common.SymbolsToKeepGlobal.addMatcher(std::move(name)))
    return std::move(error);
  config.Common.SymbolsToRename[from] = to;
  Object isolated;
  llvm::raw_svector_ostream stream(isolated);
  if (llvm::Error error =
          llvm::objcopy::executeObjcopyOnBinary(config, **binary, stream))
    return std::move(error);
  return isolated;
}

FailureOr<CodeVariant>
emitImage(ModuleOp module, const codegen::Kernels &kernels, const Cpu &cpu,
          StringRef target, StringRef settings, const EmitResources &resources,
          MakeObject make, ArrayRef<Object> externals) {
  std::string all =
      (settings + "\n" + Twine(cpu.getVectorBytes()) + cpu.getFeatureString())
          .str();
  auto makeNamed = [&](exec::KernelOp kernel) -> FailureOr<Object> {
    std::string key = codegen::makeKey(kernel, all);
    std::string name = "kernel_" + key;
    FailureOr<Object> object = codegen::findOrMake(
        resources.cache, key, [&] { return make(kernel, name); });
    if (failed(object))
      return failure();
    llvm::Expected<Object> named =
        isolate({StringRef(object->data(), object->size()), "object"}, name,
                kernel.getSymName());
    if (!named)
      return kernel.emitError(llvm::toString(named.takeError()));
    return std::move(*named);
  };
  auto objects = codegen::makeAll<Object>(kernels, resources.jobs, makeNamed);
  if (failed(objects))
    return failure();
  std::vector<StringRef> bytes;
  std::vector<std::string> names;
  for (exec::KernelOp kernel : kernels)
    names.push_back(kernel.getSymName().str());
  for (const Object &object : *objects)
    bytes.emplace_back(object.data(), object.size());
  for (const Object &object : externals)
    bytes.emplace_back(object.data(), object.size());
  llvm::Expected<Image> image = linkImage(bytes, names);
  if (!image)
    return module.emitError(llvm::toString(image.takeError()));
  std::vector<uint64_t> offsets = placeKernels(module, kernels, *image);
  return CodeVariant{target.str(), cpu.name, cpu.features,
                     std::move(image->bytes), std::move(offsets)};
}

} // namespace tcc::cpu
