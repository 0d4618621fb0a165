/* Runs a package on zeros and prints the first values of each output.
 *
 *   embed_c MODEL.tcc
 */
#include <tcc/runtime.h>

#include <stdio.h>
#include <stdlib.h>

enum { MAX_RANK = 16 };

/* Prints a failure, and returns the exit code for it. */
static int report(tcc_status status) {
  int code = tcc_status_code(status);
  fprintf(stderr, "%s\n", tcc_status_message(status));
  tcc_status_free(status);
  return code;
}

/* Binds zeros of the smallest shape; the caller frees `*data`. An input that is
 * not bound for want of memory or rank fails in run, by name. */
static tcc_status bind_zeros(tcc_context *context, const tcc_tensor_spec *spec,
                             size_t index, void **data) {
  int64_t shape[MAX_RANK];
  size_t count = 1;
  if (spec->rank > MAX_RANK)
    return NULL;
  for (size_t axis = 0; axis < spec->rank; ++axis) {
    const tcc_dim *dim = &spec->dims[axis];
    shape[axis] = dim->symbol ? dim->min : dim->extent;
    count *= (size_t)shape[axis];
  }
  *data = calloc(count + 1, tcc_dtype_size(spec->dtype));
  if (!*data)
    return NULL;
  tcc_tensor tensor = {*data, spec->dtype, spec->rank, shape};
  return tcc_context_bind_input(context, index, &tensor);
}

static tcc_status print_output(tcc_context *context,
                               const tcc_tensor_spec *spec, size_t index) {
  tcc_tensor tensor;
  tcc_status status = tcc_context_output(context, index, &tensor);
  if (status)
    return status;
  size_t count = 1;
  printf("%s: %s", spec->name, tcc_dtype_name(tensor.dtype));
  for (size_t axis = 0; axis < tensor.rank; ++axis) {
    printf("%c%lld", axis ? 'x' : ' ', (long long)tensor.shape[axis]);
    count *= (size_t)tensor.shape[axis];
  }
  if (tensor.dtype == TCC_F32)
    for (size_t i = 0; i < count && i < 4; ++i)
      printf(" %g", ((const float *)tensor.data)[i]);
  printf("\n");
  return NULL;
}

static tcc_status run(tcc_program *program, tcc_context *context,
                      void **inputs) {
  tcc_status status = NULL;
  size_t input_count = tcc_program_input_count(program);
  for (size_t i = 0; i < input_count && !status; ++i) {
    const tcc_tensor_spec *spec = tcc_program_input(program, i);
    if (!spec->is_fixed && spec->state < 0)
      status = bind_zeros(context, spec, i, &inputs[i]);
  }
  if (!status)
    status = tcc_context_run(context);
  size_t output_count = tcc_program_output_count(program);
  for (size_t i = 0; i < output_count && !status; ++i)
    status = print_output(context, tcc_program_output(program, i), i);
  return status;
}

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: embed_c MODEL.tcc\n");
    return 2;
  }
  tcc_package *package = NULL;
  tcc_program *program = NULL;
  tcc_context *context = NULL;
  void **inputs = NULL;
  size_t input_count = 0;
  tcc_status status = tcc_package_open(argv[1], NULL, &package);
  if (!status)
    status = tcc_program_create(package, NULL, &program);
  if (!status)
    status = tcc_context_create(program, NULL, &context);
  if (!status) {
    input_count = tcc_program_input_count(program);
    inputs = calloc(input_count + 1, sizeof(*inputs));
    if (!inputs)
      abort();
    status = run(program, context, inputs);
  }
  int code = status ? report(status) : 0;
  tcc_context_release(context);
  for (size_t i = 0; i < input_count; ++i)
    free(inputs[i]);
  free(inputs);
  tcc_program_release(program);
  tcc_package_release(package);
  return code;
}
