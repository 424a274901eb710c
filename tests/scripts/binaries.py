"""Library folders, symbol versions and hardening of ELF files, by binutils' readelf."""
import re
import subprocess
from pathlib import Path


def is_elf(path):
    if not path.is_file() or path.is_symlink():
        return False
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def elf_files(folder):
    """Linked programs and modules, without object files."""
    return [path for path in sorted(Path(folder).rglob("*")) if path.suffix != ".o" and is_elf(path)]


def read(path, *options):
    return subprocess.run(["readelf", "--wide", *options, str(path)], capture_output=True, text=True, check=True).stdout


def rpath(path):
    """The library folders of RPATH or RUNPATH; empty without the entry."""
    found = re.search(r"\((?:RPATH|RUNPATH)\)\s+Library (?:rpath|runpath): \[(.*)\]", read(path, "--dynamic"))
    return found.group(1).split(":") if found else []


def newest_symbol_version(path, library):
    """The newest version of a library's symbols that it needs: (2, 34) for GLIBC_2.34; (0,): none."""
    wanted = (line for line in read(path, "--dyn-syms").splitlines() if " UND " in line)
    found = (re.search(rf"@{library}_([0-9.]+)", line) for line in wanted)
    return max((tuple(int(part) for part in one.group(1).split(".")) for one in found if one), default=(0,))


def unsafe_folders(entries):
    """Empty and relative entries: they mean the current folder, where anybody can put a library."""
    return [entry for entry in entries if not re.match(r"/|\$ORIGIN(/|$)|\$\{ORIGIN\}(/|$)", entry)]


def hardening(path):
    """Hardening features by name. Fortified calls and canaries exist only in code that needs them."""
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
