// memcpy and memmove for kernels, which mostly copy rows of some dozens of
// bytes: linked in place of those of the C library, whose string instructions
// take tens of cycles to start. Sizes up to 32 bytes are two accesses that may
// overlap; larger ones go 32 bytes at a time, and the last 32 overlap what was
// copied before.

#include <stddef.h>
#include <stdint.h>

using Vector = char __attribute__((vector_size(16)));
struct Pair {
  Vector low, high;
};

// Above this many bytes the processor's own loop is as fast or faster.
static const size_t kLarge = 2048;

template <typename T> static inline T load(const char *from) {
  T value;
  __builtin_memcpy(&value, from, sizeof(T)); // an access of any alignment
  return value;
}
template <typename T> static inline void store(char *to, T value) {
  __builtin_memcpy(to, &value, sizeof(T));
}

// Loads both before it stores either: the places may overlap.
template <typename T>
static inline void copyEnds(char *to, const char *from, size_t bytes) {
  T first = load<T>(from), last = load<T>(from + bytes - sizeof(T));
  store(to, first);
  store(to + bytes - sizeof(T), last);
}

// Up to 32 bytes, of places that may overlap.
static inline void copyFew(char *to, const char *from, size_t bytes) {
  if (bytes >= sizeof(Vector))
    copyEnds<Vector>(to, from, bytes);
  else if (bytes >= sizeof(uint64_t))
    copyEnds<uint64_t>(to, from, bytes);
  else if (bytes >= sizeof(uint32_t))
    copyEnds<uint32_t>(to, from, bytes);
  else if (bytes >= sizeof(uint16_t))
    copyEnds<uint16_t>(to, from, bytes);
  else if (bytes == 1)
    *to = *from;
}

// More than 32 bytes, from the first to the last: `to` may overlap what comes
// before it.
static inline void copyForward(char *to, const char *from, size_t bytes) {
  if (bytes > kLarge) {
    asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
    return;
  }
  Pair last = load<Pair>(from + bytes - sizeof(Pair));
  char *lastPlace = to + bytes - sizeof(Pair);
  for (; to < lastPlace; to += sizeof(Pair), from += sizeof(Pair))
    store(to, load<Pair>(from));
  store(lastPlace, last);
}

static inline void copyBackward(char *to, const char *from, size_t bytes) {
  Pair first = load<Pair>(from);
  for (; bytes > sizeof(Pair); bytes -= sizeof(Pair))
    store(to + bytes - sizeof(Pair), load<Pair>(from + bytes - sizeof(Pair)));
  store(to, first);
}

extern "C" void *memcpy(void *to, const void *from, size_t bytes) {
  auto *target = static_cast<char *>(to);
  const auto *source = static_cast<const char *>(from);
  if (bytes <= sizeof(Pair))
    copyFew(target, source, bytes);
  else
    copyForward(target, source, bytes);
  return to;
}

extern "C" void *memmove(void *to, const void *from, size_t bytes) {
  auto *target = static_cast<char *>(to);
  const auto *source = static_cast<const char *>(from);
  if (bytes <= sizeof(Pair))
    copyFew(target, source, bytes);
  else if (uintptr_t(target) - uintptr_t(source) >= bytes)
    copyForward(target, source, bytes);
  else
    copyBackward(target, source, bytes);
  return to;
}
