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
    def expectOne(self, rule, files):
        self.assertEqual(len(findings(rule, files=files)), 1, files)

    def expectNone(self, rule, files):
        self.assertEqual(findings(rule, files=files), [], files)

    def testPercentileIsOfTheOrderedLengths(self):
        self.assertEqual(lint.percentile95(range(1, 101)), 95)
        self.assertEqual(lint.percentile95([]), 0)

    def testLongFile(self):
        short = {f"runtime/{i}.cpp": "x\n" for i in range(40)}
        self.expectNone(lint.checkFileLength, {**short, "runtime/a.cpp": "x\n" * 600})
        self.expectOne(lint.checkFileLength, {**short, "runtime/a.cpp": "x\n" * 601})

    def testLongFunction(self):
        many = body(1) * 40
        self.expectNone(lint.checkFunctionLength, {"a.cpp": many + body(78)})
        self.expectOne(lint.checkFunctionLength, {"a.cpp": many + body(79)})

    def testFunctionsOfAClass(self):
        text = "struct S {\n  S(int a,\n    int b)\n      : a(a) {\n    h();\n  }\n};\n"
        self.assertEqual(list(lint.cxxFunctions(text.splitlines())), [(1, 5)])

    def testBlocksAreNotFunctions(self):
        text = "namespace a {\nint x[] = {\n};\n}\nif (b) {\n}\nfor (;;) {\n}\n"
        self.assertEqual(list(lint.cxxFunctions(text.splitlines())), [])

    def testLongLitFile(self):
        self.expectOne(lint.checkLitLength, {"tests/a.mlir": "x\n" * 121})
        self.expectNone(lint.checkLitLength, {"tests/a.mlir": "x\n" * 120})

    def testWords(self):
        self.expectOne(lint.checkWords, {"a.cpp": "// see /" + "work/x\n"})
        self.expectOne(lint.checkWords, {"a.cpp": "// TODO later\n"})
        self.expectNone(lint.checkWords, {"a.cpp": "// TODO(#12) build/work/x\n"})

    def testHeaders(self):
        guarded = "#ifndef A_H\n#define A_H\n#endif\n"
        self.expectNone(lint.checkHeaders, {"a.h": guarded})
        self.expectOne(lint.checkHeaders, {"a.h": "int x;\n"})
        self.expectOne(lint.checkHeaders, {"a.h": guarded + "using namespace std;\n"})

    def testOpLists(self):
        path = "compiler/passes/graph/A.cpp"
        self.expectOne(lint.checkOpLists, {path: "isa<AddOp,\n    SubOp, g::MulOp>(x)"})
        self.expectNone(lint.checkOpLists, {path: "isa<AddOp, SubOp>(x)"})

    def testMirroredTests(self):
        passes = {"compiler/passes/graph/Passes.td": 'def F : Pass<"tcc-fuse-ops"> {}'}
        test = {"tests/compiler/passes/graph/fuse-ops.mlir": ""}
        self.expectOne(lint.checkMirroredTests, passes)
        self.expectNone(lint.checkMirroredTests, {**passes, **test})
        family = {"dialects/graph/ops/Pointwise.td": ""}
        self.expectOne(lint.checkMirroredTests, family)
        self.expectOne(lint.checkMirroredTests, {"runtime/devices/cpu/Pool.cpp": ""})


if __name__ == "__main__":
    result = unittest.main(exit=False, verbosity=0).result
    bad = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - bad} passed, {bad} failed")
    sys.exit(bad > 0)
