/*===- tcc/op.h - Operators of your own
 *--------------------------------------===
 *
 * A plugin is a shared library that exports one variable, `tcc_plugin`. tcc
 *reads what it points to while it compiles a model (tcc --plugin libmine.so)
 *and calls nothing of it; nothing of it is needed when the program runs. Texts
 *are UTF-8, end with a zero and have at most 64 KiB. What is wrong with them is
 *listed, all at once, before anything is compiled. docs/custom-operators.md is
 *the guide.
 *
 *===----------------------------------------------------------------------===*/
#ifndef TCC_OP_H
#define TCC_OP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What `tcc_plugin_v1::abi` is. */
#define TCC_OP_ABI 1u

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
   *   def body(x, scale, eps):
   *     return x * torch.rsqrt(x * x + eps) * scale
   * One that is made of elementwise functions fuses with its neighbours as
   * built-in ones do. */
  const char *body;
} tcc_op_v1;

typedef struct tcc_plugin_v1 {
  uint32_t abi;           /* TCC_OP_ABI */
  uint32_t bytes_of_this; /* sizeof(tcc_plugin_v1) */
  const char *name;       /* for messages and the record in the package */
  const char *version;
  const tcc_op_v1 *operators;
  size_t operator_count; /* at most 4096 */
} tcc_plugin_v1;

#ifdef __cplusplus
extern "C"
#else
extern
#endif
#if defined(__GNUC__)
    __attribute__((visibility("default")))
#endif
    const tcc_plugin_v1 tcc_plugin;

#ifdef __cplusplus
}
#endif

#endif /* TCC_OP_H */
