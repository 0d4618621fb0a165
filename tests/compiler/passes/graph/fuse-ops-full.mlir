// RUN: tcc-opt %s --tcc-fuse-ops | FileCheck %s
// Kernels of many elements keep what is live in registers: 64 ops at most.

// CHECK-LABEL: func @elements
// CHECK-COUNT-2: graph.fused <pointwise>
// CHECK-NOT: graph.fused
func.func @elements(%a: tensor<1000xf32>, %b: tensor<1000xf32>) -> tensor<1000xf32> {
  %0 = graph.mul %a, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %1 = graph.add %0, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %2 = graph.mul %1, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %3 = graph.add %2, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %4 = graph.mul %3, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %5 = graph.add %4, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %6 = graph.mul %5, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %7 = graph.add %6, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %8 = graph.mul %7, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %9 = graph.add %8, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %10 = graph.mul %9, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %11 = graph.add %10, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %12 = graph.mul %11, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %13 = graph.add %12, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %14 = graph.mul %13, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %15 = graph.add %14, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %16 = graph.mul %15, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %17 = graph.add %16, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %18 = graph.mul %17, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %19 = graph.add %18, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %20 = graph.mul %19, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %21 = graph.add %20, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %22 = graph.mul %21, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %23 = graph.add %22, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %24 = graph.mul %23, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %25 = graph.add %24, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %26 = graph.mul %25, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %27 = graph.add %26, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %28 = graph.mul %27, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %29 = graph.add %28, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %30 = graph.mul %29, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %31 = graph.add %30, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %32 = graph.mul %31, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %33 = graph.add %32, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %34 = graph.mul %33, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %35 = graph.add %34, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %36 = graph.mul %35, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %37 = graph.add %36, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %38 = graph.mul %37, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %39 = graph.add %38, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %40 = graph.mul %39, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %41 = graph.add %40, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %42 = graph.mul %41, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %43 = graph.add %42, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %44 = graph.mul %43, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %45 = graph.add %44, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %46 = graph.mul %45, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %47 = graph.add %46, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %48 = graph.mul %47, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %49 = graph.add %48, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %50 = graph.mul %49, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %51 = graph.add %50, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %52 = graph.mul %51, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %53 = graph.add %52, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %54 = graph.mul %53, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %55 = graph.add %54, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %56 = graph.mul %55, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %57 = graph.add %56, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %58 = graph.mul %57, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %59 = graph.add %58, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %60 = graph.mul %59, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %61 = graph.add %60, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %62 = graph.mul %61, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %63 = graph.add %62, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %64 = graph.mul %63, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %65 = graph.add %64, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %66 = graph.mul %65, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %67 = graph.add %66, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %68 = graph.mul %67, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %69 = graph.add %68, %b : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  return %69 : tensor<1000xf32>
}
