/*===- tcc/runtime.h - The C API of the tcc runtime ---------------*- C -*-===//
 *
 * A package (.tcc) is opened, made a program for this machine, and run by
 * contexts:
 *
 *   tcc_package *package;  tcc_program *program;  tcc_context *context;
 *   tcc_package_open("model.tcc", NULL, &package);
 *   tcc_program_create(package, NULL, &program);
 *   tcc_context_create(program, NULL, &context);
 *   tcc_context_bind_input(context, 0, &input);
 *   tcc_context_run(context);
 *   tcc_context_output(context, 0, &output);
 *
 * A package compiled with --train has sessions instead of contexts.
 *
 * Every call that can fail returns a tcc_status: NULL is success, anything else
 * must be freed. Thread rules are given at each group of functions:
 *   [shared]    any thread at any time, also concurrently on one object
 *   [exclusive] one thread at a time on one object
 * Objects keep what they were made of alive: releasing a package while its
 * programs live is fine. Strings and specs that a call returns live as long as
 * the object they were asked of.
 *
 *===----------------------------------------------------------------------===*/
#ifndef TCC_RUNTIME_H
#define TCC_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define TCC_API __attribute__((visibility("default")))
#else
#define TCC_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/*===- Status ------------------------------------------------------ [shared] */

typedef struct tcc_status_s *tcc_status;

/* The codes are the exit codes of the tools. */
typedef enum tcc_code {
  TCC_OK = 0,
  TCC_MISMATCH = 1,
  TCC_USAGE = 2,    /* unknown name, wrong shape or dtype, bad index */
  TCC_BAD_DATA = 3, /* bad bytes in a file */
  TCC_UNSUPPORTED = 4,
  TCC_IO = 5,       /* missing file, full disk */
  TCC_NUMERICS = 6, /* a loss or gradient is not finite */
  TCC_OUT_OF_MEMORY = 7,
  TCC_DEVICE = 8, /* a device or CPU feature is missing */
  TCC_PEER = 9,
  TCC_INTERNAL = 70
} tcc_code;

TCC_API tcc_code tcc_status_code(tcc_status status); /* of NULL: TCC_OK */
TCC_API const char *tcc_status_message(tcc_status status);
TCC_API void tcc_status_free(tcc_status status);
/* A failure, for functions that you give the library; the message is copied. */
TCC_API tcc_status tcc_status_create(tcc_code code, const char *message);
TCC_API const char *tcc_version(void);

/*===- Hooks --------------------------------------------------------------- */

/* Copied when an object is created; must stay callable while it lives. */
typedef struct tcc_allocator {
  void *user;
  void *(*allocate)(void *user, size_t bytes, size_t alignment);
  void (*release)(void *user, void *address, size_t bytes);
} tcc_allocator;

typedef enum tcc_log_level {
  TCC_LOG_DEBUG = 0,
  TCC_LOG_INFO = 1,
  TCC_LOG_WARNING = 2
} tcc_log_level;

typedef struct tcc_log_sink {
  void *user;
  /* `level` is a tcc_log_level. */
  void (*write)(void *user, int level, const char *message);
} tcc_log_sink;

/* Runs the tasks [first, last) as worker `worker`. */
typedef void (*tcc_task)(void *argument, int64_t first, int64_t last,
                         int32_t worker);

/* A pool of the embedder. `run` calls `task` for all of [0, tasks) once, in
 * ranges of at most `grain`, with 0 <= worker < threads and no two calls with
 * one worker number at a time, and returns when all are done. */
typedef struct tcc_thread_pool {
  void *user;
  int32_t threads;
  void (*run)(void *user, int64_t tasks, int64_t grain, tcc_task task,
              void *argument);
} tcc_thread_pool;

/*===- Packages ---------------------------------------------------- [shared] */

typedef struct tcc_package tcc_package;

typedef struct tcc_package_options {
  size_t struct_size;        /* sizeof(tcc_package_options) */
  int32_t skip_weight_check; /* nonzero: trust the digests of the weights */
} tcc_package_options;

TCC_API tcc_status tcc_package_open(const char *path,
                                    const tcc_package_options *options,
                                    tcc_package **package);
TCC_API void tcc_package_release(tcc_package *package);

/* Metadata of the model, as it was. */
TCC_API size_t tcc_package_metadata_count(const tcc_package *package);
TCC_API const char *tcc_package_metadata_key(const tcc_package *package,
                                             size_t index);
TCC_API const char *tcc_package_metadata_value(const tcc_package *package,
                                               size_t index);
/* The value of a key; NULL if it is absent. */
TCC_API const char *tcc_package_find_metadata(const tcc_package *package,
                                              const char *key);

/*===- Programs ---------------------------------------------------- [shared] */

typedef enum tcc_dtype {
  TCC_F32 = 0,
  TCC_F16,
  TCC_BF16,
  TCC_F64,
  TCC_I8,
  TCC_I16,
  TCC_I32,
  TCC_I64,
  TCC_U8,
  TCC_U16,
  TCC_U32,
  TCC_U64,
  TCC_BOOL
} tcc_dtype;

TCC_API size_t tcc_dtype_size(tcc_dtype dtype);
TCC_API const char *tcc_dtype_name(tcc_dtype dtype);

/* One dimension of an input or output. */
typedef struct tcc_dim {
  int64_t extent;     /* -1 if it depends on symbolic dimensions or the data */
  int64_t min, max;   /* of a symbol; else both are `extent` */
  const char *symbol; /* name of the symbol it is; NULL for anything else */
} tcc_dim;

typedef struct tcc_tensor_spec {
  const char *name;
  tcc_dtype dtype;
  size_t rank;
  const tcc_dim *dims;
  int32_t state;    /* inputs: the output that becomes this input of the next
                       run; outputs: the input it becomes; else -1 */
  int32_t is_fixed; /* an input that must have the value it was compiled for;
                       it need not be bound */
} tcc_tensor_spec;

typedef struct tcc_program tcc_program;

typedef struct tcc_program_options {
  size_t struct_size;       /* sizeof(tcc_program_options) */
  const char *weights_file; /* safetensors that replace weights; or NULL */
  int32_t threads;          /* that recompute constants from them; 0: one */
  const tcc_allocator *allocator;
  const tcc_log_sink *log;
  const char *device;     /* "cpu", "cuda", "cuda:1"; NULL: the package's */
  const char *tune_cache; /* what tcc-run tune wrote; or NULL */
} tcc_program_options;

/* Maps the best code for this CPU, or loads it and the weights on a device.
 * `options` may be NULL. */
TCC_API tcc_status tcc_program_create(const tcc_package *package,
                                      const tcc_program_options *options,
                                      tcc_program **program);
TCC_API void tcc_program_release(tcc_program *program);

/* The signature of the model, trained or not. */
TCC_API size_t tcc_program_input_count(const tcc_program *program);
TCC_API size_t tcc_program_output_count(const tcc_program *program);
/* NULL if there is no such input or output. */
TCC_API const tcc_tensor_spec *tcc_program_input(const tcc_program *program,
                                                 size_t index);
TCC_API const tcc_tensor_spec *tcc_program_output(const tcc_program *program,
                                                  size_t index);
/* The position of a name; -1 if it is absent. */
TCC_API ptrdiff_t tcc_program_find_input(const tcc_program *program,
                                         const char *name);
TCC_API ptrdiff_t tcc_program_find_output(const tcc_program *program,
                                          const char *name);
/* Variants of the model, each at a place of the lists of sizes that it was
 * compiled for (tcc --dim batch=32,16,8); at least 1. What is said above is of
 * variant 0: the others differ in extents alone. */
TCC_API size_t tcc_program_variant_count(const tcc_program *program);
TCC_API const tcc_tensor_spec *
tcc_program_variant_input(const tcc_program *program, size_t variant,
                          size_t index);
TCC_API const tcc_tensor_spec *
tcc_program_variant_output(const tcc_program *program, size_t variant,
                           size_t index);

/*===- Contexts ------------------------------------------------- [exclusive] */

/* A dense row-major tensor; `data` must be aligned to its element. */
typedef struct tcc_tensor {
  void *data;
  tcc_dtype dtype;
  size_t rank;
  const int64_t *shape;
} tcc_tensor;

typedef struct tcc_context tcc_context;

typedef struct tcc_context_options {
  size_t struct_size; /* sizeof(tcc_context_options) */
  int32_t threads;    /* 0: min(affinity, CPU quota of the control group) */
  const tcc_thread_pool *pool; /* replaces the context's own threads */
  const tcc_allocator *allocator;
} tcc_context_options;

/* Allocates all memory that runs need, but that of outputs that nothing is
 * bound to: the first run does. `options` may be NULL. */
TCC_API tcc_status tcc_context_create(const tcc_program *program,
                                      const tcc_context_options *options,
                                      tcc_context **context);
TCC_API void tcc_context_release(tcc_context *context);

/* All calls that follow are of a variant of the program, 0 at first; each has
 * bindings and outputs of its own, and all share the arena. */
TCC_API tcc_status tcc_context_set_variant(tcc_context *context,
                                           size_t variant);
/* The same with the one that takes `inputs`, all those of the program. Only
 * their shapes are read. */
TCC_API tcc_status tcc_context_choose_variant(tcc_context *context,
                                              const tcc_tensor *inputs,
                                              size_t count);

/* Each later run reads `tensor->data`, of the host's memory, which must stay
 * valid: in place on the cpu, by a copy for each run on a device. A state input
 * copies its first value now. Symbolic dimensions follow from the bound
 * shapes. */
TCC_API tcc_status tcc_context_bind_input(tcc_context *context, size_t index,
                                          const tcc_tensor *tensor);
/* Each later run writes its result there, memory of the host; unbound outputs
 * get memory of the context, of the host too. Where the extents depend on the
 * data, `bytes` must be enough for their upper bounds. */
TCC_API tcc_status tcc_context_bind_output(tcc_context *context, size_t index,
                                           void *data, size_t bytes);

/* DLPack (dlpack.h): tensors in memory of the host or of the CUDA device that
 * the program runs on, there at multiples of 64, dense and row-major. They are
 * borrowed, not consumed: `tensor` must outlive the binding. An output's tensor
 * has the extents of the result, as far as they are known before the run. */
struct DLManagedTensor;
TCC_API tcc_status tcc_context_bind_input_dlpack(
    tcc_context *context, size_t index, const struct DLManagedTensor *tensor);
TCC_API tcc_status tcc_context_bind_output_dlpack(
    tcc_context *context, size_t index, const struct DLManagedTensor *tensor);

/* Needed only for a symbolic dimension that no bound shape tells. */
TCC_API tcc_status tcc_context_set_dim(tcc_context *context, const char *name,
                                       int64_t value);

/* Allocates nothing once the bindings are unchanged. After a failure outputs
 * and states are undefined until tcc_context_reset_state. */
TCC_API tcc_status tcc_context_run(tcc_context *context);

/* For programs on a CUDA device: `stream` is the caller's CUstream (or
 * cudaStream_t) of that device's primary context, NULL the legacy default
 * stream. It is borrowed: it must outlive its use here, which ends when the
 * context is released or given another one, and may not be capturing a graph.
 *   - Each later run, and each first value of a state that a device tensor is
 *     bound to, begins after all work that was enqueued in the stream before
 *     the call: tensors of the device that are bound need not be ready on the
 *     host's side.
 *   - Work that is enqueued there after tcc_context_start has returned begins
 *     after the run: it may read the outputs bound on the device, and
 *     overwrite the inputs.
 * Without a stream nothing is ordered with the caller's streams: what runs read
 * must be ready when they are called. TCC_USAGE on the cpu. */
TCC_API tcc_status tcc_context_set_stream(tcc_context *context, void *stream);

/* A run in two parts. `start` returns once a device was given the run: what
 * inputs are bound to in the host's memory may change then. `finish` waits for
 * it and returns what run would, bad indices too. Between the two all calls on
 * the context but finish, release and reset_state are TCC_USAGE. On the cpu
 * `start` does it all. */
TCC_API tcc_status tcc_context_start(tcc_context *context);
TCC_API tcc_status tcc_context_finish(tcc_context *context);

/* The last run's output, valid until the next call on this context other than
 * this one; an error unless that run succeeded and nothing was bound since.
 * Of an output that was bound on a device `data` is the address there, which
 * the host cannot read. */
TCC_API tcc_status tcc_context_output(tcc_context *context, size_t index,
                                      tcc_tensor *tensor);
/* The number of the CUDA device that the output's `data` is an address of; -1:
 * the host reads it. */
TCC_API int32_t tcc_context_output_device(const tcc_context *context,
                                          size_t index);

/* All states become zero, as in a new context. */
TCC_API void tcc_context_reset_state(tcc_context *context);

/* All bytes that it needs but inputs and outputs: constants, which the contexts
 * of a program share, arena, scratch and states. `tcc --json` plans as many. */
TCC_API uint64_t tcc_context_planned_bytes(const tcc_context *context);

/*===- Training ------------------------------------------------- [exclusive] */

/* Parameters, optimizer state and step state of a package compiled with
 * --train, and its step functions. Any number of sessions may share a program.
 */
typedef struct tcc_session tcc_session;

/* With neither a pool nor an allocator, one more thread asks the system for the
 * pages of large memory while an entry point runs for the first time. */
typedef struct tcc_session_options {
  size_t struct_size; /* sizeof(tcc_session_options) */
  int32_t threads;    /* 0: min(affinity, CPU quota of the control group), of
                       * which ranks that share cores have equal parts */
  const tcc_thread_pool *pool; /* replaces the session's own threads */
  const tcc_allocator *allocator;
  /* How many processes train together, each with a session of its own, and
   * which of them this is: all make the same calls in the same order. 0 or 1:
   * this one alone; TCC_LAUNCHED: as the environment says that mpirun, torchrun
   * or srun set. Creating the session waits for the others, 30 seconds. */
  int32_t ranks, rank;
  const char *rendezvous; /* "HOST:PORT", where rank 0 listens meanwhile; of
                           * ranks > 1 alone */
} tcc_session_options;
#define TCC_LAUNCHED (-1)

/* Of one update; a value that the package does not report is NaN. */
typedef struct tcc_step_metrics {
  int64_t step;     /* updates so far, skipped ones included */
  double loss;      /* mean over the valid targets of the update */
  double grad_norm; /* before clipping */
  double lr, loss_scale;
  int32_t skipped; /* nonzero: the update changed nothing */
} tcc_step_metrics;

/* Sums over batches. */
typedef struct tcc_evaluation {
  double loss, count; /* of the valid targets, and their number */
  int64_t correct;    /* of them; -1 if the model is no classifier */
} tcc_evaluation;

typedef enum tcc_variable_kind {
  TCC_PARAMETER = 0, /* of the model, trained */
  TCC_BUFFER,        /* of the model, not trained */
  TCC_SLOT,          /* of the optimizer, for one parameter */
  TCC_GRADIENT,      /* accumulated, for one parameter */
  TCC_STEP,          /* counters, seed, fault */
  TCC_SETTING,       /* of the recipe: see tcc_setting */
  TCC_ROUNDED,       /* a narrow copy of one parameter; a step after a write to
                        either makes it again */
  TCC_EMA,           /* the running mean of one parameter */
  TCC_PARTIAL        /* a sum of some batches of the update under way */
} tcc_variable_kind;

typedef struct tcc_variable {
  const char *name; /* of parameters and buffers: the model's */
  tcc_dtype dtype;
  size_t rank;
  const int64_t *shape;
  tcc_variable_kind kind;
  const char *parameter; /* that a slot, gradient or copy belongs to; else "" */
} tcc_variable;

/* A value of the recipe that changes at run time. */
typedef struct tcc_setting {
  const char *key;   /* "lr", "schedule.kind" */
  size_t variable;   /* that holds it */
  tcc_dtype dtype;   /* TCC_F64, TCC_F32 or TCC_I64 */
  size_t count;      /* numbers that it has: 2 for "betas" */
  int32_t is_number; /* nonzero: each is from min to max */
  double min, max;
  int32_t opens_at_min, opens_at_max; /* nonzero: without that end */
  size_t word_count;                  /* words that it may be instead */
  const void *initial;                /* what the recipe gave: `count` elements,
                                         unaligned */
} tcc_setting;

/* Called after each update in the thread that made it. */
typedef void (*tcc_step_callback)(void *user, const tcc_step_metrics *metrics);

/* Allocates all memory that steps need, but that of outputs, which the first
 * call of each entry allocates. `options` may be NULL. */
TCC_API tcc_status tcc_session_create(const tcc_program *program,
                                      const tcc_session_options *options,
                                      tcc_session **session);
TCC_API void tcc_session_release(tcc_session *session);
/* Everything becomes what it was in a new session. */
TCC_API tcc_status tcc_session_initialize(tcc_session *session);

/* What makes a batch: the model's inputs, then the target. NULL if there is no
 * such input. */
TCC_API size_t tcc_session_input_count(const tcc_session *session);
TCC_API const tcc_tensor_spec *tcc_session_input(const tcc_session *session,
                                                 size_t index);

/* The sizes that batches may have, each that of a variant of the steps: a step
 * takes a batch of any of them. At least 1; tcc_session_input is of variant 0,
 * and the others differ in extents alone. */
TCC_API size_t tcc_session_variant_count(const tcc_session *session);
TCC_API const tcc_tensor_spec *
tcc_session_variant_input(const tcc_session *session, size_t variant,
                          size_t index);

/* What data an input of a session takes. */
typedef struct tcc_input_role {
  int32_t is_target;    /* nonzero: the loss is of it */
  int32_t tokens_ahead; /* of a language model: how much later in a text its
                           tokens begin than those of the model's input; else
                           -1 */
  int64_t ignore_index; /* the class that the loss passes over; INT64_MIN: it
                           is no target of classes */
} tcc_input_role;
TCC_API tcc_status tcc_session_input_role(const tcc_session *session,
                                          size_t index, tcc_input_role *role);
/* What the recipe says of data: the keys of its [data] as TOML, for a loader;
 * NULL without. */
TCC_API const char *tcc_session_data(const tcc_session *session);
/* The setting "seed": of all random numbers of the steps, and of the order of
 * samples. */
TCC_API uint64_t tcc_session_seed(const tcc_session *session);

/* One update from the batch, whose `count` tensors are read in place.
 * TCC_NUMERICS says that the loss or a gradient is not finite and that the
 * recipe stops then: the parameters are those before the step, and later steps
 * fail likewise until tcc_session_clear_fault. After another failure variables
 * may be updated in part. `metrics` may be NULL. */
TCC_API tcc_status tcc_session_step(tcc_session *session,
                                    const tcc_tensor *batch, size_t count,
                                    tcc_step_metrics *metrics);
/* One update from several batches: accumulate each, then apply. A package with
 * parallel.exact has no other update, and each is of so many batches of all
 * ranks: another call than the next of these is TCC_USAGE. */
TCC_API tcc_status tcc_session_accumulate(tcc_session *session,
                                          const tcc_tensor *batch,
                                          size_t count);
TCC_API tcc_status tcc_session_apply(tcc_session *session,
                                     tcc_step_metrics *metrics);
TCC_API void tcc_session_clear_fault(tcc_session *session);
/* So many of the session's own threads take no part in later steps, as a loader
 * may wish; none where their number was given. */
TCC_API void tcc_session_spare_threads(tcc_session *session, int32_t count);
TCC_API void tcc_session_set_callback(tcc_session *session,
                                      tcc_step_callback callback, void *user);

/* Adds the loss of a batch to `sum`, which begins as zeros. */
TCC_API tcc_status tcc_session_evaluate(tcc_session *session,
                                        const tcc_tensor *batch, size_t count,
                                        tcc_evaluation *sum);
/* Ranks: which one the session is, and of how many. Running statistics of batch
 * norms that are not synchronised are each rank's own until they are shared. A
 * rank whose step fails, but with TCC_NUMERICS, is gone for the others. */
TCC_API int32_t tcc_session_rank(const tcc_session *session);
TCC_API int32_t tcc_session_rank_count(const tcc_session *session);
/* The number of the batch that the next step takes, among those of all ranks
 * and from the start: with it each rank finds its data. */
TCC_API int64_t tcc_session_batch_number(const tcc_session *session);
/* Makes `sum`, of the batches that this rank has evaluated, that of all. */
TCC_API tcc_status tcc_session_add_up(tcc_session *session,
                                      tcc_evaluation *sum);
/* Gives all ranks the variables of rank 0, after that one restored or wrote
 * some. A new session has done it. */
TCC_API tcc_status tcc_session_share(tcc_session *session);
/* All ranks call it, as before a checkpoint: fails with TCC_PEER at all of them
 * where a variable that updates leave the same is not, and names it and the
 * ranks. */
TCC_API tcc_status tcc_session_compare_ranks(tcc_session *session);
/* The last call of a rank that did its part: returns once all ranks made it.
 * One that releases its session earlier is gone for the others, which fail then
 * with TCC_PEER; with MPI the launcher ends them. */
TCC_API tcc_status tcc_session_close(tcc_session *session);

/* Runs the model: its inputs alone. The outputs are valid until the next call
 * on this session. */
TCC_API tcc_status tcc_session_predict(tcc_session *session,
                                       const tcc_tensor *inputs, size_t count);
TCC_API tcc_status tcc_session_output(tcc_session *session, size_t index,
                                      tcc_tensor *tensor);

/* Parameters, gradients and all other state. */
TCC_API size_t tcc_session_variable_count(const tcc_session *session);
/* Copies the description of a variable; an error if there is none. */
TCC_API tcc_status tcc_session_variable(const tcc_session *session,
                                        size_t index, tcc_variable *variable);
/* The position of a name; -1 if it is absent. */
TCC_API ptrdiff_t tcc_session_find_variable(const tcc_session *session,
                                            const char *name);
/* Copies all elements; `bytes` must be their size. */
TCC_API tcc_status tcc_session_read(const tcc_session *session, size_t index,
                                    void *data, size_t bytes);
TCC_API tcc_status tcc_session_write(tcc_session *session, size_t index,
                                     const void *data, size_t bytes);

/* Settings. A word stands for its position: that is what the variable holds. */
TCC_API size_t tcc_session_setting_count(const tcc_session *session);
/* Copies the description of a setting; an error if there is none. */
TCC_API tcc_status tcc_session_setting(const tcc_session *session, size_t index,
                                       tcc_setting *setting);
/* NULL if there is no such setting or word. */
TCC_API const char *tcc_session_setting_word(const tcc_session *session,
                                             size_t index, size_t word);
/* Sets the setting `key`, or all that it matches as a pattern ("dropout.*"), to
 * a word or to numbers with commas between them. TCC_USAGE says what is known
 * or expected, and then nothing is changed. */
TCC_API tcc_status tcc_session_set(tcc_session *session, const char *key,
                                   const char *value);
/* The same to `count` numbers. */
TCC_API tcc_status tcc_session_set_numbers(tcc_session *session,
                                           const char *key,
                                           const double *numbers, size_t count);

/* Writes the checkpoint ROOT/step-N, N updates so far. Of several ranks all
 * make the call, between the same two updates, with one folder that all share:
 * each writes what is its own to write. */
TCC_API tcc_status tcc_session_save(const tcc_session *session,
                                    const char *root);
/* Which checkpoints of a folder remain once another one is written. */
typedef struct tcc_retention {
  size_t struct_size; /* sizeof(tcc_retention) */
  int64_t keep_last;  /* as many of the newest; 0: all */
  int64_t keep_every; /* and those whose N is a multiple of it; 0: none */
} tcc_retention;
/* The same beside training: returns once all variables are copied, into memory
 * that is kept from the first call on (TCC_OUT_OF_MEMORY); a thread writes the
 * copy, and removes what `retention`, which may be NULL, does not keep. One is
 * under way at a time: a call waits for the one before, and where that failed
 * fails as it did and begins none. No other process may write to the folder,
 * from the first call on until another folder is named or the session is
 * released, which waits as tcc_session_wait does. Steps may follow; of several
 * ranks all make the same calls. */
TCC_API tcc_status tcc_session_save_async(tcc_session *session,
                                          const char *root,
                                          const tcc_retention *retention);
/* Waits for the end of what tcc_session_save_async began, and fails if that
 * did. `path`, which may be NULL, is that of the checkpoint, valid until the
 * next call of a function that gives one; empty if none was begun since the
 * last call. */
TCC_API tcc_status tcc_session_wait(tcc_session *session, const char **path);

/* What was restored. Valid until the next call of a function that gives a path.
 */
typedef struct tcc_restored {
  const char *path;        /* empty: there is no checkpoint */
  const char *passed_over; /* why newer ones were not restored, a line each */
} tcc_restored;
/* Restores the newest checkpoint of a folder that is complete and has the bytes
 * that were written, older ones standing in for newer ones; changes nothing
 * where there is none. TCC_BAD_DATA where none of those that are there is
 * whole. All ranks make the call, and restore the same one. */
TCC_API tcc_status tcc_session_restore_latest(tcc_session *session,
                                              const char *root,
                                              tcc_restored *restored);
/* Restores a checkpoint, or of a folder of checkpoints the newest that is
 * complete. It must be of the same model and recipe. After a failure nothing
 * is changed. */
TCC_API tcc_status tcc_session_restore(tcc_session *session, const char *path);
/* Sets parameters (all) and buffers (those in the file) from what `tcc-run
 * train --init` takes: safetensors, a file of torch.save, an index of some. */
TCC_API tcc_status tcc_session_load_parameters(tcc_session *session,
                                               const char *file);
TCC_API tcc_status tcc_session_export_parameters(const tcc_session *session,
                                                 const char *file);

/* All bytes that it needs but tensors of batches: variables, constants that
 * others than its start read, arena and scratch. `tcc --json` plans as many. */
TCC_API uint64_t tcc_session_planned_bytes(const tcc_session *session);

#ifdef __cplusplus
}
#endif

#include "tcc/ranks.h"

#endif /* TCC_RUNTIME_H */
