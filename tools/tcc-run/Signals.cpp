#include "tools/tcc-run/Signals.h"

#include <atomic>
#include <csignal>

using namespace tcc::tools;

static constexpr int kStops[] = {SIGTERM, SIGINT};

// All that a handler may touch.
static std::atomic<int> askedStop = 0;
static std::atomic<bool> askedSave = false;
static_assert(std::atomic<int>::is_always_lock_free &&
              std::atomic<bool>::is_always_lock_free);

/// What whoever began the process has it ignore it does ignore.
static void setHandler(int signal, void (*handler)(int)) {
  struct sigaction action = {};
  sigaction(signal, nullptr, &action);
  if (action.sa_handler == SIG_IGN)
    return;
  action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigaction(signal, &action, nullptr);
}

/// Two threads may each be in it with one of two signals.
static void noteStop(int signal) {
  for (int stop : kStops)
    setHandler(stop, SIG_DFL);
  if (askedStop.exchange(signal) != 0)
    raise(signal);
}

static void noteSave(int) { askedSave = true; }

SignalGuard::SignalGuard() {
  askedStop = 0;
  askedSave = false;
  for (int stop : kStops)
    setHandler(stop, noteStop);
  setHandler(SIGUSR1, noteSave);
}

SignalGuard::~SignalGuard() {
  for (int signal : {SIGTERM, SIGINT, SIGUSR1})
    setHandler(signal, SIG_DFL);
}

SignalRequest SignalGuard::take() {
  return {askedStop, askedSave.exchange(false)};
}
