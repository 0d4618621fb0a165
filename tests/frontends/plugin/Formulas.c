/* Operators that are made of others: of elementwise functions, of two results,
   with attributes and conditions. */
#include "tcc/op.h"

static const tcc_op_v1 kOperators[] = {
    {.bytes_of_this = sizeof(tcc_op_v1),
     .since = 1,
     .schema =
         "mine::scaled_swish(Tensor x, Tensor scale, float beta=1.0) -> Tensor",
     .checks = "x.dim() == 2; x.size(1) == scale.size(0); beta > 0",
     .shapes = "x.shape",
     .body = "def body(x, scale, beta):\n"
             "  return x / (1 + torch.exp(-beta * x)) * scale\n"},
    {.bytes_of_this = sizeof(tcc_op_v1),
     .since = 1,
     .schema =
         "mine::halves(Tensor x, int axis=-1) -> (Tensor first, Tensor second)",
     .checks = "x.size(axis) % 2 == 0",
     .body = "def body(x, axis):\n"
             "  n = x.size(axis) // 2\n"
             "  first, second = torch.split(x, n, axis)\n"
             "  if axis < 0:\n"
             "    axis = axis + x.dim()\n"
             "  return first, second - first ** 2\n"},
    {.bytes_of_this = sizeof(tcc_op_v1),
     .since = 1,
     .schema = "mine::rows(Tensor x) -> (Tensor, Tensor)",
     .shapes = "[x.size(0) // 2] + x.shape[1:]; [x.size(0) - x.size(0) // 2]",
     .checks = "x.dim() == 2",
     .body = "def body(x):\n"
             "  return x[:x.size(0) // 2], x[x.size(0) // 2:, 0]\n"},
    {.bytes_of_this = sizeof(tcc_op_v1),
     .since = 1,
     .schema = "mine::masked(Tensor x, Tensor mask) -> Tensor",
     .body = "def body(x, mask):\n"
             "  return torch.where(mask, x, 0.0)\n",
     .gradient = "def gradient(x, mask, y, dy):\n"
                 "  return torch.where(mask, dy, 0.0), None\n",
     .examples = "x: f32[5], mask: bool[5]"},
    {.bytes_of_this = sizeof(tcc_op_v1),
     .since = 1,
     .schema = "mine::gated(Tensor x, Tensor? scale=None, str kind=\"swish\", "
               "bool negate=False, int[] sizes=[]) -> Tensor",
     .body = "def body(x, scale, kind, negate, sizes):\n"
             "  first, second = ops.mine.halves(x)\n"
             "  if kind == \"swish\":\n"
             "    second = second.sigmoid() * second\n"
             "  elif kind == \"relu\":\n"
             "    second = torch.relu(second)\n"
             "  else:\n"
             "    second = torch.gelu(second)\n"
             "  if scale is not None:\n"
             "    second = second * scale\n"
             "  if negate:\n"
             "    first = -first\n"
             "  return first * second\n"},
};

const tcc_plugin_v1 tcc_plugin = {
    TCC_OP_ABI, sizeof(tcc_plugin_v1),
    "formulas", "1.0",
    kOperators, sizeof(kOperators) / sizeof(kOperators[0])};
