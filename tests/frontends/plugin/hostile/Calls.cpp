// Calls what no package has.
#include <cstdint>
#include <cstdlib>
extern "C" void kernel(void *const *buffers, const int64_t *, int64_t, int64_t,
                       void *) {
  *static_cast<void **>(buffers[1]) = malloc(8);
}
