/*===- tcc/op.h - Operators of your own -------------------------*- C -*-===*/
/*
 * A plugin is a shared library that exports one variable, `tcc_plugin`. tcc
 * reads what it points to while it compiles a model (tcc --plugin libmine.so)
 * and calls nothing of it; nothing of it is needed when the program runs.
 *
 * Texts are UTF-8, end with a zero and have at most 64 KiB. What is wrong with
 * them is listed, all at once, before anything is compiled.
 *
 * docs/custom-operators.md is the guide.
 */
#ifndef TCC_OP_H
#define TCC_OP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What `tcc_plugin_v1::abi` is. */
#define TCC_OP_ABI 1u

/* The targets that kernels are for: names of --target. */
#define TCC_OP_CPU "cpu"
#define TCC_OP_CUDA "cuda"

/*
 * A kernel of a CPU, in the code of a tcc_op_kernel_v1. Threads call it with
 * disjoint ranges of tasks, in any order; results are the same bits whatever
 * the ranges are. It keeps no state, has no constructors, throws nothing and
 * calls nothing but memcpy, memmove, memset, memcmp and bcmp.
 *
 * - buffers: of the arguments that are Tensors and not None, in their order,
 *   then of the results. Elements are row-major; a boolean is one byte.
 *   Arguments may share a buffer, results share none. What a caller of the
 *   package binds is aligned to its elements, all else to 64 bytes.
 * - sizes: what tcc_op_kernel_v1::sizes gives, in its order; floats as the
 *   bits of doubles.
 * - first, last: the tasks from `first` up to `last` - 1.
 * - scratch: bytes that no other thread uses, aligned to 64, uninitialized.
 */
typedef void (*tcc_op_function)(void *const *buffers, const int64_t *sizes,
                                int64_t first, int64_t last, void *scratch);

/*
 * A kernel of a GPU is a __global__ function of
 *
 * - a pointer for each buffer, in the order of those of a tcc_op_function;
 * - a parameter of 64 bits for each of tcc_op_kernel_v1::sizes, an integer or a
 *   double.
 *
 * It is launched with tcc_op_kernel_v1::tasks blocks of `threads` threads, of
 * one dimension. It keeps no state; as bitcode it calls nothing but libdevice's
 * functions.
 */

typedef enum tcc_op_form {
  /* A relocatable ELF object for x86-64, compiled with -fPIC. */
  TCC_OP_OBJECT = 1,
  /* LLVM bitcode for nvptx64, of LLVM 19 or older. It becomes PTX for each
   * --arch, and code of the host for --emulate. */
  TCC_OP_NVVM = 2,
  /* The text of PTX, which the driver compiles when a program is loaded. */
  TCC_OP_PTX = 3,
  /* A cubin: machine code of one architecture. */
  TCC_OP_CUBIN = 4
} tcc_op_form;

typedef struct tcc_op_code_v1 {
  uint32_t bytes_of_this;
  uint32_t form; /* tcc_op_form */
  /* The least machine that it runs on: a name of --cpu, "x86-64-v3", or of
   * --arch, "sm_80". Of several that fit the one with most features is taken. A
   * cubin is for a GPU of the same major version; with "sm_90a" for that alone.
   */
  const char *machine;
  /* Its bytes, from `begin` up to `end`: see TCC_OP_EMBED. */
  const char *begin, *end;
} tcc_op_code_v1;

/* Code for some element types on one target. A kernel of a GPU has bitcode, or
 * else cubins and PTX at most once, which go into the package as they are. */
typedef struct tcc_op_kernel_v1 {
  uint32_t bytes_of_this;
  const char *target; /* TCC_OP_CPU, with objects, or TCC_OP_CUDA */
  /* The element types of Tensors, in order, and of results: "f32, i64 -> f32".
   * They are f64, f32, f16, bf16, i8 to i64, u8 to u64 and bool. */
  const char *types;
  const char *symbol; /* of the function in the code */
  /* Expressions of the arguments, separated by semicolons: "x.size(0); eps".
   * Null: none. */
  const char *sizes;
  /* How many tasks there are: work that may run on threads of their own. Of a
   * GPU: blocks. */
  const char *tasks;
  const char *scratch; /* CPU: bytes of a thread; null: none */
  /* GPU: threads of a block, whole warps, at most 1024. CPU: 0. */
  uint32_t threads;
  /* PTX and cubins: bytes of shared memory that a block gets beside what the
   * kernel declares; else 0. */
  uint32_t shared_bytes;
  const tcc_op_code_v1 *codes;
  size_t code_count;
} tcc_op_kernel_v1;

/* One operator. Texts are functions or expressions in the part of Python that
 * TorchScript is, of the parameters of `schema`: functions of torch and methods
 * of tensors by PyTorch's names, + - * / // % ** @, comparisons, x[i, j:k], if,
 * while and for over a range. Other operators of plugins are ops.DOMAIN.NAME.
 * They run once, while a model is imported: numbers and sizes are known then,
 * or are expressions of the model's symbolic dimensions. */
typedef struct tcc_op_v1 {
  /* sizeof(tcc_op_v1). */
  uint32_t bytes_of_this;
  /* From which version of its domain on the operator is this one: at least 1.
   * Only ONNX models have versions. */
  uint32_t since;
  /* "DOMAIN::NAME(Tensor x, Tensor scale, float eps=1e-5) -> Tensor", in the
   * notation of torch.library. Types are Tensor, Tensor?, int, float, bool,
   * str, int[] and float[]; results are one Tensor or (Tensor, Tensor, ...). In
   * ONNX tensors are inputs, in order, and all others attributes. Domains of
   * ONNX, of onnxruntime and of PyTorch are taken. */
  const char *schema;
  /* Conditions on the arguments, separated by semicolons, each an expression:
   * "x.dim() == 2; x.size(1) == scale.size(0)". Null for none. */
  const char *checks;
  /* The shape of each result, separated by semicolons: "x.shape" or
   * "[x.size(0), 2 * x.size(1)]". Null: those that `body` gives. */
  const char *shapes;
  /* The operator in terms of others:
   *
   *   def body(x, scale, eps):
   *     return x * torch.rsqrt(x * x + eps) * scale
   *
   * One that is made of elementwise functions fuses with its neighbours as
   * built-in ones do. Null: none; then it needs kernels. */
  const char *body;
  /* The gradients of the arguments that are Tensors, in their order, None where
   * one is zero or no float. Parameters are those of `schema`, then the
   * results, then the gradient of each result:
   *
   *   def gradient(x, scale, eps, y, dy):
   *     return dy * scale, torch.sum(dy * y / scale)
   *
   * Null: that of `body`. */
  const char *gradient;
  /* Code instead of the body, where target and element types are those of one.
   * An operator with kernels needs `shapes`; its body, if it has one, serves
   * other targets and types, and tests. */
  const tcc_op_kernel_v1 *kernels;
  size_t kernel_count;
  /* How many operations the kernel does, which decides what is computed again
   * where memory is short, and nothing else. Null: one for each element of
   * result 0. */
  const char *flops;
  /* What `tcc --check-plugin` calls it with, calls separated by semicolons: of
   * Tensors the element type and shape, of all else the value:
   * "x: f32[3, 17], scale: f32[17], eps: 0.1; x: f32[1, 1], scale: f32[1]". */
  const char *examples;
} tcc_op_v1;

typedef struct tcc_plugin_v1 {
  uint32_t abi;           /* TCC_OP_ABI */
  uint32_t bytes_of_this; /* sizeof(tcc_plugin_v1) */
  const char *name;       /* for messages and the record in the package */
  const char *version;
  const tcc_op_v1 *operators;
  size_t operator_count; /* at most 4096 */
} tcc_plugin_v1;

#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
extern const tcc_plugin_v1 tcc_plugin;

/* Puts the bytes of a file into the library: an object beside the source. NAME
 * and NAME_end are where they lie. */
#define TCC_OP_EMBED(NAME, FILE)                                               \
  __asm__(".pushsection .rodata\n.balign 64\n.globl " #NAME "\n.hidden " #NAME \
          "\n" #NAME ":\n.incbin \"" FILE "\"\n.globl " #NAME                  \
          "_end\n.hidden " #NAME "_end\n" #NAME                                \
          "_end:\n.byte 0\n.popsection\n");                                    \
  extern const char NAME[], NAME##_end[]

#ifdef __cplusplus
}
#endif

#endif /* TCC_OP_H */
