//===- Signals.h - What signals ask of a run --------------------*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_SIGNALS_H
#define TCC_TOOLS_TCCRUN_SIGNALS_H

namespace tcc::tools {

/// A process that a signal ended exits with this plus the signal's number.
inline constexpr int kSignalled = 128;

/// What signals asked for since they were last looked at.
struct SignalRequest {
  int stop = 0;       ///< SIGTERM or SIGINT; 0: none. Once asked it stays.
  bool saves = false; ///< SIGUSR1

  bool any() const { return stop != 0 || saves; }
};

/// While one lives, SIGTERM, SIGINT and SIGUSR1 are requests, which the process
/// takes when it can, but for those that it was begun to ignore. A second
/// SIGTERM or SIGINT ends it at once. One at a time.
class SignalGuard {
public:
  SignalGuard();
  ~SignalGuard();
  SignalGuard(const SignalGuard &) = delete;
  SignalGuard &operator=(const SignalGuard &) = delete;

  SignalRequest take();
};

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_SIGNALS_H
