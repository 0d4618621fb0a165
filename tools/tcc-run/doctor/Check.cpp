#include "tools/tcc-run/doctor/Check.h"

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::tools::doctor;

const char *doctor::nameOf(State state) {
  switch (state) {
  case State::Ok:
    return "ok";
  case State::Unknown:
    return "unknown";
  case State::Warning:
    return "warning";
  case State::Problem:
    return "problem";
  }
  return "unknown";
}

Finding doctor::ok(std::string found) {
  return {State::Ok, std::move(found), {}, {}};
}

Finding doctor::warning(std::string found, std::string recommended,
                        std::string command) {
  return {State::Warning, std::move(found), std::move(recommended),
          std::move(command)};
}

Finding doctor::problem(std::string found, std::string recommended,
                        std::string command) {
  return {State::Problem, std::move(found), std::move(recommended),
          std::move(command)};
}

Finding doctor::unknown(std::string_view reason) {
  return {State::Unknown, std::string(reason), {}, {}};
}

Finding doctor::unknown(const runtime::Status &reason) {
  return unknown(reason.message());
}

std::vector<Check> doctor::listChecks() {
  std::vector<Check> checks;
  for (std::span<const Check> topic :
       {driverChecks(), gpuChecks(), cpuChecks(), systemChecks(),
        memoryChecks(), storageChecks(), rankChecks()})
    checks.insert(checks.end(), topic.begin(), topic.end());
  return checks;
}

std::vector<Examination> doctor::examine(const Machine &machine) {
  std::vector<Examination> results;
  for (const Check &check : listChecks())
    results.push_back({check, check.examine(machine)});
  return results;
}
