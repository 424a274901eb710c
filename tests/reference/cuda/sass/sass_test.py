#!/usr/bin/env python3
"""The machine code of own kernels, without a GPU: sass_test.py LIBRARY [FOLDER ...]
FOLDERs may have cuobjdump, with nvdisasm beside it; so may PATH. Prints a table. Is enough of memory on its way at once to keep it busy, and does nothing go through local memory?
"""
import os
import re
import shutil
import sys
import unittest
from dataclasses import dataclass
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
import listing  # noqa: E402

library = Path(sys.argv[1])
cuobjdump = shutil.which("cuobjdump", path=os.pathsep.join([*sys.argv[2:], os.environ.get("PATH", "")]))
if not cuobjdump:
    print("skipped: cuobjdump is neither in PATH nor in", " or ".join(sys.argv[2:]), "(scripts/bootstrap --cuda fetches it)")
    sys.exit(77)

# Little's law: bytes on their way = rate x latency. Per multiprocessor, by data sheets: H200 4.8 TB/s / 132 = 36 bytes a nanosecond,
# B200 8 TB/s / 148 = 54, A100 2.04 TB/s / 108 = 19. A latency of 900 ns under load is assumed; it is not yet measured on a GPU.
latency_ns = 900
bytes_per_ns = {"sm_80": 2039 / 108, "sm_90": 4800 / 132, "sm_100": 8000 / 148}
registers, max_threads, register_unit = 65536, 2048, 8


@dataclass
class Expected:
    """Of the kernels whose readable name matches: threads of a block, and the loads of 16 bytes that are on their way at once."""
    name: str
    threads: int
    loads: int
    spills: bool = False
    share: float = 1.0  # of the bytes that are needed, where registers leave no room for more


sixteen = r"(Bf16|F16)"
either = rf"(float|{sixteen})"
table = [
    Expected(rf"column_sum_kernel<{either}, [48]>", 256, 4),
    Expected(rf"batch_moments_kernel<{either}, [48]>", 256, 4),
    Expected(rf"batch_gradient_sums_kernel<{either}, [48], \(Counts\)\d>", 256, 4),
    Expected(rf"batch_gradient_kernel<{either}, [48], \(Counts\)0>", 256, 4),
    Expected(r"batch_gradient_kernel<(float, 4|Bf16, 8), \(Counts\)2>", 256, 4),
    Expected(r"batch_gradient_kernel<F16, 8, \(Counts\)2>", 256, 3),
    Expected(rf"batch_normalize_kernel<{either}, [48], (true|false)>", 256, 4),
    Expected(rf"dropout_kernel<{either}, [48]>", 256, 4),
    Expected(rf"gelu_bias_gradient_kernel<{either}, (true|false), [48]>", 256, 4),
    Expected(rf"gelu_epilogue_kernel<{sixteen}, (true|false), (true|false), 8>", 256, 6),
    Expected(rf"pointwise_kernel<(?!Cast)\w+Of(<(true|false)>)?, {either}, {either}, [48], [24]>", 256, 4),
    Expected(rf"pointwise_kernel<CastOf, {either}, {either}, [48], 4>", 256, 4),
    Expected(rf"pointwise_kernel<CastOf, float, {sixteen}, 8, 2>", 256, 4),
    Expected(rf"pointwise_kernel<CastOf, {sixteen}, float, 8, 2>", 256, 2),
    Expected(rf"quantize_blocks_kernel<{either}, .*, true>", 256, 4),
    Expected(rf"quantize_kernel<{either}, .*, 16>", 256, 4),
    Expected(r"rows_kernel<Pack<unsigned int, 4> ?>", 256, 4),
    Expected(r"tile_scales_kernel<4>", 256, 4),
    Expected(rf"merge_kernel<{either}, [48]>", 256, 4),
    Expected(rf"rotary_kernel<{either}, (Halves|Neighbours)<.*> ?>", 256, 4),
    Expected(rf"warp_backward_kernel<{sixteen}, {either}, 8, (true|false)>", 384, 6),
    # Row and sums take 212 registers a thread, 241 with a residual; more warps would spill.
    Expected(r"warp_backward_kernel<float, float, 4, false>", 256, 7, share=0.85),
    Expected(r"warp_backward_kernel<float, float, 4, true>", 256, 8),
    Expected(rf"block_backward_kernel<{sixteen}, {either}, 8, (true|false), 512>", 512, 4),
    Expected(r"block_backward_kernel<float, float, 4, (true|false), 512>", 512, 6),
    # Rows of more than 8192: sums of 16 columns exceed a thread's registers in blocks of this size; the spilled ones stay in L1.
    Expected(rf"block_backward_kernel<{either}, {either}, [48], (true|false), (768|1024)>", 768, 4, spills=True),
    Expected(rf"^forward_kernel<{either}, {either}, [48], false, (true|false)>", 128, 4),
    Expected(rf"^forward_kernel<{either}, {either}, [48], true, (true|false)>", 512, 4),
    Expected(rf"^long_forward_kernel<{either}, {either}, [48], (true|false)>", 1024, 3),
    Expected(rf"^forward_kernel<{either}, true>", 512, 4),
    Expected(rf"^forward_kernel<{either}, false>", 128, 4),
    Expected(rf"^backward_kernel<{either}>", 256, 4),
    Expected(rf"held_kernel<{either}, true>", 512, 6),
    Expected(rf"held_kernel<{either}, false>", 128, 4),
    Expected(rf"^long_kernel<{either}>", 512, 4),
    Expected(r"^forward_kernel<Pack<unsigned int, 4> ?>", 256, 4),
    Expected(rf"(rare|frequent)_kernel<{either}, [48]>", 256, 4),
    Expected(rf"softmax_(forward|backward)_kernel<{either}, [48], true>", 512, 4),
    Expected(rf"softmax_(forward|backward)_kernel<{either}, [48], false>", 128, 4),
    Expected(rf"^permute_kernel<{either}, [48]>", 256, 4),
    Expected(rf"^unpermute_kernel<{either}, [48]>", 256, 3),
    Expected(rf"pair_dot_kernel<{either}, [48]>", 256, 2),
    Expected(r"squares_kernel", 256, 4),
    Expected(r"clip_kernel", 256, 2),
    Expected(r"update_kernel<float, AdamWArgs>", 256, 4),
    Expected(r"update_kernel<float, (Lion|Sgd)Args>", 256, 3),
    Expected(r"unscale_kernel", 256, 2),
    Expected(r"fingerprint_kernel", 256, 2),
    Expected(r"scan_kernel<.*, (2|4|8|16)>", 256, 4),
]
# Of f64, whose arithmetic limits most; chosen elements, a few; virtual ranks, whose figures say nothing; pooling, whose windows
# overlap, so that caches serve most of its loads: it has 1 to 5 on their way; attention and
# grouped products, which products limit: see below.
not_looked_at = r"double|gather_kernel|reduce_ranks_kernel|token_exchange_kernel|pool_kernel|attention_|grouped_"



@dataclass
class Budget:
    """Of the kernels whose readable name matches: what one may take on sm_90, as ptxas counts it."""
    name: str
    registers: int = 80
    shared: int = 9472  # bytes of a block
    stack: int = 0      # bytes of a thread in local memory: spilled registers


# The first that matches counts. Single elements, for rows that packs of 16 bytes don't fit, and f64 may spill: both are rare.
budgets = [
    Budget(r"attention_(forward|query_gradient)_kernel<\w+, (64|128),", 128, 26752),
    Budget(r"attention_key_gradient_kernel<\w+, 64,", 128, 26752),
    Budget(r"attention_key_gradient_kernel<\w+, 128,", 200, 26752),
    Budget(r"attention_(forward|query_gradient|key_gradient)_kernel", 255, 26752),
    Budget(r"grouped_\w+_kernel<ByTensorCores<false>", 192, 21504),
    Budget(r"grouped_\w+_kernel<ByTensorCores<true>", 128, 21504),
    Budget(r"grouped_\w+_kernel<ByFmas", 146, 17664),
    Budget(r"token_exchange_kernel", 64, 49024),  # as many places as ranks and experts can have
    Budget(r"order_kernel", 40, 17440),
    Budget(r"batch_(moments|gradient_sums|merge)_kernel", 112, 17408),
    Budget(rf"^warp_backward_kernel<{sixteen}, {either}, 8,", 168),
    Budget(r"^warp_backward_kernel", 241, stack=112),
    Budget(rf"^block_backward_kernel<{either}, {either}, \d, (true|false), (768|1024)>", 80, stack=296),
    Budget(r"^block_backward_kernel<double, double, 1, true, 1024>", 80, stack=16),
    Budget(r"^block_backward_kernel", 128),
    Budget(r"^long_backward_kernel", 32, stack=8),  # two blocks of 1024 threads
    Budget(rf"^forward_kernel<{either}, {either}, [48], (true|false), (true|false)>", 128),
    Budget(r"^forward_kernel<\w+, \w+, [12], (true|false), (true|false)>", 128, stack=112),
    Budget(r"^forward_kernel<double, (true|false)>", 72, stack=56),
    Budget(r"^held_kernel<double", 188),
    Budget(r"^held_kernel<float, false>", 150),
    Budget(r"^(held|long)_kernel", 92),
    Budget(r"^combine_kernel<float>", 48, stack=8),
    Budget(r"gelu_bias_gradient_kernel<double", 128, stack=56),
    Budget(r"pointwise_kernel<GeluBackwardOf<false>, double", 128, stack=8),
    Budget(r"(pointwise|dropout)_kernel", 128),
    Budget(r"rotary_kernel", 92),
    Budget(r"pool_kernel<double, 1, Mean>", 48, stack=8),
    Budget(r"routing_forward_kernel<double>", 48, stack=16),
    Budget(r"softmax_forward_kernel<double, 2, true>", 64, stack=48),
    Budget(r""),
]


def over_budget(kernel, budget):
    """What a kernel takes beyond its budget; each a sentence."""
    found = []
    for key, most, what in (("REG", budget.registers, "registers"), ("SHARED", budget.shared, "bytes of shared memory"),
                            ("STACK", budget.stack, "bytes of local memory")):
        if kernel.resources.get(key, 0) > most:
            found.append(f"takes {kernel.resources[key]} {what}; expected at most {most}")
    return found


def resident_threads(threads, used):
    """Threads of all blocks of `threads` that fit into the registers of a multiprocessor."""
    per_thread = -(-used // register_unit) * register_unit
    return min(registers // (per_thread * threads), max_threads // threads) * threads


def faults(kernel, expected):
    """What is wrong with a kernel; each a sentence."""
    found = []
    if kernel.uses_local_memory() and not expected.spills:
        found.append("uses local memory")
    loads = kernel.loads_in_flight
    if loads < expected.loads:
        found.append(f"has {loads} loads of 16 bytes on their way before the first is used; expected {expected.loads}")
    needed = expected.share * latency_ns * bytes_per_ns[kernel.architecture]
    available = loads * 16 * resident_threads(expected.threads, kernel.resources["REG"])
    if available < needed:
        found.append(f"has {available} bytes on their way in a multiprocessor; expected {needed:.0f}")
    return found


class Built(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.kernels = listing.kernels_of(cuobjdump, library)
        cls.names = listing.readable([name for _, name in cls.kernels])

    def test_every_kernel_that_memory_limits_keeps_it_busy(self):
        print()
        for expected in table:
            matching = [kernel for key, kernel in self.kernels.items()
                        if kernel.architecture in bytes_per_ns and re.search(expected.name, self.names[key[1]])]
            self.assertTrue(matching, f"no kernel matches {expected.name}")
            for kernel in matching:
                name = self.names[kernel.name]
                in_flight = kernel.loads_in_flight
                threads = resident_threads(expected.threads, kernel.resources["REG"])
                print(f"{kernel.architecture:7} {name:66} {kernel.resources['REG']:4} registers {in_flight:3} loads {threads:5} threads "
                      f"{in_flight * 16 * threads / 1024:6.0f} KiB")
                with self.subTest(kernel=name, architecture=kernel.architecture):
                    self.assertEqual(faults(kernel, expected), [])


    def test_every_kernel_with_wide_loads_is_in_the_table(self):
        missing = {self.names[kernel.name] for kernel in self.kernels.values()
                   if any(i.load_bytes >= 16 for i in kernel.instructions) and not re.search(not_looked_at, self.names[kernel.name])
                   and not any(re.search(expected.name, self.names[kernel.name]) for expected in table)}
        self.assertEqual(missing, set())


    def test_every_kernel_keeps_its_budget(self):
        met = set()
        for key, kernel in sorted(self.kernels.items(), key=lambda item: self.names[item[0][1]]):
            if kernel.architecture != "sm_90":
                continue
            name = self.names[kernel.name]
            budget = next(budget for budget in budgets if re.search(budget.name, name))
            met.add(budget.name)
            took = kernel.resources
            print(f"{name:90} {took['REG']:4} registers {took['SHARED']:6} B shared {took['STACK']:4} B local")
            with self.subTest(kernel=name):
                self.assertEqual(over_budget(kernel, budget), [])
        self.assertEqual([budget.name for budget in budgets if budget.name not in met], [], "no kernel matches")


    def test_attention_multiplies_by_fmas_that_leave_little_room_for_anything_else(self):
        """No tensor cores, which would round f32 to TF32; no local memory; two blocks of 256 threads in a multiprocessor but for what is wide."""
        kernels = {self.names[kernel.name]: kernel for kernel in self.kernels.values()
                   if kernel.architecture in bytes_per_ns and re.search(r"^attention_(forward|\w+_gradient)_kernel", self.names[kernel.name])}
        self.assertTrue(kernels)
        for name, kernel in kernels.items():
            with self.subTest(kernel=name, architecture=kernel.architecture):
                self.assertFalse(kernel.uses_local_memory())
                self.assertEqual([i.opcode for i in kernel.instructions if re.match(r"[HIQDU]?\w*MMA", i.opcode)], [])
                shares = [share for share in map(share_of_fmas, kernel.innermost_loops()) if share > 0.5]
                print(f"{kernel.architecture:7} {name:66} {kernel.resources['REG']:4} registers, FMAs in its loops: "
                      + ", ".join(f"{share:.0%}" for share in shares))
                self.assertGreaterEqual(len(shares), 2)
                self.assertGreaterEqual(min(shares), 0.75)
                # A multiprocessor reads 128 bytes of shared memory in a cycle, in which it does 128 FMAs.
                self.assertLessEqual(max(shared_bytes_per(r"FFMA", loop) for loop in kernel.innermost_loops() if share_of_fmas(loop) > 0.5), 2.0)
                sums = int(re.search(r", (\d+),", name).group(1)) * (2 if "key" in name else 1)
                if sums <= 128:
                    self.assertGreaterEqual(resident_threads(256, kernel.resources["REG"]), 512)


    def test_grouped_products_in_16_bits_are_tensor_cores_in_registers(self):
        kernels = {self.names[kernel.name]: kernel for kernel in self.kernels.values()
                   if kernel.architecture in bytes_per_ns and re.search(rf"^grouped_\w+_kernel<ByTensorCores<\w+> ?, {sixteen}", self.names[kernel.name])}
        self.assertTrue(kernels)
        for name, kernel in kernels.items():
            with self.subTest(kernel=name, architecture=kernel.architecture):
                products = sum(i.opcode.startswith("HMMA.16816.F32") for i in kernel.instructions)
                print(f"{kernel.architecture:7} {name:66} {kernel.resources['REG']:4} registers, {products} mma in its code")
                self.assertFalse(kernel.uses_local_memory())
                self.assertEqual(products, 32)  # 4 x 4 of a warp, twice 16 deep
                self.assertEqual([shared_bytes_per("HMMA", loop) for loop in kernel.innermost_loops() if any("HMMA" in i.opcode for i in loop)], [6.0])
                if "<true>" in name:
                    self.assertGreaterEqual(resident_threads(256, kernel.resources["REG"]), 512)


def share_of_fmas(loop):
    return sum(i.opcode.startswith("FFMA") for i in loop) / len(loop)


def shared_bytes_per(opcode, loop):
    """That a thread reads from shared memory for each such instruction of a loop."""
    return sum(i.shared_load_bytes for i in loop) / sum(i.opcode.startswith(opcode) for i in loop)


def made(lines, used=32, stack=0):
    """A kernel of these instructions."""
    text = "code for sm_90\n\t\tFunction : made\n"
    for number, line in enumerate(lines):
        text += f"        /*{16 * number:04x}*/  {line} ;  /* 0x0 */\n"
    kernels = listing.parse_listing(text)
    kernel = kernels["sm_90", "made"]
    kernel.resources = {"REG": used, "STACK": stack, "LOCAL": 0, "SHARED": 0}
    return kernel


class TheCheckItself(unittest.TestCase):
    """Kernels that wait for each load, or use local memory, are seen."""

    first, second = "LDG.E.128 R4, desc[UR4][R2.64]", "LDG.E.128 R8, desc[UR4][R2.64+0x1000]"
    expected = Expected("made", 512, 2)

    def test_loads_that_nothing_touches_in_between_are_on_their_way_together(self):
        kernel = made([self.first, self.second, "FADD R12, R4, R8", "EXIT"])
        self.assertEqual(kernel.loads_in_flight, 2)
        self.assertEqual(faults(kernel, self.expected), [])

    def test_a_load_that_is_taken_apart_before_the_next_is_seen(self):
        kernel = made([self.first, "PRMT R20, R7, 0x7632, R20", self.second, "FADD R12, R4, R8", "EXIT"])
        self.assertEqual(kernel.loads_in_flight, 1)
        self.assertIn("1 loads", " ".join(faults(kernel, self.expected)))

    def test_the_last_of_four_registers_counts_as_well_and_the_next_does_not(self):
        self.assertEqual(made([self.first, "MOV R20, R7", self.second, "EXIT"]).loads_in_flight, 1)
        self.assertEqual(made([self.first, "MOV R20, R12", self.second, "EXIT"]).loads_in_flight, 2)

    def test_a_rare_path_that_fills_the_registers_in_another_way_does_not_hide_the_loads(self):
        kernel = made(["@!P0 BRA 0x40", "LDG.E.U16 R4, desc[UR4][R2.64]", "PRMT R7, R4, 0x5410, R4", "BRA 0x50", self.first,
                       self.second, "FADD R12, R4, R8", "EXIT"])
        self.assertEqual(kernel.loads_in_flight, 2)

    def test_narrow_loads_do_not_count(self):
        self.assertEqual(made([self.first.replace(".128", ""), self.second.replace(".128", ".64"), "EXIT"]).loads_in_flight, 0)

    def test_local_memory_is_seen(self):
        self.assertIn("uses local memory", faults(made([self.first, self.second, "STL [R1], R4", "EXIT"]), self.expected))
        self.assertIn("uses local memory", faults(made([self.first, self.second, "EXIT"], stack=8), self.expected))

    def test_what_a_kernel_takes_beyond_its_budget_is_seen(self):
        budget = Budget("made", 32, 0, 8)
        self.assertEqual(over_budget(made(["EXIT"], used=32, stack=8), budget), [])
        self.assertEqual(over_budget(made(["EXIT"], used=33, stack=16), budget),
                         ["takes 33 registers; expected at most 32", "takes 16 bytes of local memory; expected at most 8"])

    def test_reads_of_shared_memory_are_counted_by_product(self):
        loop = made(["LDS.128 R4, [R2]", "LDS R8, [R2]", "FFMA R9, R4, R8, R9", "FFMA R9, R5, R8, R9"]).instructions
        self.assertEqual(shared_bytes_per("FFMA", loop), 10.0)

    def test_registers_that_leave_too_few_threads_are_seen(self):
        # 128 x 512 threads fill a multiprocessor: 2 x 16 x 512 = 16 KiB; 64 leave two of 512, which is 32 KiB.
        self.assertEqual(resident_threads(512, 128), 512)
        self.assertEqual(resident_threads(512, 65), 512)
        self.assertEqual(resident_threads(512, 64), 1024)
        found = faults(made([self.first, self.second, "EXIT"], used=128), self.expected)
        self.assertEqual(found, ["has 16384 bytes on their way in a multiprocessor; expected 32727"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
