// RUN: tcc-opt %s --tcc-set-target=name=cuda --tcc-set-target=name=cuda | FileCheck %s --check-prefix=GPU
// RUN: tcc-opt %s --tcc-set-target | FileCheck %s --check-prefix=HOST
// RUN: not tcc-opt %s --tcc-set-target=name=nil 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not tcc-opt %s --tcc-set-target=name=cuda --tcc-set-target 2>&1 | FileCheck %s --check-prefix=OTHER

// GPU: module attributes {graph.target = "cuda"}
// HOST: module {
// UNKNOWN: no target is named 'nil', expected cpu or cuda or null
// OTHER: is for the target 'cuda' already, not for 'cpu'

func.func @main() { return }
