"""gpubench.check() on tensors of several packages, with results computed by hand: check_test.py [TEST ...]"""

import array
import math
import unittest

import gpubench

try:
    import numpy
except ImportError:
    numpy = None
try:
    import torch
except ImportError:
    torch = None


def floats(values, *shape):
    """A buffer of f32 without any package."""
    flat = array.array("f", values)
    return memoryview(flat).cast("B").cast("f", shape=list(shape) or [len(flat)])


def rms_norm(rows, width=2):
    """x, gamma, y, rstd of rms_norm_forward with epsilon 0, by its formula."""
    rstd = [1 / math.sqrt(sum(v * v for v in row) / width) for row in rows]
    y = [v * r for row, r in zip(rows, rstd) for v in row]
    flat = [v for row in rows for v in row]
    return (
        {"x": floats(flat, len(rows), width), "gamma": floats([1.0] * width)},
        {"y": floats(y, len(rows), width), "rstd": floats(rstd)},
    )


class Buffers(unittest.TestCase):
    def test_right_numbers_pass_with_all_elements_judged(self):
        found = gpubench.check("rms_norm_forward", *rms_norm([[3.0, 4.0], [1.0, -1.0]]), epsilon=0.0)
        self.assertTrue(found, str(found))
        self.assertEqual((found.verdict, found.judged, found.elements, found.bad), ("pass", 6, 6, 0))
        self.assertLessEqual(found.error_over_bound, 1.0)

    def test_a_wrong_element_is_named_with_what_it_should_be(self):
        inputs, outputs = rms_norm([[3.0, 4.0], [1.0, -1.0]])
        outputs["y"][0, 1] *= 1.001
        found = gpubench.check("rms_norm_forward", inputs, outputs, epsilon=0.0)
        self.assertFalse(found)
        self.assertEqual((found.verdict, found.operand, found.index, found.bad), ("fail", "y", (0, 1), 1))
        self.assertAlmostEqual(found.want, 4 / math.sqrt(12.5), places=12)
        self.assertAlmostEqual(found.got, 1.001 * found.want, places=6)
        self.assertLess(found.bound, 1e-6)
        with self.assertRaisesRegex(AssertionError, r"rms_norm_forward: fail: .*y\[0, 1\].*times the bound"):
            gpubench.assert_conformant("rms_norm_forward", inputs, outputs, epsilon=0.0)

    def test_a_nan_and_outputs_of_zeros_fail(self):
        inputs, outputs = rms_norm([[3.0, 4.0]])
        outputs["y"][0, 0] = math.nan
        self.assertFalse(gpubench.check("rms_norm_forward", inputs, outputs, epsilon=0.0))
        outputs["y"] = floats([0.0, 0.0], 1, 2)
        self.assertFalse(gpubench.check("rms_norm_forward", inputs, outputs, epsilon=0.0))

    def test_an_attribute_counts(self):
        inputs, outputs = rms_norm([[3.0, 4.0]])
        self.assertTrue(gpubench.check("rms_norm_forward", inputs, outputs, epsilon=0.0))
        self.assertFalse(gpubench.check("rms_norm_forward", inputs, outputs, epsilon=1.0))

    def test_an_input_that_a_switch_asks_for_switches_it_on(self):
        a, b, bias = floats([1, 2, 3, 4], 2, 2), floats([1, 0, 0, 1], 2, 2), floats([10, 20])
        c = floats([11, 22, 13, 24], 2, 2)
        self.assertTrue(gpubench.check("gemm", {"a": a, "b": b, "bias": bias}, {"c": c}))
        self.assertFalse(gpubench.check("gemm", {"a": a, "b": b}, {"c": c}))

    def test_a_loss_over_no_labels_must_be_nan(self):
        labels = memoryview(array.array("i", [-100, -100]))
        inputs = {"logits": floats([0.0] * 8, 2, 4), "labels": labels}
        lse = floats([math.log(4)] * 2)
        for loss, passes in [(math.nan, True), (0.0, False)]:
            found = gpubench.check("cross_entropy_forward", inputs, {"loss": floats([loss]), "lse": lse}, ignores=True)
            self.assertEqual(found.passed, passes, str(found))

    def test_lists_are_judged_item_by_item(self):
        # gradient_norm of (3), (4): 5.
        grads = [floats([3.0]), floats([4.0])]
        self.assertTrue(gpubench.check("gradient_norm", {"g": grads}, {"norm": floats([5.0])}))
        self.assertFalse(gpubench.check("gradient_norm", {"g": grads}, {"norm": floats([5.001])}))

    def test_what_cannot_be_judged_says_why(self):
        inputs, outputs = rms_norm([[3.0, 4.0]])
        wrong = [
            ("rms_norm_fwd", inputs, outputs, {}, "no op 'rms_norm_fwd'"),
            ("rms_norm_forward", {"x": inputs["x"]}, outputs, {}, "missing gamma.*x, gamma"),
            ("rms_norm_forward", {**inputs, "beta": inputs["gamma"]}, outputs, {}, "no operand beta"),
            ("rms_norm_forward", inputs, outputs, {"eps": 1e-5}, "no attribute 'eps'.*epsilon"),
            ("rms_norm_forward", inputs, outputs, {"epsilon": "tiny"}, "epsilon"),
            ("rms_norm_forward", inputs, outputs, {"accumulate": "f31"}, "f31"),
            ("all_reduce", {}, {}, {}, "collective"),
        ]
        for op, given, results, options, text in wrong:
            with self.subTest(text), self.assertRaisesRegex(ValueError, text):
                gpubench.check(op, given, results, **options)
        with self.assertRaisesRegex(TypeError, "x: .*not a readable tensor"):
            gpubench.check("rms_norm_forward", {**inputs, "x": 3.0}, outputs)

    def test_shapes_that_do_not_fit_are_an_error_and_no_crash(self):
        inputs, outputs = rms_norm([[3.0, 4.0], [1.0, -1.0]])
        for given, results in [
            ({**inputs, "gamma": floats([1.0])}, outputs),
            ({**inputs, "x": floats([3.0, 4.0], 1, 2)}, outputs),
            ({**inputs, "x": floats([3.0], 1)}, outputs),
            (inputs, {**outputs, "rstd": floats([1.0] * 3)}),
            (inputs, {**outputs, "y": floats([1.0] * 6, 2, 3)}),
        ]:
            with self.subTest(str(given) + str(results)), self.assertRaises(ValueError):
                gpubench.check("rms_norm_forward", given, results, epsilon=0.0)
        with self.assertRaisesRegex(ValueError, "no elements"):
            gpubench.check("copy", {"x": (array.array("f"),)}, {"y": (array.array("f"),)})


@unittest.skipIf(numpy is None, "NumPy is not installed")
class NumPy(unittest.TestCase):
    def test_views_with_strides_are_read_in_place(self):
        a = numpy.arange(12, dtype="f4").reshape(3, 4)
        b = numpy.arange(24, dtype="f4").reshape(4, 6)[:, ::2]
        self.assertTrue(gpubench.check("gemm", {"a": a, "b": b}, {"c": a @ b}))
        self.assertTrue(gpubench.check("gemm", {"a": a[::-1], "b": b}, {"c": (a @ b)[::-1]}))

    def test_f64_is_held_to_f64(self):
        rng = numpy.random.default_rng(1)
        a, b = rng.standard_normal((5, 7)), rng.standard_normal((7, 3))
        self.assertTrue(gpubench.check("gemm", {"a": a, "b": b}, {"c": a @ b}))
        single = (a.astype("f4") @ b.astype("f4")).astype("f8")
        self.assertFalse(gpubench.check("gemm", {"a": a, "b": b}, {"c": single}))

    def test_types_that_no_op_has_are_refused_by_name(self):
        with self.assertRaisesRegex(TypeError, "a: dtype complex64"):
            gpubench.check("gemm", {"a": numpy.zeros((1, 1), "c8"), "b": numpy.zeros((1, 1), "f4")}, {})

    def test_labels_of_64_bits_are_taken_where_they_fit(self):
        logits = numpy.zeros((2, 4), "f4")
        outputs = {"loss": numpy.full(1, math.log(4), "f4"), "lse": numpy.full(2, math.log(4), "f4")}
        self.assertTrue(gpubench.check("cross_entropy_forward", {"logits": logits, "labels": numpy.array([1, 3])}, outputs))
        with self.assertRaisesRegex(ValueError, "labels: 64-bit"):
            gpubench.check("cross_entropy_forward", {"logits": logits, "labels": numpy.array([1, 1 << 40])}, outputs)


@unittest.skipIf(torch is None, "PyTorch is not installed")
class PyTorch(unittest.TestCase):
    def test_softmax_in_bf16_passes_and_one_computed_in_bf16_steps_does_not(self):
        torch.manual_seed(1)
        x = torch.randn(8, 300, dtype=torch.bfloat16)
        right = torch.softmax(x.float(), -1).bfloat16()
        self.assertTrue(gpubench.check("softmax_forward", {"x": x}, {"y": right}))
        e = torch.exp(x)
        self.assertFalse(gpubench.check("softmax_forward", {"x": x}, {"y": e / e.sum(-1, keepdim=True) * 1.02}))

    def test_attention_is_judged_with_its_mask(self):
        torch.manual_seed(2)
        b, s, h, d = 2, 5, 3, 8
        q, k, v = (torch.randn(b, s, h, d, requires_grad=True) for _ in range(3))
        scores = torch.einsum("bshd,bthd->bhst", q, k) / math.sqrt(d)
        mask = torch.ones(s, s).tril().bool()

        def results(scores):
            return {
                "o": torch.einsum("bhst,bthd->bshd", torch.softmax(scores, -1), v),
                "lse": torch.logsumexp(scores, -1),
            }

        inputs = {"q": q, "k": k, "v": v}
        causal = results(scores.masked_fill(~mask, -math.inf))
        gpubench.assert_conformant("attention_forward", inputs, causal, causal=True, scale=1 / math.sqrt(d))
        found = gpubench.check("attention_forward", inputs, results(scores), causal=True, scale=1 / math.sqrt(d))
        self.assertFalse(found)
        self.assertEqual(found.verdict, "fail")


if __name__ == "__main__":
    unittest.main()
