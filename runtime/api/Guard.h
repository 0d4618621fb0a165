//===- Guard.h - The border of the C API ------------------------*- C++ -*-===//
//
// What the libraries of the C API share: each calls tcc_status_create of
// libtcc_runtime.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_RUNTIME_API_GUARD_H
#define TCC_RUNTIME_API_GUARD_H

#include "runtime/base/Status.h"
#include "runtime/package/DType.h"
#include "tcc/runtime.h"

#include <algorithm>
#include <exception>
#include <new>
#include <optional>

namespace tcc::runtime {

/// Null for success.
inline tcc_status toHandle(const Status &status) {
  if (status.ok())
    return nullptr;
  return tcc_status_create(static_cast<tcc_code>(status.code()),
                           std::string(status.message()).c_str());
}

/// Runs `body`, which returns a Status; nothing is thrown across the C API.
template <typename Body> tcc_status guard(Body body) noexcept {
  try {
    return toHandle(body());
  } catch (const std::bad_alloc &) {
    return tcc_status_create(TCC_OUT_OF_MEMORY, "out of memory");
  } catch (const std::exception &error) {
    return tcc_status_create(TCC_INTERNAL, error.what());
  } catch (...) {
    return tcc_status_create(TCC_INTERNAL, "a hook threw what is no exception");
  }
}

/// Nothing for a value of the caller that is no dtype.
inline std::optional<DType> toDType(tcc_dtype dtype) {
  auto value = static_cast<unsigned>(dtype);
  if (value > static_cast<unsigned>(DType::MAX))
    return std::nullopt;
  return static_cast<DType>(value);
}

/// The options as far as the caller's version of the struct has them; the rest
/// is zero.
template <typename Options> Options readOptions(const Options *options) {
  Options known = {};
  if (options)
    __builtin_memcpy(&known, options,
                     std::min(options->struct_size, sizeof(known)));
  return known;
}

} // namespace tcc::runtime

#endif // TCC_RUNTIME_API_GUARD_H
