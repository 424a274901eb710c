"""What the parts of an ELF file say of how it is loaded and how it is built, by binutils' readelf."""
import re
import subprocess
from pathlib import Path


def is_elf(path):
    if not path.is_file() or path.is_symlink():
        return False
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def elf_files(folder):
    """Programs and modules that were linked: no object files."""
    return [path for path in sorted(Path(folder).rglob("*")) if path.suffix != ".o" and is_elf(path)]


def read(path, *options):
    return subprocess.run(["readelf", "--wide", *options, str(path)], capture_output=True, text=True, check=True).stdout


def rpath(path):
    """The folders that its libraries are looked for in; none without the entry."""
    found = re.search(r"\((?:RPATH|RUNPATH)\)\s+Library (?:rpath|runpath): \[(.*)\]", read(path, "--dynamic"))
    return found.group(1).split(":") if found else []


def newest_symbol_version(path, library):
    """Of what it asks a library for: (2, 34) of GLIBC_2.34; (0,) where it asks for nothing of it."""
    wanted = (line for line in read(path, "--dyn-syms").splitlines() if " UND " in line)
    found = (re.search(rf"@{library}_([0-9.]+)", line) for line in wanted)
    return max((tuple(int(part) for part in one.group(1).split(".")) for one in found if one), default=(0,))


def unsafe_folders(entries):
    """An empty or relative folder is the one that a user happens to be in, and anybody's."""
    return [entry for entry in entries if not re.match(r"/|\$ORIGIN(/|$)|\$\{ORIGIN\}(/|$)", entry)]


def hardening(path):
    """By name whether the binary has it. Fortified calls and canaries are there only where the code has a use for them."""
    dynamic, headers = read(path, "--dynamic"), read(path, "--file-header", "--program-headers")
    symbols = read(path, "--dyn-syms")
    stack = re.search(r"GNU_STACK(?:\s+0x[0-9a-f]+){5}\s+([RWE ]+?)\s+0(?:x[0-9a-f]+)?$", headers, re.MULTILINE)
    return {
        "pie": bool(re.search(r"Type:\s+DYN", headers)),
        "noexecstack": bool(stack) and "E" not in stack.group(1),
        "relro": "GNU_RELRO" in headers,
        "bind now": "BIND_NOW" in dynamic or bool(re.search(r"FLAGS_1\).*NOW", dynamic)),
        "canary": "__stack_chk_fail" in symbols,
        "fortified": bool(re.search(r"__\w+_chk\b", symbols.replace("__stack_chk_fail", ""))),
    }
