//===- tcc: compiles models -----------------------------------------------===//

#include "runtime/base/OutputFile.h"
#include "tools/cli/MemoryUse.h"
#include "tools/tcc/CheckPlugin.h"
#include "tools/tcc/Options.h"
#include "tools/tcc/ReportPage.h"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <iostream>

using namespace tcc;
using tools::ToolOptions;

static constexpr int kIoError = 5;
static constexpr int kInternalError = 70;

static nlohmann::ordered_json describe(const MemoryPlan &memory) {
  return {{"constants", memory.constants}, {"variables", memory.variables},
          {"states", memory.states},       {"arena", memory.arena},
          {"workers", memory.workers},     {"workspace", memory.workspace},
          {"faults", memory.faults},       {"passage", memory.passage},
          {"total", memory.getTotal()}};
}

static nlohmann::ordered_json describe(const MessageUse &message) {
  return {{"of", message.of},
          {"bytes", message.bytes},
          {"hiding_us", message.hidingMicroseconds}};
}

static void printJson(const CompileReport &report) {
  nlohmann::ordered_json object = {
      {"schema_version", 1},
      {"ops", report.ops},
      {"kernels", report.kernels},
      {"library_calls", report.libraryCalls},
      {"launches", report.launches},
      {"arena_bytes", report.arenaBytes},
      {"arena_bound_bytes", report.arenaBoundBytes},
      {"weight_bytes", report.weightBytes},
      {"flops", report.flops},
      {"bytes", report.bytes},
      {"seconds", report.seconds},
      {"cache", {{"hits", report.cacheHits}, {"misses", report.cacheMisses}}},
      {"memory_bytes", describe(report.memory)},
      {"recomputed_share", report.recomputedShare},
      {"memory", tools::describeMemory(report.arenas, report.recomputes)}};
  if (report.memoryOfRanks)
    object["memory_bytes_of_ranks"] = describe(*report.memoryOfRanks);
  for (const MessageUse &message : report.messages)
    object["messages"].push_back(describe(message));
  if (report.microBatch > 0)
    object["micro_batch"] = report.microBatch;
  // Names are the model's: bytes that are no UTF-8 become U+FFFD.
  constexpr auto kReplace = nlohmann::ordered_json::error_handler_t::replace;
  std::cout << object.dump(-1, ' ', false, kReplace) << '\n';
}

static void printSummary(const ToolOptions &options,
                         const CompileReport &report) {
  double gap = report.arenaBoundBytes
                   ? 100.0 *
                         double(report.arenaBytes - report.arenaBoundBytes) /
                         double(report.arenaBoundBytes)
                   : 0.0;
  std::printf(
      "%s: %lld ops, %lld kernels, %lld library calls, arena %lld bytes "
      "(bound %lld, gap %.1f %%), weights %lld bytes, %lld launches move "
      "%lld bytes, %.2f s\n",
      options.compile.output.c_str(), (long long)report.ops,
      (long long)report.kernels, (long long)report.libraryCalls,
      (long long)report.arenaBytes, (long long)report.arenaBoundBytes, gap,
      (long long)report.weightBytes, (long long)report.launches,
      (long long)report.bytes, report.seconds);
}

/// What ranks exchange in an update, and what hides it.
static void printMessages(const std::vector<MessageUse> &messages) {
  for (const MessageUse &message : messages)
    std::printf("ranks add up %lld bytes beside about %.0f us of work: %s\n",
                (long long)message.bytes, message.hidingMicroseconds,
                message.of.c_str());
}

/// What is planned of memory, and what keeping to a budget costs.
static void printMemory(const CompileReport &report) {
  const MemoryPlan &memory = report.memory;
  std::printf(
      "memory %lld bytes: arena %lld, constants %lld, variables %lld, "
      "states %lld, scratch of threads %lld, of libraries %lld, of a device's "
      "faults and copies %lld; %.2f %% of the time to compute values again\n",
      (long long)memory.getTotal(), (long long)memory.arena,
      (long long)memory.constants, (long long)memory.variables,
      (long long)memory.states, (long long)memory.workers,
      (long long)memory.workspace, (long long)(memory.faults + memory.passage),
      100 * report.recomputedShare);
  if (report.memoryOfRanks)
    std::printf("memory of each of several ranks %lld bytes\n",
                (long long)report.memoryOfRanks->getTotal());
  std::cout << tools::printMemory(
      tools::describeMemory(report.arenas, report.recomputes));
}

/// Says why if the file cannot be written.
static bool writeFile(const std::string &path, const std::string &text) {
  auto file = runtime::OutputFile::create(path);
  runtime::Status status = file.ok() ? runtime::Status() : file.takeStatus();
  if (status.ok()) {
    file->write(text);
    status = file->commit();
  }
  if (!status.ok())
    std::cerr << "tcc: " << status.message() << '\n';
  return status.ok();
}

static void printMessages(const ToolOptions &options,
                          const CompileReport &report) {
  for (const std::string &problem : report.problems)
    std::cerr << "tcc: " << problem << '\n';
  if (!options.quiet) {
    for (const std::string &note : report.notes)
      std::cerr << "tcc: note: " << note << '\n';
    for (const std::string &line : report.parameters)
      std::cerr << line << '\n';
  }
  if (report.exitCode != kInternalError)
    return;
  if (report.problems.empty())
    std::cerr << "tcc: internal error\n";
  std::string path = options.compile.output + ".reproducer.mlir";
  if (!report.reproducer.empty() && writeFile(path, report.reproducer))
    std::cerr << "tcc: note: the module is in " << path
              << "; please report this\n";
}

static void printPhases(const CompileReport &report) {
  for (const auto &[phase, seconds] : report.phases)
    std::fprintf(stderr, "tcc: %s took %.3f s\n", phase.c_str(), seconds);
  if (report.cacheHits + report.cacheMisses > 0)
    std::fprintf(stderr,
                 "tcc: code of %lld kernels from the cache, of %lld made\n",
                 (long long)report.cacheHits, (long long)report.cacheMisses);
}

int main(int argc, char **argv) {
  ToolOptions options;
  if (std::optional<int> code = tools::parseOptions(argc, argv, options))
    return *code;
  if (!options.checkedPlugin.empty())
    return tools::checkPlugin(options.checkedPlugin, options.compile,
                              options.quiet);

  CompileReport report = compile(options.compile);
  printMessages(options, report);
  if (options.verbose)
    printPhases(report);
  if (!options.dumpDecisions.empty() && !report.decisions.empty() &&
      !writeFile(options.dumpDecisions, report.decisions + "\n"))
    return kIoError;
  if (report.exitCode != 0)
    return report.exitCode;
  if (!options.reportFile.empty() &&
      !writeFile(options.reportFile,
                 tools::makeReportPage(options.compile, report)))
    return kIoError;
  bool isPackage = options.compile.artifact == Artifact::Package &&
                   options.compile.stopAfter.empty();
  if (options.json)
    printJson(report);
  else if (isPackage && !options.quiet)
    printSummary(options, report);
  bool hasBudget = !options.compile.memoryBudget.empty();
  if (hasBudget && !options.json && !options.quiet &&
      options.compile.output != "-")
    printMemory(report);
  bool isCheck = options.compile.stopAfter == "plan";
  if (isCheck && !options.json && !options.quiet)
    printMessages(report.messages);
  return 0;
}
