#include "compiler/package/ProgramBuilder.h"
#include "compiler/package/EntryBuilder.h"
#include "compiler/package/Enums.h"
#include "compiler/package/LibraryTables.h"
#include "compiler/passes/exec/AddCandidates.h"
#include "compiler/passes/exec/LaunchCost.h"
#include "compiler/target/Target.h"
#include "dialects/exec/KernelHash.h"
#include "dialects/graph/Shape.h"
#include "dialects/graph/Variables.h"
#include "runtime/package/BatchTree.h"
#include "runtime/package/Names.h"

using namespace mlir;

namespace tcc::package {
namespace {

/// Writes the tables of a program.
class ProgramBuilder {
public:
  ProgramBuilder(ModuleOp module, const ProgramParts &parts)
      : module(module), parts(parts) {}

  std::vector<std::byte> build();

private:
  template <typename T> using Tables = std::vector<flatbuffers::Offset<T>>;

  Tables<format::Symbol> buildSymbols();
  Tables<format::ConstTensor> buildConstants();
  Tables<format::ModelTensor> buildModelTensors();
  Tables<format::Variant> buildVariants();
  flatbuffers::Offset<format::Machine> buildMachine();
  Tables<format::Kernel> buildKernels();
  Tables<format::Entry> buildEntries();
  Tables<format::Metadata> buildMetadata();
  flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<format::Piece>>>
  buildPieces(graph::VariableAttr variable);
  Tables<format::Variable> buildVariables();
  Tables<format::Setting> buildSettings();
  Tables<format::EvalMetric> buildMetrics();
  flatbuffers::Offset<format::Evaluation> buildEvaluation();
  flatbuffers::Offset<flatbuffers::String> buildText(StringRef attribute);
  Tables<format::StoredTensor> buildStoredTensors();
  flatbuffers::Offset<format::Spikes> buildSpikes();
  std::vector<StringRef> listOutputs(format::EntryKind kind);

  auto buildDigest(const format::Digest &digest) {
    return fbb.CreateVector(digest.bytes, sizeof(digest.bytes));
  }
  auto buildNumbers(ArrayRef<int64_t> numbers) {
    return fbb.CreateVector(numbers.data(), numbers.size());
  }
  auto buildStrings(const std::vector<std::string> &texts) {
    return fbb.CreateVectorOfStrings(texts);
  }

  ModuleOp module;
  const ProgramParts &parts;
  flatbuffers::FlatBufferBuilder fbb;
  llvm::DenseMap<StringAttr, uint32_t> kernels;
};

} // namespace

ProgramBuilder::Tables<format::Symbol> ProgramBuilder::buildSymbols() {
  Tables<format::Symbol> tables;
  for (graph::SymbolAttr symbol : graph::getSymbols(module)) {
    if (symbol.getIsComputed())
      continue; // commands set its slot
    auto name = fbb.CreateString(symbol.getName().str());
    tables.push_back(format::CreateSymbol(
        fbb, name, symbol.getMin(), symbol.getMax(), symbol.getDivisor()));
  }
  return tables;
}

ProgramBuilder::Tables<format::ConstTensor> ProgramBuilder::buildConstants() {
  Tables<format::ConstTensor> tables;
  for (exec::ConstantOp op : module.getOps<exec::ConstantOp>()) {
    const ConstPlace &place = parts.constants[tables.size()];
    auto type = cast<RankedTensorType>(op.getType());
    auto name = fbb.CreateString(op.getName().str());
    auto shape = fbb.CreateVector(type.getShape().data(), type.getRank());
    auto digest = place.digest
                      ? buildDigest(*place.digest)
                      : flatbuffers::Offset<flatbuffers::Vector<uint8_t>>();
    auto sources = fbb.CreateVector(place.sources);
    tables.push_back(format::CreateConstTensor(
        fbb, name, getDType(type.getElementType()), shape, place.offset,
        place.bytes, digest, sources, place.isSparse));
  }
  return tables;
}

ProgramBuilder::Tables<format::ModelTensor>
ProgramBuilder::buildModelTensors() {
  Tables<format::ModelTensor> tables;
  for (const ModelTensorInfo &tensor : parts.modelTensors) {
    auto name = fbb.CreateString(tensor.name);
    auto shape =
        fbb.CreateVector(tensor.type.getShape().data(), tensor.type.getRank());
    auto digest = tensor.isStructural
                      ? buildDigest(tensor.digest)
                      : flatbuffers::Offset<flatbuffers::Vector<uint8_t>>();
    tables.push_back(format::CreateModelTensor(
        fbb, name, getDType(tensor.type.getElementType()), shape,
        tensor.constIndex, digest));
  }
  return tables;
}

ProgramBuilder::Tables<format::Variant> ProgramBuilder::buildVariants() {
  Tables<format::Variant> tables;
  for (const VariantInfo &variant : parts.variants) {
    auto target = fbb.CreateString(variant.target);
    auto cpu = fbb.CreateString(variant.cpu);
    auto features = buildStrings(variant.features);
    auto offsets = fbb.CreateVector(variant.kernelOffsets);
    flatbuffers::Offset<flatbuffers::Vector<uint32_t>> named;
    if (!variant.kernels.empty())
      named = fbb.CreateVector(variant.kernels);
    tables.push_back(format::CreateVariant(
        fbb, target, cpu, features, variant.imageSection, offsets, named));
  }
  return tables;
}

flatbuffers::Offset<format::Machine> ProgramBuilder::buildMachine() {
  const Machine &machine = getTarget(module).getMachine();
  std::vector<double> rates;
  for (format::Arithmetic arithmetic : format::EnumValuesArithmetic())
    rates.push_back(exec::getFlopsPerMicrosecond(machine, arithmetic));
  auto ratesVector = fbb.CreateVector(rates);
  return format::CreateMachine(fbb, machine.launchMicroseconds,
                               machine.bytesPerMicrosecond, ratesVector);
}

/// What kernels with candidates compute, and these.
static llvm::DenseMap<Operation *, std::string> nameWorks(ModuleOp module) {
  llvm::DenseMap<Operation *, std::string> works;
  SymbolTable symbols(module);
  for (exec::KernelOp kernel : module.getOps<exec::KernelOp>()) {
    if (!kernel.getCandidates())
      continue;
    std::string work = exec::hashOf(kernel);
    works[kernel] = work;
    for (auto name : kernel.getCandidatesAttr().getAsRange<FlatSymbolRefAttr>())
      works[symbols.lookup(name.getValue())] = work;
  }
  return works;
}

ProgramBuilder::Tables<format::Kernel> ProgramBuilder::buildKernels() {
  Tables<format::Kernel> tables;
  llvm::DenseMap<Operation *, std::string> works = nameWorks(module);
  for (exec::KernelOp kernel : module.getOps<exec::KernelOp>()) {
    kernels[kernel.getSymNameAttr()] = tables.size();
    auto symbol = fbb.CreateString(kernel.getSymName().str());
    std::vector<uint8_t> alignments;
    auto fused = cast<graph::FusedOp>(kernel.getComputation());
    for (int64_t bytes : getTarget(kernel).getAlignments(fused))
      alignments.push_back(static_cast<uint8_t>(bytes));
    std::vector<format::DType> results;
    for (Type type : kernel.getComputation()->getResultTypes())
      results.push_back(
          getDType(cast<RankedTensorType>(type).getElementType()));
    auto library = buildLibraryWork(fbb, kernel.getLibraryAttr());
    auto alignmentsVector = fbb.CreateVector(alignments);
    auto resultsVector = fbb.CreateVector(results);
    flatbuffers::Offset<flatbuffers::String> work, plan;
    if (auto found = works.find(kernel); found != works.end()) {
      work = fbb.CreateSharedString(found->second);
      plan = fbb.CreateString(
          printPlan(fused->getAttrOfType<DictionaryAttr>(kPlanAttr)));
    }
    flatbuffers::Offset<flatbuffers::String> entry;
    exec::FinishedCodeAttr finished = kernel.getFinishedAttr();
    if (finished)
      entry = fbb.CreateString(finished.getEntry().str());
    tables.push_back(format::CreateKernel(
        fbb, symbol, kernel.getThreads().value_or(0), alignmentsVector,
        resultsVector, work, plan, library, exec::getArithmetic(kernel), entry,
        finished ? finished.getSharedBytes() : 0));
  }
  return tables;
}

ProgramBuilder::Tables<format::Entry> ProgramBuilder::buildEntries() {
  Tables<format::Entry> tables;
  for (exec::EntryOp entry : module.getOps<exec::EntryOp>())
    tables.push_back(EntryBuilder(fbb, kernels).build(entry));
  return tables;
}

ProgramBuilder::Tables<format::Metadata> ProgramBuilder::buildMetadata() {
  Tables<format::Metadata> tables;
  for (const auto &[key, value] : parts.metadata) {
    auto keyText = fbb.CreateString(key), valueText = fbb.CreateString(value);
    tables.push_back(format::CreateMetadata(fbb, keyText, valueText));
  }
  return tables;
}

flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<format::Piece>>>
ProgramBuilder::buildPieces(graph::VariableAttr variable) {
  if (!variable.getPieces())
    return 0;
  Tables<format::Piece> tables;
  for (auto piece : variable.getPieces().getAsRange<graph::PieceAttr>()) {
    auto name = fbb.CreateString(piece.getName().str());
    auto parameter = fbb.CreateString(piece.getParameter().str());
    auto shape = buildNumbers(piece.getType().getShape());
    tables.push_back(
        format::CreatePiece(fbb, name, parameter, shape, piece.getBegin()));
  }
  return fbb.CreateVector(tables);
}

ProgramBuilder::Tables<format::Variable> ProgramBuilder::buildVariables() {
  Tables<format::Variable> tables;
  for (graph::VariableAttr variable : graph::getVariables(module)) {
    RankedTensorType type = variable.getType();
    auto name = fbb.CreateString(variable.getName().str());
    auto shape = fbb.CreateVector(type.getShape().data(), type.getRank());
    flatbuffers::Offset<flatbuffers::String> parameter;
    if (variable.getParameter())
      parameter = fbb.CreateString(variable.getParameter().str());
    flatbuffers::Offset<flatbuffers::Vector<int64_t>> global, offset;
    if (graph::SliceAttr slice = variable.getSlice()) {
      global = buildNumbers(slice.getShape());
      offset = buildNumbers(slice.getOffset());
    }
    flatbuffers::Optional<format::StepField> field = flatbuffers::nullopt;
    if (variable.getField())
      field = *variable.getField();
    tables.push_back(format::CreateVariable(
        fbb, name, getDType(type.getElementType()), shape, variable.getKind(),
        parameter, field, global, offset, buildPieces(variable),
        variable.getPieces() ? graph::getRanks(module) : 0,
        variable.getRoom() ? variable.getRoom().getInt() : 0));
  }
  return tables;
}

ProgramBuilder::Tables<format::Setting> ProgramBuilder::buildSettings() {
  Tables<format::Setting> tables;
  for (auto [i, variable] : llvm::enumerate(graph::getVariables(module))) {
    graph::SettingAttr setting = variable.getSetting();
    if (!setting)
      continue;
    auto key = fbb.CreateString(setting.getKey().str());
    std::vector<std::string> texts;
    if (setting.getWords())
      for (auto word : setting.getWords().getAsRange<StringAttr>())
        texts.push_back(word.str());
    auto words = buildStrings(texts);
    std::vector<char> initial = getBytes(setting.getInitial());
    auto bytes = fbb.CreateVector(
        reinterpret_cast<const uint8_t *>(initial.data()), initial.size());
    std::optional<format::Range> range;
    if (graph::RangeAttr given = setting.getRange())
      range.emplace(given.getMin().getValueAsDouble(),
                    given.getMax().getValueAsDouble(), given.getOpensAtMin(),
                    given.getOpensAtMax());
    tables.push_back(format::CreateSetting(
        fbb, key, i, range ? &*range : nullptr, words, bytes));
  }
  return tables;
}

/// The names of an entry's outputs; none without it.
std::vector<StringRef> ProgramBuilder::listOutputs(format::EntryKind kind) {
  std::vector<StringRef> names;
  if (auto entry = module.lookupSymbol<exec::EntryOp>(format::nameOf(kind)))
    for (auto output : entry.getOutputs().getAsRange<exec::TensorAttr>())
      names.push_back(output.getName());
  return names;
}

ProgramBuilder::Tables<format::EvalMetric> ProgramBuilder::buildMetrics() {
  Tables<format::EvalMetric> tables;
  auto metrics =
      module->getAttrOfType<ArrayAttr>(graph::GraphDialect::kMetricsAttr);
  if (!metrics)
    return tables;
  std::vector<StringRef> outputs = listOutputs(format::EntryKind::eval);
  for (auto metric : metrics.getAsRange<graph::MetricAttr>()) {
    std::vector<uint32_t> sums;
    for (auto sum : metric.getSums().getAsRange<StringAttr>())
      sums.push_back(llvm::find(outputs, sum.getValue()) - outputs.begin());
    auto name = fbb.CreateString(metric.getName().str());
    tables.push_back(format::CreateEvalMetric(fbb, name, metric.getRule(),
                                              fbb.CreateVector(sums),
                                              metric.getRises()));
  }
  return tables;
}

flatbuffers::Offset<format::Evaluation> ProgramBuilder::buildEvaluation() {
  auto plan = module->getAttrOfType<DictionaryAttr>(
      graph::GraphDialect::kEvaluationAttr);
  if (!plan)
    return {};
  auto number = [&](StringRef name) {
    return uint64_t(plan.getAs<IntegerAttr>(name).getInt());
  };
  auto text = [&](StringRef name) {
    return fbb.CreateString(plan.getAs<StringAttr>(name).str());
  };
  auto data = text("data"), best = text("best");
  return format::CreateEvaluation(fbb, number("every"), data, best,
                                  number("patience"),
                                  plan.getAs<BoolAttr>("ema").getValue());
}

ProgramBuilder::Tables<format::StoredTensor>
ProgramBuilder::buildStoredTensors() {
  Tables<format::StoredTensor> tables;
  auto tensors =
      module->getAttrOfType<ArrayAttr>(graph::GraphDialect::kStoredTensorsAttr);
  if (!tensors)
    return tables;
  auto variables = graph::getVariables(module);
  for (auto tensor : tensors.getAsRange<DictionaryAttr>()) {
    auto name = fbb.CreateString(tensor.getAs<StringAttr>("name").str());
    size_t variable =
        graph::findVariable(variables, tensor.getAs<StringAttr>("variable"));
    tables.push_back(format::CreateStoredTensor(
        fbb, name, variable, tensor.getAs<BoolAttr>("transposed").getValue()));
  }
  return tables;
}

flatbuffers::Offset<format::Spikes> ProgramBuilder::buildSpikes() {
  auto spikes =
      module->getAttrOfType<DictionaryAttr>(graph::GraphDialect::kSpikesAttr);
  if (!spikes)
    return {};
  return format::CreateSpikes(
      fbb, spikes.getAs<FloatAttr>("z").getValueAsDouble(),
      spikes.getAs<IntegerAttr>("rollback_every").getInt());
}

/// The text of an attribute of the module; absent without it.
flatbuffers::Offset<flatbuffers::String>
ProgramBuilder::buildText(StringRef attribute) {
  auto text = module->getAttrOfType<StringAttr>(attribute);
  return text ? fbb.CreateString(text.str())
              : flatbuffers::Offset<flatbuffers::String>();
}

std::vector<std::byte> ProgramBuilder::build() {
  auto producer = fbb.CreateString("tcc " TCC_VERSION);
  auto symbols = fbb.CreateVector(buildSymbols());
  auto constants = fbb.CreateVector(buildConstants());
  auto modelTensors = fbb.CreateVector(buildModelTensors());
  auto kernelTable = fbb.CreateVector(buildKernels());
  auto variants = fbb.CreateVector(buildVariants());
  auto entries = fbb.CreateVector(buildEntries());
  auto metadata = fbb.CreateVector(buildMetadata());
  auto variables = fbb.CreateVector(buildVariables());
  auto settings = fbb.CreateVector(buildSettings());
  auto recipe = buildText(graph::GraphDialect::kRecipeAttr);
  auto metrics = fbb.CreateVector(buildMetrics());
  auto evaluation = buildEvaluation();
  auto stored = fbb.CreateVector(buildStoredTensors());
  auto spikes = buildSpikes();
  auto data = buildText(graph::GraphDialect::kDataAttr);
  auto machine = buildMachine();
  auto exact =
      module->getAttrOfType<IntegerAttr>(graph::GraphDialect::kExactAttr);
  std::vector<std::string> words;
  if (exact)
    words.push_back(format::kExactWord);
  if (graph::getRanks(module) > 0)
    words.push_back(format::kDividedWord);
  if (llvm::any_of(module.getOps<exec::KernelOp>(),
                   [](exec::KernelOp kernel) { return kernel.getFinished(); }))
    words.push_back(format::kKernelCodeWord);
  decltype(buildStrings({})) required;
  if (!words.empty())
    required = buildStrings(words);
  format::FinishProgramBuffer(
      fbb, format::CreateProgram(fbb, producer, symbols, constants,
                                 modelTensors, kernelTable, variants, entries,
                                 metadata, variables, settings, recipe,
                                 required, exact ? uint32_t(exact.getInt()) : 0,
                                 parts.memoryBudget, metrics, evaluation,
                                 stored, spikes, data, machine));
  auto *bytes = reinterpret_cast<const std::byte *>(fbb.GetBufferPointer());
  return {bytes, bytes + fbb.GetSize()};
}

std::vector<std::byte> buildProgram(ModuleOp module,
                                    const ProgramParts &parts) {
  return ProgramBuilder(module, parts).build();
}

} // namespace tcc::package
