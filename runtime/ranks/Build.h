//===- Build.h - Which build of the runtime a rank is -----------*- C++ -*-===//
#ifndef TCC_RUNTIME_RANKS_BUILD_H
#define TCC_RUNTIME_RANKS_BUILD_H

#include <string>

namespace tcc::runtime {

/// The longest name of a build, as ranks exchange it: the first word of all
/// versions, so it never changes.
inline constexpr size_t kBuildBytes = 64;

/// "tcc 0.1.0, wire 2.95b1c0de": builds of one name understand what ranks of
/// the other say.
std::string nameBuild();

} // namespace tcc::runtime

#endif // TCC_RUNTIME_RANKS_BUILD_H
