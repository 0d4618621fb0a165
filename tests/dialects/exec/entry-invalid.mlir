// RUN: tcc-opt %s --split-input-file --verify-diagnostics

exec.entry @main inputs [] outputs [] attributes {slots = 1 : i64} {
  // expected-error @+1 {{reads size slot 0, which is not set here}}
  %0 = exec.buffer scratch bytes affine_map<()[s0] -> (s0)> bound 64 : !exec.buffer<host>
}

// -----

exec.entry @main inputs [] outputs [] attributes {slots = 1 : i64} {
  exec.loop 0 trips affine_map<() -> (3)> max 3 node "a" {
  }
  // expected-error @+1 {{shares size slot 0 with another loop}}
  exec.loop 0 trips affine_map<() -> (3)> max 3 node "b" {
  }
}

// -----

exec.entry @main inputs [#exec.tensor<"f", tensor<i1>>] outputs [] attributes {slots = 0 : i64} {
  %f = exec.buffer input 0 bytes affine_map<() -> (1)> bound 1 : !exec.buffer<host>
  // expected-error @+1 {{has branches with different collectives}}
  exec.if %f : !exec.buffer<host> {
    %0 = exec.start_all_reduce %f to %f as i8 count affine_map<() -> (1)>
      : !exec.buffer<host>, !exec.buffer<host>
    exec.wait %0
  } else {
  }
}

// -----

// Each group has its collectives in one order: that of two groups may differ.
exec.entry @main inputs [#exec.tensor<"f", tensor<i1>>] outputs [] attributes {slots = 0 : i64} {
  %f = exec.buffer input 0 bytes affine_map<() -> (1)> bound 1 : !exec.buffer<host>
  exec.if %f : !exec.buffer<host> {
    %0 = exec.start_all_reduce %f to %f as i8 count affine_map<() -> (1)>
      : !exec.buffer<host>, !exec.buffer<host>
    exec.wait %0
    %1 = exec.start_all_reduce %f to %f as i8 count affine_map<() -> (1)> {group = 1 : i64}
      : !exec.buffer<host>, !exec.buffer<host>
    exec.wait %1
  } else {
    %0 = exec.start_all_reduce %f to %f as i8 count affine_map<() -> (1)> {group = 1 : i64}
      : !exec.buffer<host>, !exec.buffer<host>
    exec.wait %0
    %1 = exec.start_all_reduce %f to %f as i8 count affine_map<() -> (1)>
      : !exec.buffer<host>, !exec.buffer<host>
    exec.wait %1
  }
}

// -----

exec.entry @main inputs [#exec.tensor<"f", tensor<i1>>] outputs [] attributes {slots = 0 : i64} {
  %f = exec.buffer input 0 bytes affine_map<() -> (1)> bound 1 : !exec.buffer<host>
  // expected-error @+1 {{has branches with different collectives}}
  exec.if %f : !exec.buffer<host> {
    %0 = exec.start_all_reduce %f to %f as i8 count affine_map<() -> (1)>
      : !exec.buffer<host>, !exec.buffer<host>
    exec.wait %0
    %1 = exec.start_all_gather %f to %f as i8 count affine_map<() -> (1)>
      : !exec.buffer<host>, !exec.buffer<host>
    exec.wait %1
  } else {
    %0 = exec.start_all_gather %f to %f as i8 count affine_map<() -> (1)>
      : !exec.buffer<host>, !exec.buffer<host>
    exec.wait %0
    %1 = exec.start_all_reduce %f to %f as i8 count affine_map<() -> (1)>
      : !exec.buffer<host>, !exec.buffer<host>
    exec.wait %1
  }
}

// -----

// Ranks agree on symbols, not on what they read.
module attributes {graph.symbols = [#graph.symbol<"n", 1 to 8 by 1>]} {
  exec.entry @main inputs [#exec.tensor<"n", tensor<i64>>] outputs [] attributes {slots = 4 : i64} {
    %n = exec.buffer input 0 bytes affine_map<() -> (8)> bound 8 : !exec.buffer<host>
    exec.loop 1 trips affine_map<()[s0] -> (s0)> max 8 node "a" {
      %0 = exec.start_all_reduce %n to %n as i64 count affine_map<() -> (1)>
        : !exec.buffer<host>, !exec.buffer<host>
      exec.wait %0
    }
    exec.read_size 2 from %n as i64 in 0 to 8 node "n" what "size" : !exec.buffer<host>
    // expected-error @+1 {{runs collectives as often as its data says}}
    exec.loop 3 trips affine_map<()[s0, s1, s2] -> (s2)> max 8 node "b" {
      %0 = exec.start_all_reduce %n to %n as i64 count affine_map<() -> (1)>
        : !exec.buffer<host>, !exec.buffer<host>
      exec.wait %0
    }
  }
}

// -----

exec.entry @main inputs [] outputs [] attributes {slots = 0 : i64} {
  // expected-error @+1 {{index 0 is not below 0}}
  %x = exec.buffer input 0 bytes affine_map<() -> (1)> bound 1 : !exec.buffer<host>
}

// -----

exec.entry @main inputs [] outputs [] attributes {slots = 0 : i64, lanes = 2 : i64} {
  // expected-error @+1 {{lane 2 is not below 2}}
  exec.set_size 0 to affine_map<() -> (1)>{lane = 2 : i64}
}

// -----

// expected-error @+1 {{'lanes'}}
exec.entry @main inputs [] outputs [] attributes {slots = 0 : i64, lanes = 0 : i64} {
}
