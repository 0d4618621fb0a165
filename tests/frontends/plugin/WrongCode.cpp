// Kernels that are wrong, each in one way.
#include <cstdint>

using Buffers = void *const *;

static const float *in(Buffers buffers) {
  return static_cast<const float *>(buffers[0]);
}
static float *out(Buffers buffers) { return static_cast<float *>(buffers[1]); }

extern "C" void thrice(Buffers b, const int64_t *n, int64_t, int64_t, void *) {
  for (int64_t i = 0; i < n[0]; ++i)
    out(b)[i] = 3 * in(b)[i];
}

extern "C" void beyond(Buffers b, const int64_t *n, int64_t, int64_t, void *) {
  for (int64_t i = 0; i <= n[0]; ++i)
    out(b)[i] = 2 * in(b)[i];
}

extern "C" void reads_on(Buffers b, const int64_t *n, int64_t, int64_t,
                         void *) {
  for (int64_t i = 0; i < n[0]; ++i)
    out(b)[i] = in(b)[i] + in(b)[i + 1];
}

extern "C" void leaves_last(Buffers b, const int64_t *n, int64_t, int64_t,
                            void *) {
  for (int64_t i = 0; i + 1 < n[0]; ++i)
    out(b)[i] = 2 * in(b)[i];
}

// Depends on where a thread's range begins.
extern "C" void by_range(Buffers b, const int64_t *, int64_t first,
                         int64_t last, void *) {
  for (int64_t i = first; i < last; ++i)
    out(b)[i] = in(b)[i] + float(last - first);
}

extern "C" void twice(Buffers b, const int64_t *n, int64_t, int64_t, void *) {
  for (int64_t i = 0; i < n[0]; ++i)
    out(b)[i] = 2 * in(b)[i];
}
