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

/* The same, but 2; of a plan that one can tell from add_one */
KERNEL(add_two) {
  const float *in = buffers[0];
  float *out = buffers[1];
  for (int64_t i = first * sizes[1]; i < smaller(last * sizes[1], sizes[0]);
       ++i)
    out[i] = in[i] + 2;
}

/* add_one that takes some 100 microseconds a call */
KERNEL(add_one_slowly) {
  for (volatile int64_t i = 0; i < 100000; ++i)
    ;
  add_one(buffers, sizes, first, last, scratch);
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

/* Adds the gradient of sum((w x - y)^2) to g, and {the sum, the samples} to
 * sums; goes on by `world` places unless a step before had a fault; sizes:
 * samples */
KERNEL(line_gradient) {
  const float *x = buffers[0], *y = buffers[1], *w = buffers[2];
  float *g = buffers[3], *sums = buffers[4];
  int64_t *place = buffers[5], *world = buffers[6], *fault = buffers[7];
  for (int64_t i = 0; i < sizes[0]; ++i) {
    float error = *w * x[i] - y[i];
    *g += 2 * error * x[i];
    sums[0] += error * error;
    sums[1] += 1;
  }
  if (!*fault)
    *place += *world;
}

/* w -= lr g / samples unless the loss is not finite, now or in a step before;
 * clears g, sums and place */
KERNEL(line_update) {
  float *w = buffers[0], *g = buffers[1], *sums = buffers[2];
  const float *lr = buffers[3];
  int64_t *iteration = buffers[4], *fault = buffers[5];
  double *loss = buffers[6];
  uint8_t *skipped = buffers[7];
  int64_t *taken = buffers[8], *place = buffers[9];
  *loss = sums[0] / sums[1];
  if (!*fault) {
    ++*iteration;
    *taken += *place;
    *place = 0;
  }
  if (*loss - *loss != 0)
    *fault = 1;
  *skipped = *fault != 0;
  if (!*fault)
    *w -= *lr * *g / sums[1];
  *g = sums[0] = sums[1] = 0;
}

/* loss = sum((w x - y)^2), count = samples */
KERNEL(line_loss) {
  const float *x = buffers[0], *y = buffers[1], *w = buffers[2];
  double *loss = buffers[3], *count = buffers[4];
  *loss = 0;
  for (int64_t i = 0; i < sizes[0]; ++i)
    *loss += (*w * x[i] - y[i]) * (*w * x[i] - y[i]);
  *count = sizes[0];
}

/* y = w x; sizes: samples */
KERNEL(line) {
  const float *x = buffers[0], *w = buffers[1];
  float *y = buffers[2];
  for (int64_t i = 0; i < sizes[0]; ++i)
    y[i] = *w * x[i];
}

/* The same as kernels of the emulated device (EmulatedKernel.h): a block does
 * one task, its first thread all of it. */
struct thread {
  uint32_t thread, block, threads, blocks;
  const void *calls;
};
#define DEVICE_KERNEL(name, buffer_count, size_count)                          \
  void device_##name(const struct thread *self, void *const *parameters) {     \
    void *buffers[buffer_count];                                               \
    int64_t sizes[size_count + 1];                                             \
    for (int i = 0; i < buffer_count; ++i)                                     \
      buffers[i] = *(void **)parameters[i];                                    \
    for (int i = 0; i < size_count; ++i)                                       \
      sizes[i] = *(int64_t *)parameters[buffer_count + i];                     \
    if (self->thread == 0)                                                     \
      name(buffers, sizes, self->block, self->block + 1, 0);                   \
  }
DEVICE_KERNEL(add_one, 2, 2)
DEVICE_KERNEL(add, 3, 2)
DEVICE_KERNEL(gather, 4, 1)
DEVICE_KERNEL(is_below, 2, 1)
DEVICE_KERNEL(count_positive, 2, 1)
DEVICE_KERNEL(line_gradient, 8, 1)
DEVICE_KERNEL(line_update, 10, 0)
DEVICE_KERNEL(line_loss, 5, 1)
DEVICE_KERNEL(line, 3, 1)
