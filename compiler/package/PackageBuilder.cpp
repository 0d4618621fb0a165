#include "compiler/package/PackageBuilder.h"
#include "compiler/package/Constants.h"
#include "runtime/executor/Prepare.h"

using namespace mlir;
using namespace tcc;
using runtime::Status;

/// Sections in the order they are added.
static constexpr uint32_t kFirstCodeSection = 1;

/// A weight is sparse if a run reads less than this part of it.
static constexpr uint64_t kSparseShare = 4;

static package::VariantInfo describe(const CodeVariant &variant,
                                     uint32_t section) {
  return {variant.target, variant.machine, variant.features,
          section,        variant.offsets, variant.kernels};
}

static std::span<const std::byte> asBytes(const auto &container) {
  return std::as_bytes(std::span(container));
}

/// Runs `prepare` on the model's weights.
static Status computeConstants(const package::PackageInputs &inputs,
                               package::ProgramParts parts,
                               package::ConstantBytes &constants) {
  parts.variants = {describe(*inputs.host, kFirstCodeSection)};
  std::vector<std::byte> program = package::buildProgram(inputs.module, parts);
  std::vector<const void *> tensors;
  for (const package::ModelTensorInfo &tensor : parts.modelTensors) {
    const Weight *weight = inputs.weights.find(tensor.name);
    tensors.push_back(weight ? weight->bytes.data() : nullptr);
  }
  return runtime::runPrepare(program, /*variant=*/0,
                             asBytes(inputs.host->bytes), tensors,
                             constants.getPointers(), inputs.threads);
}

static package::ProgramParts describe(const package::PackageInputs &inputs,
                                      const package::ConstantBytes &constants) {
  package::ProgramParts parts;
  parts.modelTensors = package::listModelTensors(inputs.module, inputs.weights);
  parts.constants = constants.getPlaces();
  for (auto [place, sources] :
       llvm::zip_equal(parts.constants, package::findSources(inputs.module)))
    place.sources = sources;
  for (auto [place, bytes] :
       llvm::zip_equal(parts.constants, package::countReadBytes(inputs.module)))
    place.isSparse = bytes < place.bytes / kSparseShare;
  for (const CodeVariant &variant : inputs.variants)
    parts.variants.push_back(
        describe(variant, kFirstCodeSection + parts.variants.size()));
  for (const MetadataEntry &entry : inputs.metadata)
    parts.metadata.emplace_back(entry.key, entry.value);
  parts.memoryBudget = inputs.memoryBudget;
  return parts;
}

Status package::writePackage(const PackageInputs &inputs,
                             const std::string &path, uint64_t &weightBytes) {
  ConstantBytes constants(inputs.module, inputs.weights, inputs.embedWeights);
  ProgramParts parts = describe(inputs, constants);
  if (inputs.host)
    if (Status status = computeConstants(inputs, parts, constants);
        !status.ok())
      return status;
  std::vector<runtime::WeightData> weights = constants.layOut(parts.constants);
  weightBytes =
      weights.empty() ? 0 : weights.back().offset + weights.back().bytes.size();

  std::vector<std::byte> program = buildProgram(inputs.module, parts);
  runtime::PackageWriter writer;
  writer.addSection(format::SectionKind::Program, program);
  for (const CodeVariant &variant : inputs.variants)
    writer.addSection(format::SectionKind::Code, asBytes(variant.bytes));
  writer.addWeights(weights);
  writer.addSection(format::SectionKind::Options, asBytes(inputs.options));
  writer.addSection(format::SectionKind::Decisions, asBytes(inputs.decisions));
  return writer.write(path);
}
