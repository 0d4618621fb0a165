//===- Check.h - What is looked at, and what was found ----------*- C++ -*-===//
//
// A check is a row: a name, why it matters, and a function of a machine's
// facts. Each topic has a file with its rows; listChecks has them all.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_TOOLS_TCCRUN_DOCTOR_CHECK_H
#define TCC_TOOLS_TCCRUN_DOCTOR_CHECK_H

#include "runtime/base/Status.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tcc::tools::doctor {

struct Machine;

/// The worse, the larger; what is not known may be anything.
enum class State : uint8_t { Ok, Unknown, Warning, Problem };

/// "ok", "unknown", "warning" or "problem".
const char *nameOf(State state);

struct Finding {
  State state = State::Ok;
  std::string found;       ///< of State::Unknown: why it is not known
  std::string recommended; ///< empty: nothing
  std::string command;     ///< a line for a shell; empty: none does it
};

Finding ok(std::string found);
Finding warning(std::string found, std::string recommended,
                std::string command = {});
Finding problem(std::string found, std::string recommended,
                std::string command = {});
Finding unknown(std::string_view reason);
Finding unknown(const runtime::Status &reason);

struct Check {
  const char *name;
  const char *why; ///< what it changes for who trains or runs models
  Finding (*examine)(const Machine &machine);
};

// The checks of each topic.
std::span<const Check> gpuChecks();
std::span<const Check> driverChecks();
std::span<const Check> cpuChecks();
std::span<const Check> systemChecks();
std::span<const Check> memoryChecks();
std::span<const Check> storageChecks();
std::span<const Check> rankChecks();

/// All of them, by topic.
std::vector<Check> listChecks();

struct Examination {
  Check check;
  Finding finding;
};

/// Makes all checks, in their order.
std::vector<Examination> examine(const Machine &machine);

} // namespace tcc::tools::doctor

#endif // TCC_TOOLS_TCCRUN_DOCTOR_CHECK_H
