// Holds an address of 32 bits.
#include <cstdint>
extern "C" void kernel(void *const *buffers, const int64_t *, int64_t, int64_t,
                       void *) {
  int64_t at;
  asm("movl $kernel, %k0" : "=r"(at));
  *static_cast<int64_t *>(buffers[1]) = at;
}
