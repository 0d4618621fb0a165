//===- EventFile.h - Reads event files strictly -----------------*- C++ -*-===//
#ifndef TCC_TESTS_TOOLS_TCCRUN_EVENTFILE_H
#define TCC_TESTS_TOOLS_TCCRUN_EVENTFILE_H

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tcc::tests {

struct Event {
  double time = 0;
  int64_t step = 0;
  std::string version; ///< of a file; else empty
  bool isStart = false;
  // Values by their tags, of each plugin.
  std::map<std::string, double> numbers;
  std::map<std::string, std::string> texts;
  std::map<std::string, std::vector<double>> histograms;
};

struct EventFile {
  std::vector<Event> events;
  size_t size = 0; ///< bytes of them: what comes after is no whole record
};

/// Throws where a sum, a field or a type is another than expected.
EventFile readEvents(std::string_view bytes);

} // namespace tcc::tests

#endif // TCC_TESTS_TOOLS_TCCRUN_EVENTFILE_H
