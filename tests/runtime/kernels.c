/* Kernels of the test packages, in the ABI of runtime/package/Format.h. Built
 * as the compiler builds images: no libraries, relative relocations only. */
#include <stdint.h>

#define KERNEL(name)                                                           \
  void name(void *const *buffers, const int64_t *sizes, int64_t first,         \
            int64_t last, void *scratch)

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* out[i] = in[i] + 1 for sizes[0] floats, sizes[1] of them per task */
KERNEL(add_one) {
  const float *in = buffers[0];
  float *out = buffers[1];
  for (int64_t i = first * sizes[1]; i < smaller(last * sizes[1], sizes[0]);
       ++i)
    out[i] = in[i] + 1;
}

/* out = a + b */
KERNEL(add) {
  const float *a = buffers[0], *b = buffers[1];
  float *out = buffers[2];
  for (int64_t i = first * sizes[1]; i < smaller(last * sizes[1], sizes[0]);
       ++i)
    out[i] = a[i] + b[i];
}

static float twice(float x) { return x * 2; }
static float negated(float x) { return -x; }
/* Pointers in data: the image gets relative relocations. */
static float (*volatile functions[2])(float) = {twice, negated};

/* out[i] = functions[sizes[1]](in[i]), one task */
KERNEL(call_by_table) {
  const float *in = buffers[0];
  float *out = buffers[1];
  for (int64_t i = 0; i < sizes[0]; ++i)
    out[i] = functions[sizes[1]](in[i]);
}

/* out[i] = table[index[i]]; sizes: rows of the table; a task per element */
KERNEL(gather) {
  const float *table = buffers[0];
  const int64_t *index = buffers[1];
  float *out = buffers[2];
  int64_t *fault = buffers[3];
  for (int64_t i = first; i < last; ++i) {
    if (index[i] < 0 || index[i] >= sizes[0]) {
      fault[0] = 1;
      fault[1] = index[i];
      continue;
    }
    out[i] = table[index[i]];
  }
}

/* partial[task] = sum of sizes[0] floats, through the worker's scratch */
KERNEL(partial_sums) {
  const float *in = buffers[0];
  float *partial = buffers[1], *sum = scratch;
  for (int64_t task = first; task < last; ++task) {
    *sum = 0;
    for (int64_t i = 0; i < sizes[0]; ++i)
      *sum += in[task * sizes[0] + i];
    partial[task] = *sum;
  }
}

/* out = sum of sizes[0] floats, one task */
KERNEL(final_sum) {
  const float *in = buffers[0];
  float sum = 0;
  for (int64_t i = 0; i < sizes[0]; ++i)
    sum += in[i];
  *(float *)buffers[1] = sum;
}

/* condition = in[0] < sizes[0] */
KERNEL(is_below) {
  *(uint8_t *)buffers[1] = *(const float *)buffers[0] < (float)sizes[0];
}

/* out = the number of positive ones among sizes[0] floats, as i64 */
KERNEL(count_positive) {
  const float *in = buffers[0];
  int64_t count = 0;
  for (int64_t i = 0; i < sizes[0]; ++i)
    count += in[i] > 0;
  *(int64_t *)buffers[1] = count;
}
