//===- Names.h - Names of entries and variables -----------------*- C++ -*-===//
#ifndef TCC_RUNTIME_PACKAGE_NAMES_H
#define TCC_RUNTIME_PACKAGE_NAMES_H

#include "runtime/package/Names_generated.h"

#include <optional>
#include <string>
#include <string_view>

namespace tcc::format {

/// The name of an entry point, and of the function that it is compiled from.
inline const char *nameOf(EntryKind kind) { return EnumNameEntryKind(kind); }

/// "train_step", "train_step.2": each variant of a kind has another name.
inline std::string nameOf(EntryKind kind, uint16_t variant) {
  std::string name = nameOf(kind);
  return variant ? name + "." + std::to_string(variant) : name;
}

struct Entry;
std::string nameOf(const Entry &entry);

inline const char *nameOf(Phase phase) { return EnumNamePhase(phase); }
inline const char *nameOf(VariableKind kind) {
  return EnumNameVariableKind(kind);
}
inline const char *nameOf(StepField field) { return EnumNameStepField(field); }
inline const char *nameOf(Metric metric) { return EnumNameMetric(metric); }
inline const char *nameOf(WorkKind kind) { return EnumNameWorkKind(kind); }
inline const char *nameOf(StepKind kind) { return EnumNameStepKind(kind); }
inline const char *nameOf(MetricRule rule) { return EnumNameMetricRule(rule); }

/// The variable that holds the field.
inline std::string variableOf(StepField field) {
  return std::string("step/") + nameOf(field);
}

/// What an entry point is by its name.
struct EntryName {
  EntryKind kind;
  uint16_t variant;
};
std::optional<EntryName> parseEntryName(std::string_view name);

/// The kind of an entry point that has this name.
inline std::optional<EntryKind> findEntryKind(std::string_view name) {
  auto parsed = parseEntryName(name);
  return parsed ? std::optional(parsed->kind) : std::nullopt;
}

} // namespace tcc::format

#endif // TCC_RUNTIME_PACKAGE_NAMES_H
