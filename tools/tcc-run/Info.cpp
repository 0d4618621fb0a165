#include "tools/tcc-run/Info.h"

#include "runtime/base/CpuFeatures.h"
#include "runtime/package/Commands.h"
#include "runtime/package/LibraryWork.h"
#include "runtime/package/Names.h"
#include "runtime/package/SizeExpr.h"
#include "runtime/train/TensorMatch.h"
#include "tools/cli/MemoryUse.h"
#include "tools/tcc-run/ArenaUse.h"
#include "tools/tcc-run/Json.h"
#include "tools/tcc-run/Session.h"

#include <limits>
#include <nlohmann/json.hpp>

#include <iostream>
#include <map>
#include <sstream>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;
using nlohmann::ordered_json;

/// A dimension: a number, the name of a symbol, or "?" for other expressions.
static ordered_json describeDim(const format::Program &program,
                                const format::SizeExpr &expr) {
  int64_t extent = 0, slot = slotOf(expr);
  if (readsOnlySlotsBelow(expr, 0) && evaluate(expr, nullptr, extent))
    return extent;
  if (slot >= 0 && program.symbols() && slot < program.symbols()->size())
    return program.symbols()->Get(slot)->name()->str();
  return "?";
}

static ordered_json describeSpec(const format::Program &program,
                                 const format::TensorSpec &spec) {
  ordered_json shape = ordered_json::array();
  for (const format::SizeExpr *dim : *spec.shape())
    shape.push_back(describeDim(program, *dim));
  return {{"name", spec.name()->str()},
          {"dtype", traitsOf(spec.dtype()).name},
          {"shape", std::move(shape)}};
}

namespace {

/// What an entry point launches, its dimensions at their upper bounds; loops
/// and both branches of an if count once.
class WorkSum {
public:
  explicit WorkSum(const format::Program &program) : program(program) {
    for (size_t i = 0; program.symbols() && i < program.symbols()->size(); ++i)
      slots.push_back(program.symbols()->Get(i)->max());
  }
  void add(const format::Entry &entry);
  void describe(ordered_json &row) const;

private:
  void add(const format::Launch &launch);
  int64_t evaluateAt(const format::SizeExpr *expr) const;

  const format::Program &program;
  std::vector<int64_t> slots;
  int64_t launches = 0, libraryCalls = 0, flops = 0, bytes = 0;
  ordered_json list = ordered_json::array();
};

} // namespace

int64_t WorkSum::evaluateAt(const format::SizeExpr *expr) const {
  int64_t value = 0;
  return expr && evaluate(*expr, slots.data(), value) ? value : 0;
}

void WorkSum::add(const format::Entry &entry) {
  slots.resize(std::max<size_t>(slots.size(), entry.slot_count()), 1);
  forEachLaunch(*entry.body(),
                [&](const format::Launch &launch) { add(launch); });
}

/// Up to what fits: a package may say anything.
static void addTo(int64_t &sum, int64_t value) {
  if (__builtin_add_overflow(sum, value, &sum))
    sum = std::numeric_limits<int64_t>::max();
}

void WorkSum::add(const format::Launch &launch) {
  const format::Kernel &kernel = *program.kernels()->Get(launch.kernel());
  bool isOfLibrary = kernel.library() && hasKnownKinds(*kernel.library());
  int64_t work = evaluateAt(launch.flops()), moved = evaluateAt(launch.bytes());
  ++launches;
  libraryCalls += isOfLibrary;
  addTo(flops, work);
  addTo(bytes, moved);
  list.push_back({{"kernel", kernel.symbol()->str()},
                  {"node", launch.node() ? launch.node()->str() : ""},
                  {"library", isOfLibrary},
                  {"flops", work},
                  {"bytes", moved}});
}

void WorkSum::describe(ordered_json &row) const {
  row["launches"] = launches;
  row["library_calls"] = libraryCalls;
  row["flops"] = flops;
  row["bytes"] = bytes;
  row["launch_list"] = list;
}

static ordered_json describeEntry(const format::Program &program,
                                  const format::Entry &entry) {
  ordered_json row = {{"name", nameOf(entry)},
                      {"space", format::EnumNameMemorySpace(entry.space())},
                      {"arena_bytes", entry.scratch_bytes()},
                      {"arena_bound_bytes", entry.scratch_bound()},
                      {"worker_scratch_bytes", entry.worker_scratch_bytes()},
                      {"commands", entry.body()->commands()->size()},
                      {"inputs", ordered_json::array()},
                      {"outputs", ordered_json::array()},
                      {"states", ordered_json::array()}};
  WorkSum work(program);
  work.add(entry);
  work.describe(row);
  if (entry.kind() == format::EntryKind::prepare)
    return row; // its inputs and outputs are all the weights
  for (const format::TensorSpec *input : *entry.inputs()) {
    ordered_json spec = describeSpec(program, *input);
    spec["fixed"] = input->fixed() != nullptr;
    row["inputs"].push_back(std::move(spec));
  }
  for (const format::TensorSpec *output : *entry.outputs())
    row["outputs"].push_back(describeSpec(program, *output));
  for (size_t i = 0; entry.states() && i < entry.states()->size(); ++i) {
    const format::StatePair &pair = *entry.states()->Get(i);
    row["states"].push_back(
        {{"input", entry.inputs()->Get(pair.input())->name()->str()},
         {"output", entry.outputs()->Get(pair.output())->name()->str()}});
  }
  return row;
}

static std::string textOf(const flatbuffers::String *text) {
  return text ? text->str() : "";
}

/// The numbers and words that a setting may be.
static ordered_json describeSetting(const format::Program &program,
                                    const format::Setting &setting) {
  const format::Variable &variable =
      *program.variables()->Get(setting.variable());
  size_t bytes = traitsOf(variable.dtype()).bytes;
  ordered_json row = {{"key", setting.key()->str()},
                      {"variable", variable.name()->str()},
                      {"dtype", traitsOf(variable.dtype()).name},
                      {"initial", ordered_json::array()},
                      {"range", nullptr},
                      {"words", ordered_json::array()}};
  const auto *initial =
      reinterpret_cast<const std::byte *>(setting.initial()->data());
  for (size_t at = 0; at < setting.initial()->size(); at += bytes)
    row["initial"].push_back(readScalar(variable.dtype(), initial + at));
  // JSON has no infinity: an end that is none is null.
  if (const format::Range *range = setting.range())
    row["range"] = {{"min", range->min()},
                    {"max", range->max()},
                    {"opens_at_min", range->opens_at_min()},
                    {"opens_at_max", range->opens_at_max()}};
  for (size_t i = 0; setting.words() && i < setting.words()->size(); ++i)
    row["words"].push_back(setting.words()->Get(i)->str());
  return row;
}

static ordered_json describeSettings(const format::Program &program) {
  ordered_json rows = ordered_json::array();
  for (size_t i = 0; program.settings() && i < program.settings()->size(); ++i)
    rows.push_back(describeSetting(program, *program.settings()->Get(i)));
  return rows;
}

/// The tensors in a variable that ranks divide.
static ordered_json describePieces(const format::Variable &variable) {
  ordered_json rows = ordered_json::array();
  for (size_t i = 0; variable.pieces() && i < variable.pieces()->size(); ++i) {
    const format::Piece &piece = *variable.pieces()->Get(i);
    rows.push_back({{"name", piece.name()->str()},
                    {"parameter", textOf(piece.parameter())},
                    {"shape", std::vector<int64_t>(piece.shape()->begin(),
                                                   piece.shape()->end())},
                    {"begin", piece.begin()}});
  }
  return rows;
}

static ordered_json describeVariables(const format::Program &program) {
  ordered_json rows = ordered_json::array();
  for (size_t i = 0; program.variables() && i < program.variables()->size();
       ++i) {
    const format::Variable &variable = *program.variables()->Get(i);
    ordered_json shape = ordered_json::array();
    uint64_t elements = 1;
    for (int64_t extent : *variable.shape()) {
      shape.push_back(extent);
      elements *= extent;
    }
    rows.push_back({{"name", variable.name()->str()},
                    {"kind", format::nameOf(variable.kind())},
                    {"dtype", traitsOf(variable.dtype()).name},
                    {"shape", std::move(shape)},
                    {"parameter", textOf(variable.parameter())},
                    {"field", nullptr},
                    {"slice", nullptr},
                    {"ranks", variable.ranks()},
                    {"pieces", describePieces(variable)},
                    {"elements", elements},
                    {"bytes", elements * traitsOf(variable.dtype()).bytes}});
    if (variable.field())
      rows.back()["field"] = format::nameOf(*variable.field());
    if (variable.global_shape()) // with an offset: verified
      rows.back()["slice"] = {
          {"shape", std::vector<int64_t>(variable.global_shape()->begin(),
                                         variable.global_shape()->end())},
          {"offset", std::vector<int64_t>(variable.offset()->begin(),
                                          variable.offset()->end())}};
  }
  return rows;
}

static ordered_json describeVariants(const format::Program &program) {
  ordered_json rows = ordered_json::array();
  for (const format::Variant *variant : *program.variants()) {
    ordered_json features = ordered_json::array();
    ordered_json missing = ordered_json::array();
    for (size_t i = 0; variant->features() && i < variant->features()->size();
         ++i) {
      std::string name = variant->features()->Get(i)->str();
      if (!hasCpuFeature(name))
        missing.push_back(name);
      features.push_back(std::move(name));
    }
    ordered_json row = {{"target", variant->target()->str()},
                        {"cpu", variant->cpu()->str()},
                        {"features", std::move(features)},
                        {"missing", std::move(missing)},
                        {"kernels", ordered_json::array()}};
    for (size_t i = 0; variant->kernels() && i < variant->kernels()->size();
         ++i)
      row["kernels"].push_back(
          program.kernels()->Get(variant->kernels()->Get(i))->symbol()->str());
    rows.push_back(std::move(row));
  }
  return rows;
}

/// What the compiler decided, JSON; empty if the package does not say.
static std::string readDecisions(const Package &package) {
  for (size_t i = 0; i < package.sections().size(); ++i) {
    if (package.sections()[i].kind != format::SectionKind::Decisions)
      continue;
    if (auto bytes = package.readSection(i); bytes.ok())
      return {reinterpret_cast<const char *>(bytes->data()), bytes->size()};
  }
  return "";
}

static ordered_json describeArenas(const Package &package) {
  std::vector<ArenaUse> arenas;
  for (const format::Entry *entry : *package.program().entries())
    if (entry->kind() != format::EntryKind::prepare)
      arenas.push_back(getArenaUse(*entry));
  return describeMemory(arenas, readRecomputes(readDecisions(package)));
}

ordered_json tools::describePackage(const Package &package) {
  const format::Program &program = package.program();
  ordered_json document = {
      {"schema_version", 1},
      {"format", concat(package.header().majorVersion, ".",
                        package.header().minorVersion)},
      {"producer", program.producer() ? program.producer()->str() : ""},
      {"file_bytes", package.header().fileSize}};
  uint64_t weightBytes = 0;
  bool hasWeights = true;
  size_t weights = program.weights() ? program.weights()->size() : 0;
  for (size_t i = 0; i < weights; ++i) {
    weightBytes += program.weights()->Get(i)->bytes();
    hasWeights &= package.hasWeight(*program.weights()->Get(i));
  }
  document["weights"] = weights;
  document["weight_bytes"] = weightBytes;
  document["has_weights"] = hasWeights;
  document["kernels"] = program.kernels() ? program.kernels()->size() : 0;
  ordered_json dims = ordered_json::array();
  for (size_t i = 0; program.symbols() && i < program.symbols()->size(); ++i) {
    const format::Symbol &symbol = *program.symbols()->Get(i);
    dims.push_back({{"name", symbol.name()->str()},
                    {"min", symbol.min()},
                    {"max", symbol.max()},
                    {"divisor", symbol.divisor()}});
  }
  document["dims"] = std::move(dims);
  for (const format::Entry *entry : *program.entries())
    document["entries"].push_back(describeEntry(program, *entry));
  document["memory"] = describeArenas(package);
  document["variables"] = describeVariables(program);
  document["settings"] = ::describeSettings(program);
  if (program.data())
    document["data"] = program.data()->str();
  document["variants"] = describeVariants(program);
  document["metadata"] = ordered_json::object();
  for (size_t i = 0; program.metadata() && i < program.metadata()->size();
       ++i) {
    const format::Metadata &pair = *program.metadata()->Get(i);
    document["metadata"][pair.key()->str()] =
        pair.value() ? pair.value()->str() : "";
  }
  return document;
}

static void printSpecs(const char *kind, const ordered_json &specs) {
  for (const ordered_json &spec : specs) {
    std::string shape;
    for (const ordered_json &dim : spec["shape"])
      shape += concat(shape.empty() ? "" : "x",
                      dim.is_string() ? dim.get<std::string>() : dim.dump());
    std::cout << "  " << kind << ' ' << spec["name"].get<std::string>() << ": "
              << spec["dtype"].get<std::string>() << ' '
              << (shape.empty() ? "scalar" : shape)
              << (spec.value("fixed", false) ? " (fixed)\n" : "\n");
  }
}

static void printModelVariables(const format::Program &program,
                                const ordered_json &rows) {
  for (size_t i = 0; i < rows.size(); ++i)
    if (const format::Variable &variable = *program.variables()->Get(i);
        isOfModel(variable))
      printSpecs(format::nameOf(variable.kind()),
                 ordered_json::array({rows[i]}));
}

/// The sum of each kind.
static void printVariableSums(std::ostream &out, const ordered_json &rows) {
  struct Sum {
    uint64_t tensors = 0, elements = 0, bytes = 0;
  };
  std::map<std::string, Sum> sums;
  for (const ordered_json &row : rows) {
    Sum &sum = sums[row["kind"].get<std::string>()];
    ++sum.tensors;
    sum.elements += row["elements"].get<uint64_t>();
    sum.bytes += row["bytes"].get<uint64_t>();
  }
  for (const auto &[kind, sum] : sums)
    out << "variables " << kind << ": " << sum.tensors << " tensors, "
        << sum.elements << " elements, " << sum.bytes << " bytes\n";
}

static void printHead(std::ostream &out, const ordered_json &document) {
  out << "tcc package " << document["format"].get<std::string>() << " by "
      << document["producer"].get<std::string>() << ", "
      << document["file_bytes"] << " bytes\n"
      << "weights " << document["weights"] << " (" << document["weight_bytes"]
      << " bytes" << (document["has_weights"] ? ")" : ", not in the package)")
      << ", kernels " << document["kernels"] << '\n';
  for (const ordered_json &dim : document["dims"])
    out << "dim " << dim["name"].get<std::string>() << ": " << dim["min"]
        << ".." << dim["max"] << '\n';
}

static void printEntries(const ordered_json &document) {
  for (const ordered_json &entry : document["entries"]) {
    std::cout << "entry " << entry["name"].get<std::string>()
              << (entry["space"] == "device" ? " on a device: " : ": ")
              << entry["commands"] << " commands, arena "
              << entry["arena_bytes"] << " bytes (bound "
              << entry["arena_bound_bytes"] << "), " << entry["launches"]
              << " launches (" << entry["library_calls"]
              << " that libraries have), " << entry["flops"] << " flops, "
              << entry["bytes"] << " bytes read and written\n";
    printSpecs("input", entry["inputs"]);
    printSpecs("output", entry["outputs"]);
    for (const ordered_json &state : entry["states"])
      std::cout << "  state " << state["output"].get<std::string>() << " -> "
                << state["input"].get<std::string>() << '\n';
  }
}

static void printCode(std::ostream &out, const ordered_json &document) {
  for (const ordered_json &variant : document["variants"]) {
    out << "code for "
        << (variant["target"] == "cpu"
                ? ""
                : variant["target"].get<std::string>() + " ")
        << variant["cpu"].get<std::string>()
        << (variant["missing"].empty()
                ? ""
                : " (this CPU lacks " + variant["missing"].dump() + ")");
    const char *before = ": kernels ";
    for (const ordered_json &kernel : variant["kernels"]) {
      out << before << kernel.get<std::string>();
      before = ", ";
    }
    out << '\n';
  }
}

static void printText(const format::Program &program,
                      const ordered_json &document) {
  printHead(std::cout, document);
  printEntries(document);
  std::cout << printMemory(document["memory"]);
  printModelVariables(program, document["variables"]);
  printVariableSums(std::cout, document["variables"]);
  printCode(std::cout, document);
  for (const auto &[key, value] : document["metadata"].items())
    std::cout << "metadata " << key << ": " << value.get<std::string>().size()
              << " bytes\n";
}

std::string tools::summarize(const Package &package) {
  ordered_json document = describePackage(package);
  std::ostringstream text;
  printHead(text, document);
  text << printMemory(document["memory"]);
  printVariableSums(text, document["variables"]);
  printCode(text, document);
  return text.str();
}

int tools::infoCommand(const RunningOptions &options) {
  auto package = Package::open(options.package);
  if (!package.ok())
    return report(package.takeStatus());
  ordered_json document = describePackage(**package);
  if (options.json)
    printJson(document);
  else
    printText((*package)->program(), document);
  return 0;
}
