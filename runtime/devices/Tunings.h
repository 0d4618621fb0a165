//===- Tunings.h - What was measured of ways to do one thing ----*- C++ -*-===//
//
// Works that libraries have several ways to do, by names that tell everything
// on which the fastest way depends: device, versions, types, sizes, strides.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_RUNTIME_DEVICES_TUNINGS_H
#define TCC_RUNTIME_DEVICES_TUNINGS_H

#include "runtime/base/Status.h"

#include <cstdint>
#include <map>
#include <string>

namespace tcc::runtime {

/// One way to do some work.
struct Tuning {
  static constexpr int64_t kKernel = -1; ///< the package's own kernel
  int64_t way = kKernel;                 ///< else the library's way, from 0
  double microseconds = 0;
};

/// What was measured of a work, in the order of measurement.
struct Measurement {
  std::string work;
  Tuning tuning;
};

/// The fastest way of each work.
class Tunings {
public:
  /// A text of lines WAY TAB MICROSECONDS TAB WORK; WAY is a number or
  /// "kernel". Empty lines and those that begin with # say nothing. Of a work
  /// the last line counts, so that files can be joined.
  static Result<Tunings> read(const std::string &path);
  Status write(const std::string &path) const;

  /// Null if nothing is known of it.
  const Tuning *find(std::string_view work) const;
  void set(std::string_view work, const Tuning &tuning);
  size_t size() const { return byWork.size(); }

private:
  std::map<std::string, Tuning, std::less<>> byWork;
};

} // namespace tcc::runtime

#endif // TCC_RUNTIME_DEVICES_TUNINGS_H
