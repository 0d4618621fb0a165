// RUN: tcc-opt %s --tcc-set-target=name=cuda --tcc-fuse-ops --tcc-verify-fusion | FileCheck %s
// What is added to a product may be a sum of any number of terms: 2^40 here, of
// which a library takes two at most. They are not counted one by one.
// CHECK-LABEL: func @doubled
// CHECK:         graph.matmul
func.func @doubled(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>, %r: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %m = graph.matmul %x, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %t0 = graph.abs %r : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %t1 = graph.add %t0, %t0 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %t2 = graph.add %t1, %t1 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %t3 = graph.add %t2, %t2 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %t4 = graph.add %t3, %t3 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %t5 = graph.add %t4, %t4 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %t6 = graph.add %t5, %t5 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %t7 = graph.add %t6, %t6 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %t8 = graph.add %t7, %t7 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %t9 = graph.add %t8, %t8 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %t10 = graph.add %t9, %t9 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %t11 = graph.add %t10, %t10 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %t12 = graph.add %t11, %t11 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %t13 = graph.add %t12, %t12 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %t14 = graph.add %t13, %t13 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %t15 = graph.add %t14, %t14 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %t16 = graph.add %t15, %t15 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %t17 = graph.add %t16, %t16 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %t18 = graph.add %t17, %t17 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %t19 = graph.add %t18, %t18 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %t20 = graph.add %t19, %t19 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %t21 = graph.add %t20, %t20 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %t22 = graph.add %t21, %t21 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %t23 = graph.add %t22, %t22 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %t24 = graph.add %t23, %t23 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %t25 = graph.add %t24, %t24 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %t26 = graph.add %t25, %t25 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %t27 = graph.add %t26, %t26 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %t28 = graph.add %t27, %t27 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %t29 = graph.add %t28, %t28 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %t30 = graph.add %t29, %t29 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %t31 = graph.add %t30, %t30 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %t32 = graph.add %t31, %t31 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %t33 = graph.add %t32, %t32 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %t34 = graph.add %t33, %t33 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %t35 = graph.add %t34, %t34 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %t36 = graph.add %t35, %t35 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %t37 = graph.add %t36, %t36 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %t38 = graph.add %t37, %t37 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %t39 = graph.add %t38, %t38 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %t40 = graph.add %t39, %t39 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %y = graph.add %m, %t40 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}
