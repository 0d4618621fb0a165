//===- FakeMachine.h - A machine with nothing to complain of ----*- C++ -*-===//
//
// Files of proc and sys under a folder of its own, calls that answer, and two
// GPUs. Tests break one thing at a time.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_TESTS_TOOLS_TCCRUN_DOCTOR_FAKEMACHINE_H
#define TCC_TESTS_TOOLS_TCCRUN_DOCTOR_FAKEMACHINE_H

#include "tools/tcc-run/doctor/Check.h"
#include "tools/tcc-run/doctor/Machine.h"
#include "gtest/gtest.h"

#include <map>
#include <set>

namespace tcc::tests {

using tools::doctor::Check;
using tools::doctor::Finding;
using tools::doctor::Machine;
using tools::doctor::State;

/// What the fake NVML says of a GPU; `error` in place of all of it.
struct FakeGpu {
  unsigned long long reasons = 0;
  int isPersistent = 1, isEcc = 1, mode = 0;
  unsigned powerLimit = 700000, powerDefault = 700000;
  unsigned long long errors = 0;
  tools::doctor::NvmlMemory memory = {1000, 990, 10};
  tools::doctor::NvmlUse use = {};
  unsigned lanes = 16, mostLanes = 16;
  tools::doctor::NvmlError error = 0;
};

/// One lives at a time.
class FakeMachine {
public:
  FakeMachine();
  ~FakeMachine();

  void write(const std::string &path, const std::string &text);
  void remove(const std::string &path);
  /// Paths of all its files, below the root.
  std::vector<std::string> listFiles() const;
  /// What the check of that name finds.
  Finding examine(std::string_view name) const;
  /// Removes the card and the driver.
  void removeGpus();

  Machine machine;
  std::vector<FakeGpu> gpus;
  int cudaVersion = 13000, computeMajor = 9;
  std::map<std::string, std::string> environment;
  std::set<std::string, std::less<>> cpuFeatures;

private:
  void writeCpus();
  void writeSystem();
  void answerCalls();
};

/// A machine with one thing wrong, and what the check of that name is to say.
struct Case {
  const char *check;
  std::function<void(FakeMachine &)> change;
  State state;
  const char *says; ///< part of what is found
};

/// A change that writes a file, or removes it.
std::function<void(FakeMachine &)> file(std::string path, std::string text);
std::function<void(FakeMachine &)> gone(std::string path);

/// Each case on a machine of its own. What is wrong has advice.
void expectCases(const std::vector<Case> &cases);

/// Each of the checks has a case with a warning or a problem, and one in which
/// it does not know.
void expectComplete(std::span<const Check> checks,
                    const std::vector<Case> &cases);

} // namespace tcc::tests

#endif // TCC_TESTS_TOOLS_TCCRUN_DOCTOR_FAKEMACHINE_H
