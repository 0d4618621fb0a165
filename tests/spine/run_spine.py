"""Compiles the spine model once and checks it in every way against ONNX Runtime.

    run_spine.py TCC TCC_RUN LIBTCC_RUNTIME WORK_DIR
"""

import pathlib
import subprocess
import sys
import unittest

import numpy as np
import onnxruntime
from safetensors.numpy import save_file

import capi
import spine_model

onnxruntime.set_default_logger_severity(3)
TCC, TCC_RUN, LIBRARY, WORK = sys.argv[1:5]
WORK = pathlib.Path(WORK)
OUTPUTS = ["y", "next_state"]


def inputs(batch, flag=True, trips=3, seed=1):
    random = np.random.RandomState(seed)
    return {
        "x": random.rand(batch, 3, 16, 16).astype(np.float32),
        "flag": np.array(flag),
        "trips": np.array(trips, np.int64),
        "state": random.rand(1, spine_model.FEATURES).astype(np.float32),
    }


def session(seed=0):
    return onnxruntime.InferenceSession(
        spine_model.build(seed).SerializeToString(),
        providers=["CPUExecutionProvider"],
    )


def tool(*command):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True)


class Spine(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        WORK.mkdir(parents=True, exist_ok=True)
        model = WORK / "spine.onnx"
        model.write_bytes(spine_model.build().SerializeToString())
        cls.package = WORK / "spine.tcc"
        done = tool(
            TCC, model, "-o", cls.package, "--dim", "batch=1..8",
            "--state", "next_state=state",
        )  # fmt: skip
        if done.returncode:
            raise AssertionError(done.stderr)
        cls.library = capi.Library(LIBRARY)
        cls.program = cls.library.open(cls.package)
        cls.reference = session()

    def check(self, actual, expected):
        for a, e in zip(actual, expected, strict=True):
            np.testing.assert_allclose(a, e, rtol=1e-3, atol=1e-4 * abs(e).max())

    def compare(self, threads=1, **case):
        feed = inputs(**case)
        context = capi.Context(self.library, self.program, threads)
        self.check(context.run(feed, OUTPUTS), self.reference.run(OUTPUTS, feed))

    def test_every_batch_size_of_the_range(self):
        for batch in range(1, 9):
            self.compare(batch=batch)

    def test_if_goes_both_ways(self):
        self.compare(batch=2, flag=True)
        self.compare(batch=2, flag=False)

    def test_loop_runs_as_often_as_asked(self):
        for trips in (0, 1, 7):
            self.compare(batch=2, trips=trips)

    def test_state_is_carried_over_ten_runs(self):
        context = capi.Context(self.library, self.program)
        state = inputs(2)["state"]
        for step in range(10):
            feed = inputs(2, seed=step) | {"state": state}
            expected = self.reference.run(OUTPUTS, feed)
            if step:
                del feed["state"]
            self.check(context.run(feed, OUTPUTS), expected)
            state = expected[1]

    def test_same_bits_at_any_thread_count(self):
        feed = inputs(8)
        results = set()
        for threads in (1, 2, 4):
            context = capi.Context(self.library, self.program, threads)
            for _ in range(34):
                values = context.run(feed, OUTPUTS)
                results.add(b"".join(v.tobytes() for v in values))
        self.assertEqual(len(results), 1)

    def test_new_weights_pass_through_the_batch_norm_fold(self):
        weights = WORK / "new.safetensors"
        save_file(spine_model.weights(7), weights)
        expected = session(7)
        for batch in (1, 8):
            feed = inputs(batch)
            case = WORK / f"batch{batch}"
            case.mkdir(exist_ok=True)
            for i, value in enumerate(feed.values()):
                np.save(case / f"input_{i}.npy", value)
            for i, value in enumerate(expected.run(OUTPUTS, feed)):
                np.save(case / f"output_{i}.npy", value)
            done = tool(
                TCC_RUN, "run", self.package, "--weights", weights,
                "--inputs-dir", case, "--expect-dir", case,
            )  # fmt: skip
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_batch_out_of_range_is_refused(self):
        context = capi.Context(self.library, self.program)
        with self.assertRaisesRegex(RuntimeError, "batch"):
            context.run(inputs(9), OUTPUTS)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
