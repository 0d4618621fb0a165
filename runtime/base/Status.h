//===- Status.h - Errors as values ------------------------------*- C++ -*-===//
//
// Every runtime call that can fail returns a Status or a Result. A message
// names the place, what was found and what was expected; lower case, no period.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_RUNTIME_BASE_STATUS_H
#define TCC_RUNTIME_BASE_STATUS_H

#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

namespace tcc::runtime {

/// What went wrong; the values are the exit codes of the tools.
enum class Code : int {
  Ok = 0,
  Mismatch = 1,    ///< a comparison or gate failed
  Usage = 2,       ///< unknown name, wrong shape or dtype, index out of range
  BadData = 3,     ///< bad bytes in a package, tensor or weights file
  Unsupported = 4, ///< an op or feature that is not there
  Io = 5,          ///< missing file, full disk
  Numerics = 6,    ///< a non-finite value where the policy is to stop
  OutOfMemory = 7, ///< needed more than is available
  Device = 8,      ///< a device, driver or CPU feature is missing
  Peer = 9,        ///< another rank failed
  Internal = 70,   ///< a defect of tcc itself
};

/// Success costs nothing and never allocates.
class [[nodiscard]] Status {
public:
  Status() = default;
  Status(Code code, std::string message)
      : failure(new Failure{code, std::move(message)}) {}

  bool ok() const { return !failure; }
  Code code() const { return failure ? failure->code : Code::Ok; }
  std::string_view message() const {
    return failure ? std::string_view(failure->message) : std::string_view();
  }

private:
  struct Failure {
    Code code;
    std::string message;
  };
  std::unique_ptr<Failure> failure;
};

/// A value, or why there is none.
template <typename T> class [[nodiscard]] Result {
public:
  Result(T value) : content(std::move(value)) {}
  Result(Status failure) : content(std::move(failure)) {}

  bool ok() const { return std::holds_alternative<T>(content); }
  T &operator*() { return std::get<T>(content); }
  T *operator->() { return &std::get<T>(content); }
  Status takeStatus() { return std::move(std::get<Status>(content)); }

private:
  std::variant<T, Status> content;
};

/// One string of the parts: text as it is, numbers in decimal.
template <typename... Parts> std::string concat(const Parts &...parts) {
  std::string text;
  auto append = [&text](const auto &part) {
    if constexpr (std::is_convertible_v<decltype(part), std::string_view>)
      text += std::string_view(part);
    else
      text += std::to_string(part);
  };
  (append(parts), ...);
  return text;
}

template <typename... Parts>
Status makeError(Code code, const Parts &...parts) {
  return Status(code, concat(parts...));
}

} // namespace tcc::runtime

#endif // TCC_RUNTIME_BASE_STATUS_H
