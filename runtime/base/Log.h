//===- Log.h - Where messages go --------------------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_BASE_LOG_H
#define TCC_RUNTIME_BASE_LOG_H

#include <string>

namespace tcc::runtime {

enum class LogLevel : int { Debug = 0, Info = 1, Warning = 2 };

/// An embedder's sink; without one messages are dropped. Errors are statuses,
/// never messages. `write` is called from the thread that made the API call.
struct LogSink {
  void *user = nullptr;
  void (*write)(void *user, int level, const char *message) = nullptr;

  void operator()(LogLevel level, const std::string &message) const {
    if (write)
      write(user, static_cast<int>(level), message.c_str());
  }
};

} // namespace tcc::runtime

#endif // TCC_RUNTIME_BASE_LOG_H
