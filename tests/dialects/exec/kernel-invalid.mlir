// RUN: tcc-opt %s --verify-diagnostics --split-input-file

// Symbols of a kernel, which its launches bind.
// expected-error @below {{expected symbols of the graph dialect}}
exec.kernel @k attributes {symbols = [1 : i64]} {
^bb0(%x: tensor<4xf32>):
  %0 = graph.fused <pointwise> (%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    %1 = graph.exp %a : (tensor<4xf32>) -> tensor<4xf32>
    graph.yield %1 : tensor<4xf32>
  }
}

// -----

exec.kernel @k attributes {symbols = [#graph.symbol<"n", 1 to 9 by 1>]} {
^bb0(%x: tensor<?xf32, affine_map<()[s0] -> (s0)>>):
  %0 = graph.fused <pointwise> (%x) : (tensor<?xf32, affine_map<()[s0] -> (s0)>>)
      -> tensor<?xf32, affine_map<()[s0] -> (s0)>> {
  ^bb0(%a: tensor<?xf32, affine_map<()[s0] -> (s0)>>):
    %1 = graph.exp %a : (tensor<?xf32, affine_map<()[s0] -> (s0)>>)
      -> tensor<?xf32, affine_map<()[s0] -> (s0)>>
    graph.yield %1 : tensor<?xf32, affine_map<()[s0] -> (s0)>>
  }
}
exec.entry @main inputs [#exec.tensor<"x", tensor<4xf32>>] outputs [#exec.tensor<"y", tensor<4xf32>>] attributes {slots = 0 : i64} {
  %0 = exec.buffer input 0 bytes affine_map<() -> (16)> bound 16 : !exec.buffer<host>
  %1 = exec.buffer output 0 bytes affine_map<() -> (16)> bound 16 : !exec.buffer<host>
  // expected-error @below {{expected bindings of 1 symbols of the kernel}}
  exec.launch @k ins(%0) outs(%1) node "k" : (!exec.buffer<host>) -> !exec.buffer<host>
}
