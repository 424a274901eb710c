#!/usr/bin/env python3
"""Compares every op, gradient and training step with PyTorch in fp64: oracle_test.py WRITE_PROGRAMS FOLDER

WRITE_PROGRAMS evaluates its programs with the textbook and writes them to FOLDER. A tensor's error is the 2-norm of
the difference relative to PyTorch's result: at most 1e-10, and 0 for ops that only move numbers or round them once.
"""
import collections
import subprocess
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
try:
    import torch
except ImportError as missing:
    print(f"skipped: {missing} (Debian: python3-torch)")
    sys.exit(77)
import recorded  # noqa: E402
import torch_models  # noqa: E402
import torch_ops  # noqa: E402

limit = 1e-10
# Attributes of a gemm that these ops refuse.
fixed = {(kind, name) for kind in ("gemm_gelu_bias_gradient", "gemm_weight_bias_gradient") for name in ("beta", "bias", "blocks", "epilogue", "scaled")}
fixed.add(("gemm_weight_bias_gradient", "gelu_form"))
fixed.add(("routing_backward", "bias"))  # has no gradient
# Attributes shared by all cross-entropies that do not apply to these ops.
fixed |= {("cross_entropy_forward", name) for name in ("scaled", "first", "classes")}
fixed |= {("cross_entropy_forward_backward", name) for name in ("first", "classes")}
fixed |= {("cross_entropy_partial", name) for name in ("scaled", "z_loss", "given_count")}
fixed |= {("cross_entropy_combine", name) for name in ("scaled", "first", "classes", "label_smoothing")}
here = "tests/reference/ops/oracle"


def error(got, want):
    """Relative, in the 2-norm; infinite if shapes, NaNs or infinities differ, or if a zero result is not exactly zero."""
    if list(got.shape) != list(want.shape):
        return float("inf")
    got, want = got.double(), want.detach().double()
    infinite = want.isinf()
    if not torch.equal(got[infinite], want[infinite]):
        return float("inf")
    got, want = got[~infinite], want[~infinite]
    if torch.equal(got, want):
        return 0.0
    difference, size = (got - want).norm().item(), want.norm().item()
    return difference / size if size > 0 and difference == difference else float("inf")


def largest_error(got, want):
    """The same per element; equal NaNs and infinities have no error."""
    rest = ~((got == want) | (got.isnan() & want.isnan()))
    each = ((got - want) / want).abs()[rest]
    return 0.0 if not rest.any() else each.max().item() if each.isfinite().all() else float("inf")


class Compared:
    """The worst error of each group, and the tensors beyond the limit."""

    def __init__(self):
        self.tensors, self.worst, self.wrong = collections.Counter(), collections.defaultdict(float), []

    def compare(self, group, what, got, want, error=error):
        if isinstance(want, (list, tuple)):
            assert len(got) == len(want), f"{what}: {len(got)} tensors, expected {len(want)}"
            for i, pair in enumerate(zip(got, want)):
                self.compare(group, f"{what}[{i}]", *pair, error)
            return
        found = error(got, want)
        self.tensors[group] += 1
        self.worst[group] = max(self.worst[group], found)
        if not found <= limit:
            self.wrong.append(f"{what}: shape {list(got.shape)}, expected {list(want.shape)}, error {found:.2e}")

    def __str__(self):
        lines = [f"{group}: {count} tensors, largest error {self.worst[group]:.1e}" for group, count in sorted(self.tensors.items())]
        return "\n".join(lines + [f"all: {sum(self.tensors.values())} tensors"])


class Interpreter:
    """Runs the forward of a program with PyTorch's ops, so that autograd can differentiate it."""

    def __init__(self, program):
        self.program = program
        self.known = {i: tensor.requires_grad_(tensor.is_floating_point()) for i, tensor in program.sources.items()}
        for op in program.ops[:program.forward_ops]:
            results = torch_ops.compute(op, [self.values(ids) for ids in op.input_ids.values()])
            for name, ids in op.output_ids.items():
                self.known.update(zip(ids, results[name]) if isinstance(ids, list) else [(ids, results[name])])

    def values(self, ids):
        return [self.values(i) for i in ids] if isinstance(ids, list) else self.value(ids)

    def value(self, i):
        value = self.program.values[i]
        if i not in self.known and "part_of" in value:  # a view of a dense whole
            whole = self.value(value["part_of"])
            self.known[i] = torch.as_strided(whole.contiguous(), value["shape"], value["strides"], value["first"])
        return self.known[i]

    def gradients(self, wanted):
        seeds = self.program.seeds
        ones = [self.program.sources.get(seed["gradient"], torch.ones(1, dtype=torch.float64)).detach() for seed in seeds]
        return torch.autograd.grad([self.value(seed["value"]) for seed in seeds], [self.value(i) for i in wanted], ones)


class Oracle(unittest.TestCase):
    registry, training_steps, programs = [], [], []
    maxDiff = None

    def expect(self, compared):
        print(compared)
        self.assertEqual("\n".join(compared.wrong[:20]), "", f"{len(compared.wrong)} tensors are wrong")

    def test_errors_are_relative_and_nothing_odd_passes(self):
        one, nan = torch.ones(4, dtype=torch.float64), torch.full((4,), float("nan"), dtype=torch.float64)
        self.assertLess(abs(error(one * (1 + 1e-9), one) - 1e-9), 1e-15)
        self.assertEqual(error(torch.zeros(4), torch.zeros(4)), 0.0)
        for got, want in ((one, 0 * one), (nan, one), (one, nan), (nan, nan), (one, one.reshape(2, 2)), (one / 0, one)):
            self.assertEqual(error(got, want), float("inf"))

    def test_every_op_of_every_program_agrees(self):
        compared = Compared()
        for program in self.programs:
            for op in program.ops:
                if op.kind not in torch_ops.table:
                    continue  # the next test names it
                results = torch_ops.compute(op, list(op.inputs.values()))
                for name, want in results.items():
                    what = f"{program.name}: {op.kind} '{op.label}', {name}"
                    by_element = program.name == "special values" or name == "loss"  # NaN where nothing counts
                    compared.compare(op.kind, what, op.outputs[name], want, largest_error if by_element else error)
        self.expect(compared)

    def test_every_op_has_an_oracle(self):
        used = {op.kind for program in self.programs for op in program.ops}
        missing = [f"op '{kind}' has no oracle: say in {here}/torch_ops.py what PyTorch computes for it" for kind in self.registry
                   if kind not in torch_ops.table]
        missing += [f"op '{kind}' is in no program of the oracle: add its variants to suites/variants" for kind in self.registry if kind not in used]
        self.assertEqual("\n".join(missing), "")

    def test_every_training_step_has_an_oracle(self):
        used = {program.name.split()[0] for program in self.programs}
        missing = [f"training step '{name}' has no oracle: write its model from the paper in {here}/torch_models.py, and add it to models.cpp there"
                   for name in self.training_steps if name not in torch_models.table or name not in used]
        self.assertEqual("\n".join(missing), "")

    def test_every_attribute_takes_several_values(self):
        values = collections.defaultdict(set)
        for program in self.programs:
            for op in program.ops:
                for name, value in op.attributes.items():
                    values[op.kind, name].add(str(value))
        alike = [f"{kind} is compared with one value of '{name}' only ({', '.join(found)}): add a factor to suites/variants"
                 for (kind, name), found in sorted(values.items()) if len(found) < 2 and (kind, name) not in fixed]
        self.assertEqual("\n".join(alike), "")

    def test_gradients_of_every_differentiated_program_agree_with_autograd(self):
        compared = Compared()
        for program in self.programs:
            if not program.gradients:
                continue
            wanted = list(program.gradients)
            for i, want in zip(wanted, Interpreter(program).gradients(wanted)):
                name = program.values[i]["name"]
                want = torch_ops.without_noise(want)
                compared.compare(program.name.split()[0].strip(","), f"{program.name}: d({name})", program.gradients[i], want)
        self.expect(compared)

    def test_training_steps_agree_with_models_written_from_the_papers(self):
        compared = Compared()
        for program in self.programs:
            workload = program.name.split()[0]
            if workload not in torch_models.table:
                continue
            for name, (got, want) in torch_models.steps_of(workload, program).items():
                compared.compare(program.name, f"{program.name}: {name}", got, want)
        self.expect(compared)



if __name__ == "__main__":
    write_programs, folder = sys.argv[1:3]
    subprocess.run([write_programs, folder], check=True)
    torch.set_num_threads(1)  # tensors are small
    index, Oracle.programs = recorded.read(folder)
    Oracle.registry, Oracle.training_steps = index["registry"], index["training_steps"]
    unittest.main(argv=sys.argv[:1], verbosity=2)
