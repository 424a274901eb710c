#!/usr/bin/env python3
"""Library folders and hardening of every program and module of a build: binaries_test.py BUILD_DIR BUILD_TYPE
Prints a table. Fortified calls are expected in optimized build types only.
"""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
import binaries  # noqa: E402

build, build_type = Path(sys.argv[1]), sys.argv[2]
everywhere = ["pie", "noexecstack", "relro", "bind now"]


class Built(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.files = [path for path in binaries.elf_files(build) if "CMakeFiles" not in path.parts]

    def test_the_program_is_there(self):
        self.assertIn(build / "gpubench", self.files)

    def test_none_looks_for_libraries_in_the_current_folder(self):
        for path in self.files:
            self.assertEqual(binaries.unsafe_folders(binaries.rpath(path)), [], path)

    def test_all_are_hardened(self):
        print()
        for path in self.files:
            has = binaries.hardening(path)
            print(f"{str(path.relative_to(build)):44}", *(f"{name}:{'yes' if has[name] else 'no '}" for name in has))
            self.assertEqual([name for name in everywhere if not has[name]], [], path)

    def test_the_program_has_canaries_and_fortified_calls(self):
        has = binaries.hardening(build / "gpubench")
        self.assertTrue(has["canary"])
        if build_type != "Debug":
            self.assertTrue(has["fortified"])


class TheCheckItself(unittest.TestCase):
    """Badly linked binaries are found."""

    def linked(self, *flags):
        folder = tempfile.mkdtemp()
        self.addCleanup(subprocess.run, ["rm", "-r", folder], check=True)
        source = Path(folder) / "x.cpp"
        source.write_text("int main() { return 0; }\n")
        program = Path(folder) / "x"
        subprocess.run([os.environ.get("CXX", "c++"), source, "-o", program, *flags], check=True)
        return program

    def test_empty_and_relative_entries_are_seen(self):
        self.assertEqual(binaries.unsafe_folders(["/usr/lib", "$ORIGIN/../lib", "", "lib", "$ORIGINAL"]), ["", "lib", "$ORIGINAL"])
        program = self.linked("-Wl,-rpath,/usr/local/cuda/lib:")
        self.assertEqual(binaries.unsafe_folders(binaries.rpath(program)), [""])

    def test_what_lld_links_is_read_as_well(self):
        if not shutil.which("ld.lld"):
            self.skipTest("no lld")
        for flag, is_there in (("noexecstack", True), ("execstack", False)):
            self.assertEqual(binaries.hardening(self.linked("-fuse-ld=lld", f"-Wl,-z,{flag}"))["noexecstack"], is_there)

    def test_what_is_missing_is_seen(self):
        program = self.linked("-no-pie", "-Wl,-z,norelro,-z,lazy,-z,execstack", "-fno-stack-protector")
        self.assertEqual([name for name, is_there in binaries.hardening(program).items() if is_there], [])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
