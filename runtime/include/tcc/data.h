/*===- tcc/data.h - The C API of the data loader ---------------*- C -*-===//
 *
 * Batches for a training session from files, or from samples of your own, read
 * ahead by threads of the loader:
 *
 *   tcc_loader *loader;
 *   tcc_loader_open("data.toml", tensors, 2, NULL, &loader);
 *   for (int64_t number = 0; number < last; ++number) {
 *     tcc_loader_read(loader, number, 1, batch);
 *     tcc_session_step(session, batch, 2, &metrics);
 *   }
 *
 * Its library is libtcc_data; status and thread rules are those of
 * tcc/runtime.h. Which bytes a batch has is a function of the data, the seed
 * and its number alone: a run that goes on asks for the next number,
 * tcc_session_batch_number, and W ranks for each W-th.
 *
 *===----------------------------------------------------------------------===*/
#ifndef TCC_DATA_H
#define TCC_DATA_H

#include "tcc/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tcc_loader tcc_loader;

/* A tensor of a batch. */
typedef struct tcc_loader_tensor {
  const char *name; /* of the array or field that it is read from, unless the
                       data say otherwise */
  tcc_dtype dtype;
  size_t rank;
  const int64_t *shape; /* shape[0] samples, as many for all tensors */
  tcc_input_role role;  /* as tcc_session_input_role gives it */
  /* Of a session whose batches have several sizes the shapes in each variant,
   * in place of `shape`: variants[i][0] samples, variants[i][1] numbers and so
   * on. Batches are of the smallest one that their samples fit, and numbers of
   * a sample that it has not are data.pad. 0: `shape` alone. */
  size_t variant_count;
  const int64_t *const *variants;
} tcc_loader_tensor;

typedef enum tcc_loader_phase {
  TCC_LOADER_TRAIN =
      0,          /* transforms of [data.train], weights, in random order */
  TCC_LOADER_EVAL /* transforms of [data.eval], all samples as they lie */
} tcc_loader_phase;

typedef struct tcc_loader_options {
  size_t struct_size; /* sizeof(tcc_loader_options) */
  tcc_loader_phase phase;
  uint64_t seed;        /* of the order and of what transforms draw */
  int32_t keeps_order;  /* nonzero: samples as they lie, in training too */
  size_t setting_count; /* "KEY=VALUE", keys of [data]: "workers=2" */
  const char *const *settings;
  const char *plan; /* keys of [data] as TOML, which hold unless `data` or a
                       setting says otherwise, as tcc_session_data gives those
                       of the recipe; NULL: none */
} tcc_loader_options;

/* Opens what `tcc-run train --data` takes: a source, such as
 * "webdataset:train-{000..123}.tar", or a file of a plan, "data.toml"; NULL is
 * the source of options->plan. The arguments are copied; `options` may be NULL.
 */
TCC_API tcc_status tcc_loader_open(const char *data,
                                   const tcc_loader_tensor *tensors,
                                   size_t count,
                                   const tcc_loader_options *options,
                                   tcc_loader **loader);

/* Samples of your own. Threads of the loader call `read` at once, for different
 * samples, and no function after `release`, which may be NULL. */
typedef struct tcc_sample_source {
  size_t struct_size; /* sizeof(tcc_sample_source) */
  void *user;
  int64_t sample_count; /* of an epoch */
  /* Writes sample `number`, below the count, as it is in that epoch, whole:
   * parts[i] has the bytes[i] bytes of one sample of tensor i. Returns NULL, or
   * a failure of tcc_status_create, which the loader frees. TCC_BAD_DATA is
   * that of a damaged sample: see data.on_bad. */
  tcc_status (*read)(void *user, int64_t epoch, int64_t number,
                     void *const *parts, const size_t *bytes, size_t count);
  void (*release)(void *user);
  /* The bytes that a sample needs of the largest part of each tensor; 0: all.
   * NULL: all samples need all, and tensors have no variants. Threads call it
   * at once. `read` fills up what its parts have beside. */
  tcc_status (*needs)(void *user, int64_t number, size_t *bytes, size_t count);
} tcc_sample_source;

/* Of settings those of threads and damaged samples apply. Where it fails
 * `release` has been called. */
TCC_API tcc_status tcc_loader_open_source(const tcc_sample_source *source,
                                          const tcc_loader_tensor *tensors,
                                          size_t count,
                                          const tcc_loader_options *options,
                                          tcc_loader **loader);

/* Waits for samples that are being read. */
TCC_API void tcc_loader_release(tcc_loader *loader);

/*===- Reading ------------------------------------------------- [exclusive] */

TCC_API int64_t tcc_loader_sample_count(const tcc_loader *loader);
/* What does not fill a batch at the end of an epoch is left out; with a tensor
 * "sample_weight" of f32 other samples fill it up, with weights of 0. */
TCC_API int64_t tcc_loader_batches_per_epoch(const tcc_loader *loader);

/* Reads batch `number` of all epochs one after the other, and fills `tensors`,
 * as many as the loader has, with views of it that are valid until the next
 * call. What is likely to be asked for next are number + stride, number + 2 *
 * stride and so on: the number of ranks that share batches, or 1. */
TCC_API tcc_status tcc_loader_read(tcc_loader *loader, int64_t number,
                                   int64_t stride, tcc_tensor *tensors);

/* How many threads fewer should work on batches, so that those of the loader
 * have a CPU: what updates have shown to be faster. See
 * tcc_session_spare_threads. */
TCC_API int32_t tcc_loader_spared_threads(const tcc_loader *loader);

/* Seconds that the calls of tcc_loader_read have taken. */
TCC_API double tcc_loader_wait_seconds(const tcc_loader *loader);

/* How many damaged samples were skipped, each counted once. */
TCC_API int64_t tcc_loader_skipped_count(const tcc_loader *loader);
/* What is wrong with one of the first ten of them, each told once, until the
 * next call; NULL if there are no more. */
TCC_API const char *tcc_loader_next_problem(tcc_loader *loader);

#ifdef __cplusplus
}
#endif

#endif /* TCC_DATA_H */
