// A fault at a place of a rank's work, for tests/training/faults.py, which
// loads this before tcc-run's own libraries (LD_PRELOAD). TCC_FAULT is
// PLACE:ACTION or PLACE:N:ACTION:
//
//   meet      all ranks have met, and this one has said no address
//   call:N    call N of Gloo's ended, whatever it is
//   within:N  half of the first message of all-reduce N is sent
//   after:N   all-reduce N ended
//   count     the number of calls before the first all-reduce is all that is
//             wanted: it is written in place of the time
//
// When the place is reached the time is written to the file TCC_FAULT_FILE, in
// nanoseconds of the monotonic clock. The action `wait` goes on once there is
// the file TCC_FAULT_FILE.go, and writes the time of the day to
// TCC_FAULT_FILE.day.

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dlfcn.h>
#include <string>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

// What the transport calls of Gloo, by its names; arguments are passed on.
extern "C" {
void sumOfGloo(const void *options) __asm__(
    "_ZN4gloo9allreduceERKNS_16AllreduceOptionsE");
void meetOfGloo(void *context, void *store, void *device) __asm__(
    "_ZN4gloo10rendezvous7Context15connectFullMeshERNS0_5StoreERSt10shared_"
    "ptrINS_9transport6DeviceEE");
void gatherOfGloo(void *options) __asm__(
    "_ZN4gloo9allgatherERNS_16AllgatherOptionsE");
void sendOfGloo(void *options) __asm__(
    "_ZN4gloo9broadcastERNS_16BroadcastOptionsE");
void waitOfGloo(void *options) __asm__(
    "_ZN4gloo7barrierERNS_14BarrierOptionsE");
void *__libc_malloc(size_t bytes);
}

static std::atomic<bool> isWithin = false, lacksMemory = false;

static void sleepFor(long milliseconds) {
  timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
  nanosleep(&time, nullptr);
}

/// The test looks for the whole file.
static void note(const std::string &path, long long number) {
  std::string part = path + "." + std::to_string(getpid());
  FILE *file = std::fopen(part.c_str(), "w");
  std::fprintf(file, "%lld", number);
  std::fclose(file);
  std::rename(part.c_str(), path.c_str());
}

static void act(const std::string &action) {
  const std::string path = std::getenv("TCC_FAULT_FILE"), go = path + ".go";
  rlimit none = {};
  setrlimit(RLIMIT_CORE, &none);
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  note(path, now.tv_sec * 1000000000LL + now.tv_nsec);
  if (action == "kill")
    raise(SIGKILL);
  if (action == "stop")
    raise(SIGSTOP);
  if (action == "segfault") {
    std::signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
  }
  if (action == "exit")
    _exit(3);
  if (action == "memory")
    lacksMemory = true;
  if (action == "slow")
    sleepFor(1500);
  while (action == "hang" || (action == "wait" && access(go.c_str(), F_OK)))
    sleepFor(2);
  if (action == "wait")
    note(path + ".day", std::time(nullptr));
}

namespace {

struct Fault {
  std::string place, action;
  long number = 0;

  Fault() {
    const char *given = std::getenv("TCC_FAULT");
    if (!given)
      return;
    std::string text = given;
    size_t first = text.find(':'), last = text.rfind(':');
    place = text.substr(0, first);
    action = text.substr(last + 1);
    if (first != last)
      number = std::atol(text.c_str() + first + 1);
  }
  bool isAt(const char *where, long count) const {
    return place == where && number == count;
  }
};

} // namespace

/// Made by the first call, as malloc is called before constructors.
static const Fault &fault() {
  static const Fault given;
  return given;
}

/// Gloo is of a plugin: not among what is looked up by default.
template <typename Function> static Function *findInGloo(const char *name) {
  void *gloo = dlopen("libgloo.so.0", RTLD_LAZY | RTLD_NOLOAD);
  void *found = gloo ? dlsym(gloo, name) : nullptr;
  if (!found)
    std::abort();
  return reinterpret_cast<Function *>(found);
}

/// One thread at a time makes them.
static long calls = 0, sums = 0;

/// A call of Gloo's that ended.
static void noteCall() {
  if (fault().isAt("call", ++calls))
    act(fault().action);
}

void sumOfGloo(const void *options) {
  static auto sum = findInGloo<void(const void *)>(
      "_ZN4gloo9allreduceERKNS_16AllreduceOptionsE");
  if (++sums == 1 && fault().place == "count")
    note(std::getenv("TCC_FAULT_FILE"), calls);
  isWithin = fault().isAt("within", sums);
  sum(options);
  if (fault().isAt("after", sums))
    act(fault().action);
  noteCall();
}

void gatherOfGloo(void *options) {
  static auto gather =
      findInGloo<void(void *)>("_ZN4gloo9allgatherERNS_16AllgatherOptionsE");
  gather(options);
  noteCall();
}

void sendOfGloo(void *options) {
  static auto send =
      findInGloo<void(void *)>("_ZN4gloo9broadcastERNS_16BroadcastOptionsE");
  send(options);
  noteCall();
}

void waitOfGloo(void *options) {
  static auto wait =
      findInGloo<void(void *)>("_ZN4gloo7barrierERNS_14BarrierOptionsE");
  wait(options);
  noteCall();
}

void meetOfGloo(void *context, void *store, void *device) {
  static auto meet = findInGloo<void(void *, void *, void *)>(
      "_ZN4gloo10rendezvous7Context15connectFullMeshERNS0_5StoreERSt10shared_"
      "ptrINS_9transport6DeviceEE");
  if (fault().isAt("meet", 0))
    act(fault().action);
  meet(context, store, device);
}

/// Half of the first part, as a socket may take; whoever calls sends the rest.
extern "C" ssize_t writev(int file, const iovec *parts, int count) {
  static auto next =
      reinterpret_cast<decltype(&writev)>(dlsym(RTLD_NEXT, "writev"));
  if (!isWithin.exchange(false))
    return next(file, parts, count);
  iovec half = {parts[0].iov_base, (parts[0].iov_len + 1) / 2};
  ssize_t sent = next(file, &half, 1);
  act(fault().action);
  return sent;
}

/// Small blocks are there, as those that were freed before.
extern "C" void *malloc(size_t bytes) {
  constexpr size_t kSmall = 128;
  if (lacksMemory && bytes > kSmall) {
    errno = ENOMEM;
    return nullptr;
  }
  return __libc_malloc(bytes);
}
