// RUN: tcc-opt %s --split-input-file --verify-diagnostics
// A size slot has the rank: one of the entry's own, which no command sets.

exec.entry @good inputs [] outputs [] attributes {slots = 2 : i64, rank_slot = 1 : i64} {
  exec.set_size 0 to affine_map<()[s0, s1] -> (s1 + 1)>
}

// -----

module attributes {graph.symbols = [#graph.symbol<"n", 1 to 8 by 1>]} {
  // expected-error @+1 {{has the rank in size slot 0, expected one in [1, 2)}}
  exec.entry @main inputs [] outputs [] attributes {slots = 2 : i64, rank_slot = 0 : i64} {
  }
}

// -----

exec.entry @main inputs [] outputs [] attributes {slots = 1 : i64, rank_slot = 0 : i64} {
  // expected-error @+1 {{sets size slot 0, which has the rank}}
  exec.set_size 0 to affine_map<() -> (1)>
}
