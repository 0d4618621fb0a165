// RUN: tcc-opt %s --tcc-select-kernels | FileCheck %s
// What a kernel stores beside its product, or reads behind it, is a step of a
// library where runtime/package/LibraryRules has it; else the kernel is no library's.

// CHECK: exec.kernel @stored {{.*}}steps = [#exec.step<store of <2 : bf16, () -> (0, 1, 4, 16, 0, 16, 1)>>, #exec.step<gelu_tanh>]
exec.kernel @stored attributes {target = "cuda"} {
^bb0(%x: tensor<4x8xbf16>, %w: tensor<8x16xbf16>):
  %r:2 = graph.fused <contraction> (%x, %w)
      : (tensor<4x8xbf16>, tensor<8x16xbf16>) -> (tensor<4x16xbf16>, tensor<4x16xbf16>) {
  ^bb0(%x_: tensor<4x8xbf16>, %w_: tensor<8x16xbf16>):
    %m = graph.matmul %x_, %w_ : (tensor<4x8xbf16>, tensor<8x16xbf16>) -> tensor<4x16xf32>
    %s = graph.cast %m : (tensor<4x16xf32>) -> tensor<4x16xbf16>
    %u = graph.cast %s : (tensor<4x16xbf16>) -> tensor<4x16xf32>
    %g = graph.gelu_tanh %u : (tensor<4x16xf32>) -> tensor<4x16xf32>
    %y = graph.cast %g : (tensor<4x16xf32>) -> tensor<4x16xbf16>
    graph.yield %s, %y : tensor<4x16xbf16>, tensor<4x16xbf16>
  }
}

// What gelu is of has rows of a multiple of 8 elements.
// CHECK: exec.kernel @narrow_rows
// CHECK-NOT: library =
exec.kernel @narrow_rows attributes {target = "cuda"} {
^bb0(%x: tensor<4x8xbf16>, %w: tensor<8x12xbf16>):
  %r:2 = graph.fused <contraction> (%x, %w)
      : (tensor<4x8xbf16>, tensor<8x12xbf16>) -> (tensor<4x12xbf16>, tensor<4x12xbf16>) {
  ^bb0(%x_: tensor<4x8xbf16>, %w_: tensor<8x12xbf16>):
    %m = graph.matmul %x_, %w_ : (tensor<4x8xbf16>, tensor<8x12xbf16>) -> tensor<4x12xf32>
    %s = graph.cast %m : (tensor<4x12xf32>) -> tensor<4x12xbf16>
    %u = graph.cast %s : (tensor<4x12xbf16>) -> tensor<4x12xf32>
    %g = graph.gelu_tanh %u : (tensor<4x12xf32>) -> tensor<4x12xf32>
    %y = graph.cast %g : (tensor<4x12xf32>) -> tensor<4x12xbf16>
    graph.yield %s, %y : tensor<4x12xbf16>, tensor<4x12xbf16>
  }
}

// CHECK: exec.kernel @gradient {{.*}}steps = [#exec.step<gelu_tanh_gradient of <2 : bf16, () -> (0, 1, 4, 16, 0, 16, 1)>>]
exec.kernel @gradient attributes {target = "cuda"} {
^bb0(%x: tensor<4x8xbf16>, %w: tensor<8x16xbf16>, %s: tensor<4x16xbf16>):
  %r = graph.fused <contraction> (%x, %w, %s)
      : (tensor<4x8xbf16>, tensor<8x16xbf16>, tensor<4x16xbf16>) -> tensor<4x16xbf16> {
  ^bb0(%x_: tensor<4x8xbf16>, %w_: tensor<8x16xbf16>, %s_: tensor<4x16xbf16>):
    %m = graph.matmul %x_, %w_ : (tensor<4x8xbf16>, tensor<8x16xbf16>) -> tensor<4x16xf32>
    %u = graph.cast %s_ : (tensor<4x16xbf16>) -> tensor<4x16xf32>
    %g = graph.gelu_tanh_gradient %u, %m : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
    %y = graph.cast %g : (tensor<4x16xf32>) -> tensor<4x16xbf16>
    graph.yield %y : tensor<4x16xbf16>
  }
}

// Nothing is added before a gradient.
// CHECK: exec.kernel @gradient_of_sum
// CHECK-NOT: library =
exec.kernel @gradient_of_sum attributes {target = "cuda"} {
^bb0(%x: tensor<4x8xbf16>, %w: tensor<8x16xbf16>, %s: tensor<4x16xbf16>, %a: tensor<4x16xbf16>):
  %r = graph.fused <contraction> (%x, %w, %s, %a)
      : (tensor<4x8xbf16>, tensor<8x16xbf16>, tensor<4x16xbf16>, tensor<4x16xbf16>) -> tensor<4x16xbf16> {
  ^bb0(%x_: tensor<4x8xbf16>, %w_: tensor<8x16xbf16>, %s_: tensor<4x16xbf16>, %a_: tensor<4x16xbf16>):
    %m = graph.matmul %x_, %w_ : (tensor<4x8xbf16>, tensor<8x16xbf16>) -> tensor<4x16xf32>
    %u = graph.cast %s_ : (tensor<4x16xbf16>) -> tensor<4x16xf32>
    %v = graph.cast %a_ : (tensor<4x16xbf16>) -> tensor<4x16xf32>
    %t = graph.add %m, %v : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
    %g = graph.gelu_tanh_gradient %u, %t : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
    %y = graph.cast %g : (tensor<4x16xf32>) -> tensor<4x16xbf16>
    graph.yield %y : tensor<4x16xbf16>
  }
}

// CHECK: exec.kernel @sums_lhs {{.*}}steps = [#exec.step<sum_lhs of <3 : bf16, () -> (0, 1, 4, 16, 0, 1, 0)>>]
exec.kernel @sums_lhs attributes {target = "cuda"} {
^bb0(%x: tensor<8x4xbf16>, %w: tensor<8x16xbf16>):
  %r:2 = graph.fused <contraction> (%x, %w)
      : (tensor<8x4xbf16>, tensor<8x16xbf16>) -> (tensor<4x16xbf16>, tensor<4xbf16>) {
  ^bb0(%x_: tensor<8x4xbf16>, %w_: tensor<8x16xbf16>):
    %m, %t = graph.matmul_sums %x_, %w_ {of_lhs, transpose_lhs} : (tensor<8x4xbf16>, tensor<8x16xbf16>) -> (tensor<4x16xbf16>, tensor<4xbf16>)
    graph.yield %m, %t : tensor<4x16xbf16>, tensor<4xbf16>
  }
}

// CHECK: exec.kernel @sums_rhs {{.*}}steps = [#exec.step<sum_rhs of <3 : bf16, () -> (0, 1, 4, 16, 0, 0, 1)>>]
exec.kernel @sums_rhs attributes {target = "cuda"} {
^bb0(%x: tensor<4x8xbf16>, %w: tensor<8x16xbf16>):
  %r:2 = graph.fused <contraction> (%x, %w)
      : (tensor<4x8xbf16>, tensor<8x16xbf16>) -> (tensor<4x16xbf16>, tensor<16xbf16>) {
  ^bb0(%x_: tensor<4x8xbf16>, %w_: tensor<8x16xbf16>):
    %m, %t = graph.matmul_sums %x_, %w_ : (tensor<4x8xbf16>, tensor<8x16xbf16>) -> (tensor<4x16xbf16>, tensor<16xbf16>)
    graph.yield %m, %t : tensor<4x16xbf16>, tensor<16xbf16>
  }
}
