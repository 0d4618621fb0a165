// Has code that it may write, and no global kernel.
#include <cstdint>
asm(".section .patched,\"awx\",@progbits\nret\n.previous");
__attribute__((used)) static void kernel(void *const *, const int64_t *,
                                         int64_t, int64_t, void *) {}
