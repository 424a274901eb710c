"""What ptxas made of kernels, as cuobjdump tells it: instructions, registers, and how many loads are on their way at once."""
import re
import subprocess
from dataclasses import dataclass, field
from functools import cached_property

INSTRUCTION = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(?:@(!?U?P\w+)\s+)?([A-Z][\w.]*)\s*([^;]*);")
REGISTER = re.compile(r"(?<![\w.])R(\d+)(\.64)?(?![\w])")
TARGET = re.compile(r"(?:`\(\S+\)|0x([0-9a-f]+))\s*$")
NO_REGISTER_WRITTEN = re.compile(r"^(ST|RED|BAR|BRA|EXIT|BSSY|BSYNC|WARPSYNC|ISETP|FSETP|DSETP|HSETP2|PLOP3|R2P|R2UR|MEMBAR|NOP|RET|CALL|ERRBAR|CCTL|YIELD|JMP|BRX|KILL|DEPBAR)")


@dataclass
class Instruction:
    address: int
    predicate: str
    opcode: str
    operands: str

    @cached_property
    def load_bytes(self):
        """Of a load from global memory, per thread; 0 of anything else."""
        if not self.opcode.startswith("LDG"):
            return 0
        for suffix, size in ((".256", 32), (".128", 16), (".64", 8), (".U16", 2), (".S16", 2), (".U8", 1), (".S8", 1)):
            if suffix in self.opcode:
                return size
        return 4

    @cached_property
    def shared_load_bytes(self):
        """Of a load from shared memory, per thread; 0 of anything else."""
        if self.opcode.startswith("LDSM"):
            return 16 if self.opcode.endswith(".4") else 8 if self.opcode.endswith(".2") else 4
        if not self.opcode.startswith("LDS"):
            return 0
        return 16 if ".128" in self.opcode else 8 if ".64" in self.opcode else 4

    def _written_width(self):
        if self.load_bytes:
            return max(1, self.load_bytes // 4)
        if self.opcode.startswith(("LDS", "LDC", "LD", "LDL")):
            return 4 if ".128" in self.opcode else 2 if ".64" in self.opcode else 1
        wide = re.match(r"IMAD\.WIDE|D[A-Z]+\d?\b|F2F\.F64|I2F\.F64|S2R\.64|CS2R(?!\.32)", self.opcode)
        return 2 if wide else 1

    @cached_property
    def touched(self):
        """Registers that it reads, and those that it writes."""
        operands = [part.strip() for part in self.operands.split(",")]
        written = set()
        if operands and not NO_REGISTER_WRITTEN.match(self.opcode):
            first = re.fullmatch(r"R(\d+)", operands[0])
            if first:
                written = set(range(int(first.group(1)), int(first.group(1)) + self._written_width()))
                operands = operands[1:]
        read = set()
        wide = 4 if ".128" in self.opcode else 2 if ".64" in self.opcode or self.opcode.startswith(("DADD", "DMUL", "DFMA", "F2F.F32.F64")) else 1
        for operand in operands:
            for number, pair in REGISTER.findall(operand):
                of_store = self.opcode.startswith("ST") and "[" not in operand
                width = 2 if pair else wide if of_store or self.opcode.startswith("D") or "F64" in self.opcode else 1
                read |= set(range(int(number), int(number) + width))
        return read, written


@dataclass
class Kernel:
    name: str
    architecture: str
    instructions: list = field(default_factory=list)
    resources: dict = field(default_factory=dict)

    def uses_local_memory(self):
        spilled = any(i.opcode.startswith(("LDL", "STL")) for i in self.instructions)
        return spilled or self.resources.get("STACK", 0) > 0 or self.resources.get("LOCAL", 0) > 0

    @cached_property
    def _successors(self):
        """Where control may go from each instruction: by a branch that is taken first."""
        place = {instruction.address: at for at, instruction in enumerate(self.instructions)}

        def of(at, instruction):
            after = [at + 1] if at + 1 < len(self.instructions) else []
            if instruction.opcode.startswith(("EXIT", "RET", "KILL", "BRX")):
                return after if instruction.predicate else []
            if instruction.opcode.startswith("BRA"):
                target = TARGET.search(instruction.operands)
                taken = [place[int(target.group(1), 16)]] if target and target.group(1) else []
                conditional = instruction.predicate or "," in instruction.operands
                return taken + after if conditional else taken
            return after

        return [of(at, instruction) for at, instruction in enumerate(self.instructions)]

    def innermost_loops(self):
        """What lies between a branch back and its target, with no other branch back in between."""
        ends = {}
        for at, instruction in enumerate(self.instructions):
            target = instruction.opcode.startswith("BRA") and TARGET.search(instruction.operands)
            if target and target.group(1) and int(target.group(1), 16) < instruction.address:
                ends[at] = int(target.group(1), 16)
        loops = [(begin, self.instructions[at].address) for at, begin in ends.items()]
        return [[i for i in self.instructions if begin <= i.address <= end] for begin, end in loops
                if not any(begin <= other_begin and other_end < end for other_begin, other_end in loops)]

    @cached_property
    def loads_in_flight(self):
        """The longest run of loads of 16 bytes or more that some path issues before any instruction touches what one of them brings."""
        return max((self._run_from(at) for at, instruction in enumerate(self.instructions) if instruction.load_bytes >= 16), default=0)

    def _run_from(self, start, budget=4000):
        best = 0
        seen = set()
        paths = [(start, frozenset(), frozenset())]
        while paths and budget > 0:
            at, loads, pending = paths.pop()
            budget -= 1
            if (at, loads) in seen:
                continue
            seen.add((at, loads))
            read, written = self.instructions[at].touched
            if (read | written) & pending or at in loads:
                continue
            if self.instructions[at].load_bytes >= 16:
                loads, pending = loads | {at}, pending | written
                best = max(best, len(loads))
            for successor in self._successors[at]:
                paths.append((successor, loads, pending))
        return best


def parse_listing(text):
    """The kernels of `cuobjdump -sass`, by architecture and mangled name."""
    kernels, kernel, architecture = {}, None, ""
    for line in text.splitlines():
        found = INSTRUCTION.match(line)
        if found:
            if kernel:
                kernel.instructions.append(
                    Instruction(int(found.group(1), 16), found.group(2) or "", found.group(3), found.group(4).strip()))
            continue
        found = re.search(r"code for (sm_\w+)", line)
        if found:
            architecture = found.group(1)
            continue
        found = re.search(r"Function : (\S+)", line)
        if found:
            kernel = Kernel(found.group(1), architecture)
            kernels[architecture, kernel.name] = kernel
    return kernels


def add_resources(kernels, text):
    """What `cuobjdump -res-usage` says: registers, stack, shared and local bytes."""
    architecture, name = "", ""
    for line in text.splitlines():
        found = re.search(r"arch = (sm_\w+)", line)
        if found:
            architecture = found.group(1)
        found = re.search(r"Function (\S+):", line)
        if found:
            name = found.group(1)
        values = dict(re.findall(r"(REG|STACK|SHARED|LOCAL):(\d+)", line))
        if values and (architecture, name) in kernels:
            kernels[architecture, name].resources = {key: int(value) for key, value in values.items()}


def readable(names):
    """What c++filt makes of mangled names, without namespaces, by mangled name."""
    told = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True).stdout
    return dict(zip(names, (re.sub(r"gpubench::cuda::|\(anonymous namespace\)::|_GLOBAL__N_\w+::|^void |\(\w*Args\)$", "", line)
                            for line in told.splitlines())))


def kernels_of(cuobjdump, path):
    def told(option):
        return subprocess.run([cuobjdump, option, str(path)], capture_output=True, text=True, check=True).stdout
    kernels = parse_listing(told("-sass"))
    add_resources(kernels, told("-res-usage"))
    return kernels
