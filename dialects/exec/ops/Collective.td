#ifndef TCC_EXEC_COLLECTIVE
#define TCC_EXEC_COLLECTIVE

include "dialects/exec/ExecDialect.td"

/// A rank or a group.
defvar Exec_RankNumber = ConfinedAttr<I64Attr, [IntNonNegative]>;

/// What the ranks of a group do together: all run the same collectives of the
/// group in the same order. Group 0 is all ranks. `node` names the model's node
/// or the variables that it is of, for errors and traces.
class Exec_Collective<string mnemonic, dag more = (ins)>
    : Exec_Start<mnemonic, [DeclareOpInterfaceMethods<CommandOpInterface,
                                ["getReads", "getWrites", "getGroupOfRanks"]>]> {
  let arguments = !con((ins Exec_BufferType:$from, Exec_BufferType:$to,
                            TypeAttr:$type, AffineMapAttr:$count), more,
                       (ins DefaultValuedAttr<Exec_RankNumber, "0">:$group,
                            OptionalAttr<StrAttr>:$node,
                            DefaultValuedAttr<I64Attr, "0">:$lane));
  let assemblyFormat = [{
    $from `to` $to `as` $type `count` $count attr-dict
    `:` qualified(type($from)) `,` qualified(type($to))
  }];
  let extraClassDefinition = [{
    ::llvm::SmallVector<::mlir::Value> $cppClass::getReads() {
      return {getFrom()};
    }
    ::llvm::SmallVector<::mlir::Value> $cppClass::getWrites() {
      if (::tcc::exec::getRoot(getFrom()) == ::tcc::exec::getRoot(getTo()))
        return {getTo(), getFrom()};
      return {getTo()};
    }
    ::std::optional<uint64_t> $cppClass::getGroupOfRanks() {
      return getGroup();
    }
    ::llvm::LogicalResult $cppClass::verify() {
      if (!isSizeMap(getCount(), 1))
        return emitOpError("expected one number of elements");
      return ::mlir::success();
    }
  }];
  let hasVerifier = 1;
}

def Exec_StartAllReduceOp : Exec_Collective<"start_all_reduce",
                                            (ins UnitAttr:$tree)> {
  let summary = "starts to sum a buffer over the ranks";
  let description = [{
    to[i] = sum_r from_r[i] on every rank, i < count. `to` may be `from`. With
    `tree` in the order of graph.all_reduce's.

    Example: `%sum = exec.start_all_reduce %x to %y as f32
      count affine_map<() -> (4)> : !exec.buffer<host>, !exec.buffer<host>`
  }];
}

def Exec_StartReduceScatterOp : Exec_Collective<"start_reduce_scatter"> {
  let summary = "starts to sum a buffer over the ranks, each of which gets a part";
  let description = [{
    to[i] = sum_r from_r[rank * count + i], i < count. `to` may be the view of
    these elements of `from`: what the rest of it holds afterwards is undefined.

    Example: `%part = exec.start_reduce_scatter %x to %y as f32
      count affine_map<() -> (4)> : !exec.buffer<host>, !exec.buffer<host>`
  }];
}

def Exec_StartAllGatherOp : Exec_Collective<"start_all_gather"> {
  let summary = "starts to gather the ranks' parts of a buffer";
  let description = [{
    to[r * count + i] = from_r[i] on every rank, i < count. `from` may be the view
    of the rank's own elements of `to`.

    Example: `%whole = exec.start_all_gather %x to %y as f32
      count affine_map<() -> (4)> : !exec.buffer<host>, !exec.buffer<host>`
  }];
}

def Exec_StartBroadcastOp : Exec_Collective<"start_broadcast",
                                            (ins Exec_RankNumber:$root)> {
  let summary = "starts to give all ranks the buffer of one";
  let description = [{
    to[i] = from_root[i] on every rank, i < count. `to` may be `from`.

    Example: `%given = exec.start_broadcast %x to %y as f32
      count affine_map<() -> (4)> {root = 0 : i64}
      : !exec.buffer<host>, !exec.buffer<host>`
  }];
}

#endif // TCC_EXEC_COLLECTIVE
