"""Each lint rule finds what it forbids and leaves its neighbour alone."""

import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../../tools/lint"))

import lint


def findings(rule, **texts):
    """What the rule finds in files of the given path=text."""
    return [m for _, _, m in rule([lint.File(p, t) for p, t in texts["files"].items()])]


def body(lines):
    return "void f() {\n" + "  g();\n" * lines + "}\n"


class LintTest(unittest.TestCase):
    def expect_one(self, rule, files):
        self.assertEqual(len(findings(rule, files=files)), 1, files)

    def expect_none(self, rule, files):
        self.assertEqual(findings(rule, files=files), [], files)

    def test_percentile_is_of_the_ordered_lengths(self):
        self.assertEqual(lint.percentile95(range(1, 101)), 95)
        self.assertEqual(lint.percentile95([]), 0)

    def test_long_file(self):
        short = {f"runtime/{i}.cpp": "x\n" for i in range(40)}
        self.expect_none(lint.check_file_length, {**short, "runtime/a.cpp": "x\n" * 600})
        self.expect_one(lint.check_file_length, {**short, "runtime/a.cpp": "x\n" * 601})

    def test_size(self):
        small, large = (lint.File("a.npz", "", size) for size in (65536, 65537))
        self.assertEqual([path for path, _, _ in lint.check_size([small, large])], ["a.npz"])

    def test_long_function(self):
        many = body(1) * 40
        self.expect_none(lint.check_function_length, {"a.cpp": many + body(78)})
        self.expect_one(lint.check_function_length, {"a.cpp": many + body(79)})

    def test_functions_of_a_class(self):
        text = "struct S {\n  S(int a,\n    int b)\n      : a(a) {\n    h();\n  }\n};\n"
        self.assertEqual(list(lint.cxx_functions(text.splitlines())), [(1, 5)])

    def test_blocks_are_not_functions(self):
        text = "namespace a {\nint x[] = {\n};\n}\nif (b) {\n}\nfor (;;) {\n}\n"
        self.assertEqual(list(lint.cxx_functions(text.splitlines())), [])

    def test_long_lit_file(self):
        self.expect_one(lint.check_lit_length, {"tests/a.mlir": "x\n" * 121})
        self.expect_none(lint.check_lit_length, {"tests/a.mlir": "x\n" * 120})

    def test_words(self):
        self.expect_one(lint.check_words, {"a.cpp": "// see /" + "work/x\n"})
        self.expect_one(lint.check_words, {"a.cpp": "// TODO later\n"})
        self.expect_none(lint.check_words, {"a.cpp": "// TODO(#12) build/work/x\n"})

    def test_headers(self):
        guarded = "#ifndef A_H\n#define A_H\n#endif\n"
        self.expect_none(lint.check_headers, {"a.h": guarded})
        self.expect_one(lint.check_headers, {"a.h": "int x;\n"})
        self.expect_one(lint.check_headers, {"a.h": guarded + "using namespace std;\n"})

    def test_wall(self):
        def include(path, header):
            return {path: f'#include "{header}"\n'}

        for header in ("runtime/base/Status.h", "runtime/executor/Prepare.h"):
            self.expect_none(lint.check_wall, include("compiler/a.cpp", header))
        other = "runtime/executor/Walker.h"
        self.expect_one(lint.check_wall, include("compiler/a.cpp", other))
        self.expect_one(lint.check_wall, include("dialects/exec/A.h", other))
        self.expect_none(lint.check_wall, include("tools/tcc-run/a.cpp", other))

    def test_layers(self):
        one_way = {
            "compiler/a.cpp": '#include "frontends/b.h"\n#include "tcc/c.h"\n',
            "frontends/b.h": '#include "frontends/d.h"\n',
            "compiler/include/tcc/c.h": "",
            "runtime/train/e.cpp": '#include "runtime/base/f.h"\n',
            "tests/g.cpp": '#include "compiler/h.h"\n',
        }
        self.expect_none(lint.check_layers, one_way)
        public = {"frontends/b.h": '#include "tcc/c.h"\n'}
        self.assertEqual(len(findings(lint.check_layers, files={**one_way, **public})), 2)
        within = {"runtime/base/f.h": '#include "runtime/train/e.h"\n'}
        self.assertEqual(len(findings(lint.check_layers, files={**one_way, **within})), 2)
        over = {
            "dialects/i.h": '#include "compiler/j.h"\n',
            "frontends/b.h": '#include "dialects/i.h"\n',
        }
        self.assertEqual(len(findings(lint.check_layers, files={**one_way, **over})), 3)
        folders = {
            "compiler/codegen/cpu/k.h": '#include "compiler/codegen/region/l.h"\n',
            "dialects/graph/ops/m.cpp": '#include "dialects/graph/n.h"\n',
            "dialects/graph/n.h": '#include "dialects/graph/ops/m.h"\n',
        }
        self.expect_none(lint.check_layers, folders)
        within = {"compiler/codegen/region/l.h": '#include "compiler/codegen/cpu/k.h"\n'}
        self.assertEqual(len(findings(lint.check_layers, files={**folders, **within})), 2)

    def test_comments(self):
        for comment in ("/// Of the last one.", "  // Those that end.", "  int x; ///< of all\n// Likewise"):
            self.expect_one(lint.check_comments, {"runtime/a.h": comment + "\n"})
        for comment in ("/// The offset\n/// Of it.", "/// Offers more.", "int x; ///< Of all"):
            self.expect_none(lint.check_comments, {"runtime/a.h": comment + "\n"})

    def test_targets(self):
        path = "compiler/passes/exec/A.cpp"
        for line in ("cuda::getAlignments(fused);", 'if (name == "cuda")',
                     '#include "compiler/codegen/cuda/CudaTarget.h"',
                     "machine.libraryFlopsPerMicrosecond == 0", "x.launchMicroseconds > 0"):  # fmt: skip
            self.expect_one(lint.check_targets, {path: line + "\n"})
        self.expect_one(lint.check_targets, {path: '"cpu"\n'})
        self.expect_none(lint.check_targets, {"compiler/codegen/cuda/A.cpp": '"cuda"\n'})
        self.expect_none(lint.check_targets, {"tools/tcc/Options.cpp": '"cuda"\n'})
        self.expect_none(lint.check_targets, {path: "bytes / machine.bytesPerMicrosecond\n"})

    def test_op_lists(self):
        path = "compiler/passes/graph/A.cpp"
        for other in (path, "compiler/lowering/A.cpp", "dialects/graph/A.h"):
            text = "isa<AddOp,\n    SubOp, graph::MulOp>(x)"
            self.expect_one(lint.check_op_lists, {other: text})
        text = "isa<\n    AddOp, SubOp, MulOp>(x)"
        self.expect_one(lint.check_op_lists, {path: text})
        self.expect_none(lint.check_op_lists, {path: "isa<AddOp, SubOp>(x)"})
        text = "isa<MapOpInterface, RowOpInterface, SumOpInterface>(x)"
        self.expect_none(lint.check_op_lists, {path: text})

    def test_log_readers(self):
        text = "for (const Decision &decision : getDecisions(module))\n"
        self.expect_one(lint.check_log_readers, {"compiler/pipeline/Budget.cpp": text})
        self.expect_one(lint.check_log_readers, {"tools/tcc/main.cpp": 'f("graph.decisions");\n'})
        self.expect_none(lint.check_log_readers, {"compiler/pipeline/Provenance.cpp": text})
        text = "result.decisions = describeDecisions(module);\n"
        self.expect_one(lint.check_log_readers, {"compiler/pipeline/Build.cpp": text})
        self.expect_none(lint.check_log_readers, {"compiler/pipeline/Compile.cpp": text})
        log = 'DecisionLog log(getOperation(), "fuse-ops");\n'
        self.expect_none(lint.check_log_readers, {"compiler/passes/graph/FuseOps.cpp": log})

    def test_command_switches(self):
        path, cases = "runtime/a.cpp", "  case Action::Launch:\n  case Action::Copy:\n"
        inner = "    switch (b) {\n    default:\n      f();\n    }\n"
        switch = "  switch (a) {\n" + cases + inner
        self.expect_one(lint.check_command_switches, {path: switch + "  default:\n  }\n"})
        self.expect_none(lint.check_command_switches, {path: switch + "  }\n"})

    def test_names(self):
        schema = {lint.NAMES: "enum EntryKind : ubyte {\n  main = 0, // the model\n  apply\n}\n"}
        found = {**schema, "compiler/train/A.cpp": 'build("apply"); // "main"\n'}
        self.expect_one(lint.check_names, found)
        self.expect_one(lint.check_names, {**schema, "runtime/a/B.h": 'x = "main";\n'})
        self.expect_one(lint.check_names, {**schema, "tools/A.cpp": 'f("step/seed");\n'})
        others = {"compiler/A.cpp": 'f("applied");\n', "tests/A.cpp": 'f("apply");\n'}
        self.expect_none(lint.check_names, {**schema, **others})

    def test_mirrored_tests(self):
        passes = {"compiler/passes/graph/Passes.td": 'def F : Pass<"tcc-fuse-ops"> {}'}
        test = {"tests/compiler/passes/graph/fuse-ops.mlir": ""}
        self.expect_one(lint.check_mirrored_tests, passes)
        self.expect_none(lint.check_mirrored_tests, {**passes, **test})
        family = {"dialects/graph/ops/Pointwise.td": ""}
        self.expect_one(lint.check_mirrored_tests, family)
        self.expect_one(lint.check_mirrored_tests, {"runtime/devices/cpu/Pool.cpp": ""})


if __name__ == "__main__":
    result = unittest.main(exit=False, verbosity=0).result
    bad = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - bad} passed, {bad} failed")
    sys.exit(bad > 0)
