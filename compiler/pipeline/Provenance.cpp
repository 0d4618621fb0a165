#include "compiler/pipeline/Provenance.h"

#include "compiler/decisions/Decisions.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include <map>

using namespace tcc;
using llvm::json::Array;
using llvm::json::Object;
using llvm::json::Value;

static std::string print(Value value) {
  return llvm::formatv("{0}", value).str();
}

static Object describeCpus(llvm::ArrayRef<cpu::Cpu> cpus) {
  Object object;
  for (const cpu::Cpu &cpu : cpus)
    object[cpu.name] = Array(cpu.features);
  return object;
}

static Object describeImport(const ImportOptions &options) {
  Object dims, sizes, shapes, values, states;
  for (const DimBinding &dim : options.dims) {
    dims[dim.name] = Array{dim.min, dim.max, dim.step};
    if (!dim.sizes.empty())
      sizes[dim.name] = Array(dim.sizes);
  }
  for (const InputShape &shape : options.inputShapes)
    shapes[shape.name] = Array(shape.extents);
  for (const InputValue &value : options.inputValues)
    values[value.name] = value.text;
  for (const StatePair &state : options.states)
    states[state.output] = state.input;
  return Object{
      {"dim", std::move(dims)},           {"sizes", std::move(sizes)},
      {"input_shape", std::move(shapes)}, {"input_value", std::move(values)},
      {"output", Array(options.outputs)}, {"state", std::move(states)}};
}

/// Fields of packages for which they were given alone.
static constexpr llvm::StringLiteral kCandidates = "candidates",
                                     kTuneCache = "tune_cache",
                                     kBounds = "bound", kPlugins = "plugins",
                                     kLengths = "input_length";
/// The length of an optional that is absent.
static constexpr int64_t kAbsent = -1;

std::string tcc::describeOptions(const CompileOptions &options,
                                 const Machines &machines,
                                 llvm::ArrayRef<PluginRecord> plugins,
                                 const runtime::Tunings *tunings) {
  Object object = describeImport(options.import);
  object["producer"] = "tcc " TCC_VERSION;
  object["cpu"] = describeCpus(machines.cpus);
  object["target"] = options.target;
  object["arch"] =
      machines.device ? Array(machines.device->getMachines()) : Array();
  object["emulation"] = int64_t(options.emulation);
  object["precision"] = getName(options.precision);
  object["grad_of"] = options.gradientOf;
  object["wrt"] = Array(options.gradientWrt);
  if (options.candidates > 1)
    object[kCandidates] = options.candidates;
  Object bounds, lengths;
  for (const InputLength &length : options.import.inputLengths)
    lengths[length.name] = length.count.value_or(kAbsent);
  if (!lengths.empty())
    object[kLengths] = std::move(lengths);
  for (const SizeBound &bound : options.import.bounds)
    bounds[bound.name] = bound.max;
  if (!bounds.empty())
    object[kBounds] = std::move(bounds);
  Array libraries;
  for (const PluginRecord &plugin : plugins)
    libraries.push_back(Object{{"name", plugin.name},
                               {"version", plugin.version},
                               {"digest", plugin.digest}});
  if (!libraries.empty())
    object[kPlugins] = std::move(libraries);
  if (tunings)
    object[kTuneCache] =
        llvm::toHex(tunings->digest().bytes, /*LowerCase=*/true);
  return print(std::move(object));
}

namespace tcc {
/// The overload by which ObjectMapper reads a plugin's record.
static bool fromJSON(const Value &value, PluginRecord &plugin,
                     llvm::json::Path path) {
  llvm::json::ObjectMapper fields(value, path);
  return fields && fields.map("name", plugin.name) &&
         fields.map("version", plugin.version) &&
         fields.map("digest", plugin.digest);
}
} // namespace tcc

bool tcc::readOptions(llvm::StringRef record, CompileOptions &options,
                      std::vector<PluginRecord> &plugins) {
  auto value = llvm::json::parse(record);
  if (!value) {
    llvm::consumeError(value.takeError());
    return false;
  }
  std::map<std::string, std::vector<int64_t>> dims, sizes, shapes;
  std::map<std::string, int64_t> bounds, lengths;
  std::map<std::string, std::string> values, states;
  std::map<std::string, std::vector<std::string>> cpus;
  std::string producer, precision;
  std::vector<std::string> archs;
  int64_t emulation = 0;
  llvm::json::Path::Root root;
  llvm::json::ObjectMapper fields(*value, root);
  constexpr size_t kFields = 14;
  const Object *object = value->getAsObject();
  auto has = [&](llvm::StringRef field) {
    return size_t(object->get(field) != nullptr);
  };
  std::string tuneCache; // other plans have the same results
  if (!fields ||
      object->size() - has(kCandidates) - has(kTuneCache) - has(kBounds) -
              has(kPlugins) - has(kLengths) !=
          kFields ||
      !fields.mapOptional(kBounds, bounds) ||
      !fields.mapOptional(kLengths, lengths) ||
      !fields.mapOptional(kPlugins, plugins) ||
      !fields.mapOptional(kCandidates, options.candidates) ||
      !fields.mapOptional(kTuneCache, tuneCache) || !fields.map("dim", dims) ||
      !fields.map("sizes", sizes) || !fields.map("input_shape", shapes) ||
      !fields.map("input_value", values) || !fields.map("state", states) ||
      !fields.map("output", options.import.outputs) ||
      !fields.map("cpu", cpus) || !fields.map("producer", producer) ||
      !fields.map("precision", precision) ||
      !fields.map("target", options.target) || !fields.map("arch", archs) ||
      !fields.map("emulation", emulation) ||
      !fields.map("grad_of", options.gradientOf) ||
      !fields.map("wrt", options.gradientWrt) || !findPrecision(precision))
    return false;
  if (emulation < 0 || emulation > int64_t(Emulation::Race))
    return false;
  options.emulation = Emulation(emulation);
  if (!archs.empty())
    options.archs = archs;
  options.precision = *findPrecision(precision);
  for (const auto &[name, range] : dims) {
    if (range.size() != 3)
      return false;
    options.import.dims.push_back(
        {name, range[0], range[1], range[2], sizes[name]});
  }
  for (const auto &[name, extents] : shapes)
    options.import.inputShapes.push_back({name, extents});
  for (const auto &[name, text] : values)
    options.import.inputValues.push_back({name, text});
  for (const auto &[name, count] : lengths)
    options.import.inputLengths.push_back(
        {name, count == kAbsent ? std::nullopt : std::optional(count)});
  for (const auto &[name, max] : bounds)
    options.import.bounds.push_back({name, max});
  for (const auto &[output, input] : states)
    options.import.states.push_back({output, input});
  options.cpus.clear();
  for (const auto &[name, features] : cpus)
    options.cpus.push_back(name);
  return true;
}

std::string tcc::describeDecisions(mlir::ModuleOp module) {
  Array decisions;
  for (const Decision &decision : getDecisions(module)) {
    Object numbers;
    for (const auto &[name, value] : decision.numbers)
      numbers[name] = value;
    Object row{{"pass", decision.pass},
               {"node", decision.node},
               {"decision", decision.decision},
               {"reason", decision.reason},
               {"numbers", std::move(numbers)}};
    if (!decision.entry.empty())
      row["entry"] = decision.entry;
    decisions.push_back(std::move(row));
  }
  return print(std::move(decisions));
}
