#!/usr/bin/env python3
"""Tests of `cmake --install`, `cpack` and container images: package_test.py SOURCE_DIR BUILD_DIR
--bare-root SUITE: executes the steps of the Containerfile in a bare Debian SUITE with the newest package of scripts/package in
BUILD_DIR. Needs root and debootstrap; exits with 77 if one of them or the package is missing.
"""
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
import binaries  # noqa: E402
import containerfile  # noqa: E402

source, build = Path(sys.argv[1]), Path(sys.argv[2])
recipe = (source / "scripts/container/Containerfile").read_text()
smoke = ["--suite", "gemm", "--tier", "smoke", "--device", "cpu", "--progress", "none"]


def succeeded(command, **more):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **more)
    if done.returncode != 0:
        raise AssertionError(f"{command}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


class Folder(unittest.TestCase):
    """Test classes with a temporary folder, filled once by make()."""

    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.folder = Path(cls.scratch.name)
        cls.make()

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()


class Installed(Folder):
    @classmethod
    def make(cls):
        first = cls.folder / "first"
        succeeded(["cmake", "--install", build, "--prefix", first])
        cls.prefix = first.rename(cls.folder / "a moved place")

    def test_the_program_runs_where_it_was_moved_to(self):
        succeeded([self.prefix / "bin/gpubench", *smoke, "--filter", "gemm/matmul/.*/f32/", "--out", self.folder / "out"], env={})
        self.assertTrue((self.folder / "out/report.json").stat().st_size > 0)

    def test_it_takes_its_libraries_from_beside_it(self):
        found = succeeded(["ldd", self.prefix / "bin/gpubench"], env={"PATH": os.environ["PATH"]})
        for library in ("libdnnl.so", "libfmt.so", "libhwy.so", "libre2.so"):
            line = next(line for line in found.splitlines() if library in line)
            self.assertIn(str(self.prefix / "bin/../lib/"), line)

    @unittest.skipUnless(shutil.which("readelf"), "binutils is not installed")
    def test_no_binary_looks_for_libraries_in_the_current_folder_or_one_of_this_machine(self):
        files = binaries.elf_files(self.prefix)
        self.assertIn(self.prefix / "bin/gpubench", files)
        for path in files:
            entries = binaries.rpath(path)
            self.assertEqual(binaries.unsafe_folders(entries), [], path)
            if path.name.startswith(("gpubench", "libgpubench")) or path.parent.name == "tests":
                self.assertEqual(entries, ["$ORIGIN/../lib"], path)

    @unittest.skipUnless(shutil.which("readelf"), "binutils is not installed")
    def test_built_on_debian_12_it_starts_on_ubuntu_22_04(self):
        if platform.freedesktop_os_release().get("VERSION_CODENAME") != "bookworm":
            self.skipTest("other releases build for their own C library and newer ones")
        files = binaries.elf_files(self.prefix)
        self.assertGreater(len(files), 4)
        for path in files:
            self.assertLessEqual(binaries.newest_symbol_version(path, "GLIBC"), (2, 35), path)
            self.assertLessEqual(binaries.newest_symbol_version(path, "GLIBCXX"), (3, 4, 30), path)
        self.assertGreaterEqual(binaries.newest_symbol_version(self.prefix / "bin/gpubench", "GLIBCXX"), (3, 4, 21))  # of C++17

    def test_manual_and_completions_are_where_shells_and_man_look(self):
        share = self.prefix / "share"
        self.assertIn(".TH GPUBENCH 1", (share / "man/man1/gpubench.1").read_text().upper())
        for page in ("bash-completion/completions/gpubench", "zsh/site-functions/_gpubench", "fish/vendor_completions.d/gpubench.fish"):
            self.assertIn("doctor", (share / page).read_text())

    def test_schemas_and_licences_come_along(self):
        share = self.prefix / "share"
        for schema in (source / "results/schema").glob("*.json"):
            self.assertEqual((share / "gpubench/schema" / schema.name).read_bytes(), schema.read_bytes())
        for text in ("LICENSE", "CITATION.cff"):
            self.assertEqual((share / "doc/gpubench" / text).read_bytes(), (source / text).read_bytes())
        for package in ("libboost-dev", "libcli11-dev", "nlohmann-json3-dev"):
            notice = Path("/usr/share/doc") / package / "copyright"
            if notice.exists():
                self.assertEqual((share / "doc/gpubench/licences" / package).read_bytes(), notice.read_bytes())

    def test_architectures_are_numbers(self):
        for word in ("sm_90", "9.0", "90,", ""):
            done = subprocess.run([source / "scripts/package", "--arch", word], capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stdout), (2, ""), word)
            self.assertIn("as 90 or 80,90", done.stderr)

    def test_an_image_copies_only_what_a_package_has(self):
        script = (source / "scripts/package").read_text().splitlines()
        names = containerfile.copied(recipe)
        self.assertIn("bin", names)
        for name in names:
            packed = any("$tree/" in line and name in line.replace("/", " ").replace('"', " ").split() for line in script)
            self.assertTrue((self.prefix / name).exists() or packed, f"COPY {name}")


class Archive(Folder):
    """The archive of scripts/package; skipped unless the build folder is `build` and for one GPU architecture."""

    @classmethod
    def make(cls):
        one = re.search("^GPUBENCH_CUDA_ARCHITECTURES:STRING=([0-9]+)$", (build / "CMakeCache.txt").read_text(), re.MULTILINE)
        if one is None or build.resolve() != (source / "build").resolve():
            raise unittest.SkipTest("not a build of scripts/test --full for one kind of GPU")
        cls.said = succeeded([source / "scripts/package", "--arch", one[1], "--out", cls.folder / "made.tar.gz"])
        cls.kind = f"sm_{one[1]}"

    def test_it_has_the_program_the_module_and_its_tests_and_says_so(self):
        with tarfile.open(self.folder / "made.tar.gz") as archive:
            names = {name.partition("/")[2] for name in archive.getnames()}
        self.assertLessEqual({"bin/gpubench", "lib/libgpubench_cuda.so", "tests/cuda_gpu_test", "scripts/validate-gpu"}, names)
        self.assertIn(f"the CUDA module for {self.kind} and 2 program(s) of GPU tests", self.said)


@unittest.skipUnless(shutil.which("dpkg-shlibdeps") and shutil.which("file"), "dpkg-dev is not installed")
class Deb(Folder):
    @classmethod
    def make(cls):
        succeeded(["cpack", "--config", build / "CPackConfig.cmake", "-G", "DEB", "-B", cls.folder])
        cls.package = next(cls.folder.glob("*.deb"))

    def field(self, name):
        return succeeded(["dpkg-deb", "--field", self.package, name]).strip()

    def test_it_depends_on_the_packages_of_the_libraries(self):
        depends = self.field("Depends")
        for package in ("libc6 (>= ", "libdnnl", "libfmt", "libhwy", "libre2-", "libgomp1", "libstdc++6"):
            self.assertIn(package, depends)

    def test_it_bundles_none_of_them(self):
        paths = [line.split()[-1] for line in succeeded(["dpkg-deb", "--contents", self.package]).splitlines()]
        self.assertIn("./usr/bin/gpubench", paths)
        libraries = {path for path in paths if ".so" in path}
        self.assertLessEqual(libraries, {"./usr/lib/libgpubench_cuda.so"})

    def test_it_has_what_debian_asks_of_a_package(self):
        self.assertEqual(self.package.name, f"gpubench_{self.field('Version')}_{self.field('Architecture')}.deb")
        self.assertEqual(self.field("Maintainer"), "gpubench authors")
        listing = succeeded(["dpkg-deb", "--contents", self.package])
        self.assertIn("./usr/share/doc/gpubench/copyright", listing)
        for line in listing.splitlines():
            mode, owner, path = line.split()[0], line.split()[1], line.split()[-1]
            self.assertEqual(owner, "root/root", path)
            self.assertNotIn("w", mode[4:], path)  # by others than root


class Steps(Folder):
    """Steps of a Containerfile that need no root file system."""

    @classmethod
    def make(cls):
        (cls.folder / "context/bin").mkdir(parents=True)
        (cls.folder / "context/bin/tool").write_text("tool")

    def test_a_source_that_is_not_in_the_context_is_an_error(self):
        with tempfile.TemporaryDirectory() as work, self.assertRaisesRegex(RuntimeError, "COPY lib /opt/lib: no .*/context/lib"):
            containerfile.carry_out("FROM scratch AS one\nCOPY lib /opt/lib\n", self.folder / "context", None, "one", work)

    def test_a_step_that_is_not_known_is_an_error(self):
        with tempfile.TemporaryDirectory() as work, self.assertRaisesRegex(ValueError, "ADD a /b: not known"):
            containerfile.carry_out("FROM scratch AS one\nADD a /b\n", self.folder / "context", None, "one", work)

    def test_a_folder_is_copied_as_builders_do_and_from_other_stages(self):
        text = "FROM scratch AS one\nCOPY bin /opt/bin\nFROM scratch AS two\nCOPY --from=one /opt /x\nENV A=1 B=${A}2\nENTRYPOINT [\"tool\"]\n"
        with tempfile.TemporaryDirectory() as work:
            image = containerfile.carry_out(text, self.folder / "context", None, "two", work)
            self.assertEqual((image.root / "x/bin/tool").read_text(), "tool")
            self.assertEqual((image.environment["B"], image.entry), ("12", ["tool"]))


class InABareRoot(Folder):
    suite = ""

    @classmethod
    def make(cls):
        packages = sorted(build.glob("gpubench-*.tar.gz"), key=lambda path: path.stat().st_mtime)
        if os.geteuid() != 0 or not shutil.which("debootstrap") or not packages:
            print("skipped: needs root, debootstrap and a package of scripts/package in", build)
            sys.exit(77)
        succeeded(["tar", "-C", cls.folder, "-xzf", packages[-1]])
        cls.context = next(path for path in cls.folder.iterdir() if path.is_dir())
        cls.base = cls.folder / "base"
        succeeded(["debootstrap", "--variant=minbase", cls.suite, cls.base])

    def image(self, target):
        work = self.folder / ("work-" + target)
        work.mkdir()
        return containerfile.carry_out(recipe, self.context, self.base, target, work)

    def test_the_image_for_cpus_measures(self):
        done = self.image("cpu").run(smoke)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("VERDICT  PASS", done.stdout)

    def test_the_image_for_gpus_has_the_module_or_is_refused(self):
        if (self.context / "lib/libgpubench_cuda.so").exists():
            done = self.image("cuda").run(["--device", "cuda", "--suite", "gemm", "--tier", "smoke"])
            self.assertEqual(done.returncode, 3, done.stdout + done.stderr)  # no driver here
            self.assertIn("driver", done.stdout + done.stderr)
        else:
            with self.assertRaises(RuntimeError) as refused:
                self.image("cuda")
            self.assertRegex(str(refused.exception), "without the CUDA module|COPY tests")


if __name__ == "__main__":
    if sys.argv[3:4] == ["--bare-root"]:
        InABareRoot.suite = sys.argv[4]
        unittest.main(argv=[sys.argv[0], "-v", "InABareRoot"])
    unittest.main(argv=[sys.argv[0], "-v", "Installed", "Deb", "Archive", "Steps"])
