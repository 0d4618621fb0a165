//===- Tunings.h - What was measured of ways to do one thing ----*- C++ -*-===//
//
// Works that there are several ways to do, by names that tell everything on
// which the fastest way depends: device, versions, types, sizes, strides. Ways
// are those of a library, or the plans of a kernel (format.Kernel.plan).
//
//===----------------------------------------------------------------------===//
#ifndef TCC_RUNTIME_PACKAGE_TUNINGS_H
#define TCC_RUNTIME_PACKAGE_TUNINGS_H

#include "runtime/base/Status.h"
#include "runtime/package/Format.h"

#include <cstdint>
#include <map>
#include <span>
#include <string>

namespace tcc::runtime {

/// One way to do some work.
struct Tuning {
  static constexpr int64_t kKernel = -1; ///< the package's own kernel
  int64_t way = kKernel;                 ///< else the library's way, from 0
  double microseconds = 0;
  std::string plan = {}; ///< of the package's kernel, if it has several
};

/// What was measured of a work, in the order of measurement.
struct Measurement {
  std::string work;
  Tuning tuning;
};

/// The fastest way of each work.
class Tunings {
public:
  /// A text of lines WAY TAB MICROSECONDS TAB WORK; WAY is a number, "kernel"
  /// or a plan in braces. Empty lines and those that begin with # say nothing.
  /// Of a work the last line counts, so that files can be joined.
  static Result<Tunings> read(const std::string &path);
  Status write(const std::string &path) const;

  /// Null if nothing is known of it.
  const Tuning *find(std::string_view work) const;
  void set(std::string_view work, const Tuning &tuning);
  size_t size() const { return byWork.size(); }
  /// The plan of the kernel of that hash (format.Kernel.work). Of several works
  /// that it has, those by so many threads of `cpu` count, if there are any,
  /// and of these the longest. Empty: not known.
  std::string findPlan(std::string_view hash, std::string_view cpu,
                       int threads) const;
  /// The digest of the text that was read; zero if none was.
  const format::Digest &digest() const { return readDigest; }

private:
  format::Digest readDigest = {};
  std::map<std::string, Tuning, std::less<>> byWork;
};

/// The work of the kernel of that hash at `sizes`, by so many threads of
/// `device`, which begins with the CPU's name.
std::string nameKernelWork(std::string_view hash,
                           std::span<const int64_t> sizes,
                           std::string_view device, int threads);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_PACKAGE_TUNINGS_H
