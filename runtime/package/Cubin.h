//===- Cubin.h - Machine code of GPUs ---------------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_PACKAGE_CUBIN_H
#define TCC_RUNTIME_PACKAGE_CUBIN_H

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace tcc::runtime {

/// The GPUs that a cubin is for, as NVIDIA's tools name them: "sm_90" runs on
/// those of its major version from its minor one on, "sm_90a" on that one
/// alone, "sm_100f" where "sm_100" does.
struct CubinTarget {
  int major = 0, minor = 0;
  bool isExact = false;

  bool runsOn(int deviceMajor, int deviceMinor) const {
    return major == deviceMajor &&
           (isExact ? minor == deviceMinor : minor <= deviceMinor);
  }
  int number() const { return 10 * major + minor; }
};

/// Nullopt if `name` is no such name.
std::optional<CubinTarget> parseCubinTarget(std::string_view name);

/// Whether the bytes are a cubin all of whose headers, segments, sections and
/// names lie inside them: a driver that loads one is not told how long it is.
bool isWholeCubin(std::span<const std::byte> bytes);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_PACKAGE_CUBIN_H
