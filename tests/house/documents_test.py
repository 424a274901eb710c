#!/usr/bin/env python3
"""LICENSE, CITATION.cff and the Markdown files are correct: documents_test.py SOURCE_DIR VERSION"""
import re
import sys
import tempfile
import unittest
from pathlib import Path

source, version = Path(sys.argv[1]), sys.argv[2]


def text_of(name):
    return (source / name).read_text(encoding="utf-8")


def read_cff(text):
    """The members of CITATION.cff. Supports scalars, folded scalars, and lists of words or of one-member mappings."""
    members, name = {}, None
    for line in text.splitlines():
        if match := re.fullmatch(r"([a-z-]+):(?: (.+))?", line):
            name, value = match.groups()
            if name in members:
                raise ValueError(f"{name} twice")
            members[name] = [] if value in (None, ">-") else value
        elif match := re.fullmatch(r"  (?:- )?(.+)", line):
            members[name].append(match[1])
        else:
            raise ValueError(f"not understood: {line}")
    return members


def markdown_files(root):
    """The project's own Markdown files: not those of build folders or fetched packages."""
    folders = [root / name for name in ("harness", "reference", "results", "scripts", "suites", "tests")]
    return sorted([*root.glob("*.md"), *(path for folder in folders for path in folder.rglob("*.md"))])


def source_files(root):
    """Code, build files and scripts."""
    folders = [root / name for name in ("harness", "reference", "scripts", "suites", "tests")]
    suffixes = {".h", ".cpp", ".cu", ".cuh", ".c", ".py", ".sh", ".cmake", ".txt"}
    return sorted(path for folder in folders for path in folder.rglob("*")
                  if path.is_file() and (path.suffix in suffixes or path.parent == root / "scripts" and not path.suffix))


def without_code_blocks(text):
    return re.sub(r"^ *```.*?^ *```$", "", text, flags=re.S | re.M)


# Constructions that guides must not use.
banned = re.compile(r"\b(is told|are told|says so|so many|whoever|wherever|held against|on purpose|anew|thereafter|thereby|of (its|one's|their) own|"
                    r"to be believed|all along)\b", re.I)


def without_generated_parts(text):
    """The text without generated tables and transcripts."""
    text = re.sub(r"^<!-- (ops|table \w+) -->$.*?^<!-- end of .*? -->$", "", text, flags=re.S | re.M)
    return re.sub(r"^<!-- transcript [\w ]+ -->\n```.*?^```$", "", text, flags=re.S | re.M)


def anchors_of(text):
    """The anchors of a file's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", without_code_blocks(text), re.M)
    plain = (re.sub(r"[`*]|\]\([^)]*\)|\[", "", heading).strip().lower() for heading in headings)
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in plain}


def broken_references(root):
    """Links and paths in backticks of Markdown files below `root` without a target, as "file: target"."""
    tops = {path.name for path in root.iterdir() if path.is_dir() and not path.name.startswith((".", "build"))}
    broken = []
    for path in markdown_files(root):
        text = without_code_blocks(path.read_text(encoding="utf-8"))
        prose = re.sub(r"`[^`\n]*`", "", text)
        defined = dict(re.findall(r"^\[([^\]]+)\]: (\S+)$", prose, re.M))
        used = re.findall(r"(?<!\])\[([^\[\]\n]+)\](?:\[([^\[\]\n]+)\])?(?![(:\w])", prose) if defined else []
        targets = re.findall(r"\]\(([^)\s]+)\)", text) + list(defined.values())
        broken += [f"{path.relative_to(root)}: [{name or label}]" for label, name in used if (name or label) not in defined]
        for target in targets:
            if re.match(r"[a-z]+:", target):
                continue
            name, _, anchor = target.partition("#")
            file = (path.parent / name).resolve() if name else path
            if not file.exists() or anchor and anchor not in anchors_of(file.read_text(encoding="utf-8")):
                broken.append(f"{path.relative_to(root)}: {target}")
        for word in re.findall(r"`([\w.-]+/[\w./-]*)[^`\n]*`", text):
            if word.partition("/")[0] in tops and not any(root.glob(word.rstrip("/") + "*")):  # a name without its suffix is fine
                broken.append(f"{path.relative_to(root)}: `{word}`")
    return broken


class Documents(unittest.TestCase):
    def test_the_license_is_the_apache_license_whole_with_our_name(self):
        text = text_of("LICENSE")
        self.assertIn("Copyright 2026 gpubench authors", text)
        common = Path("/usr/share/common-licenses/Apache-2.0")
        if common.exists():
            ours = text.replace("Copyright 2026 gpubench authors", "Copyright [yyyy] [name of copyright owner]")
            self.assertEqual(ours, common.read_text(encoding="utf-8"))

    def test_the_citation_has_what_cff_1_2_0_requires_and_this_version(self):
        cff = read_cff(text_of("CITATION.cff"))
        self.assertEqual(cff["cff-version"], "1.2.0")
        self.assertTrue(cff["message"] and cff["title"])
        self.assertEqual(cff["authors"], ["name: gpubench authors"])  # an entity needs only a name
        self.assertEqual((cff["type"], cff["license"], cff["version"]), ("software", "Apache-2.0", version))
        known = {"cff-version", "message", "type", "title", "abstract", "version", "license", "authors", "keywords"}
        self.assertLessEqual(set(cff), known)  # the schema allows no other members
        self.assertEqual(len(set(cff["keywords"])), len(cff["keywords"]))

    def test_the_readme_begins_with_how_to_get_and_run_it(self):
        first_screen = text_of("README.md").splitlines()[:30]
        self.assertTrue(any(line.startswith("git clone ") for line in first_screen))
        self.assertTrue(any(line.startswith("scripts/run ") for line in first_screen))
        for name in ("LICENSE", "SECURITY.md", "CITATION.cff"):
            self.assertIn(f"]({name})", text_of("README.md"))

    def test_the_readme_fits_its_size_and_width(self):
        text = text_of("README.md")
        self.assertLessEqual(len(text.encode()), 12 * 1024)
        self.assertLessEqual(len(text.splitlines()), 250)
        self.assertEqual([line for line in text.splitlines() if len(line) > 100], [])

    def test_every_guide_fits_8_kib_and_120_columns(self):
        for path in markdown_files(source):
            text = path.read_text(encoding="utf-8")
            if path.name == "README.md" and path.parent == source:
                continue  # test_the_readme_fits_its_size_and_width
            with self.subTest(path=path):
                self.assertLessEqual(len(without_generated_parts(text).encode()), 8 * 1024)
                wide = [line for line in without_code_blocks(text).splitlines() if len(line) > 120 and not line.startswith(("|", "    "))]
                self.assertEqual(wide, [])

    def test_no_guide_comment_or_message_has_a_banned_construction(self):
        texts = {path: without_code_blocks(path.read_text(encoding="utf-8")) for path in markdown_files(source)}
        texts |= {path: path.read_text(encoding="utf-8") for path in source_files(source) if path.name != Path(__file__).name}
        self.assertGreater(len(texts), 1000)
        found = [f"{path.relative_to(source)}: {match[0]}" for path, text in texts.items() for match in banned.finditer(text)]
        self.assertEqual(found, [])

    def test_every_link_and_path_in_markdown_leads_somewhere(self):
        self.assertEqual(broken_references(source), [])

    def test_a_broken_link_anchor_name_or_path_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            (root / "harness").mkdir()
            (root / "harness/README.md").write_text("# A title: `x`, y\n[up](../README.md#top) [no](../none.md)\n")
            (root / "README.md").write_text("# Top\n[in](harness/README.md#a-title-x-y) [no](harness/README.md#no) [at] [it][at]\n[lost] [it][gone]\n"
                                            "`harness/none.h` `harness/README.md` `build/any`\n```\n[a](b) `harness/c`\n```\n\n[at]: harness\n")
            self.assertEqual(broken_references(root), ["README.md: [lost]", "README.md: [gone]", "README.md: harness/README.md#no", "README.md: `harness/none.h`",
                                                       "harness/README.md: ../none.md"])

    def test_the_program_does_nothing_that_security_says_it_never_does(self):
        # Calls that use a network, start a program or change rights; GPU settings, which are looked up by name.
        calls = re.compile(r"(?<![\w.>])(?:::|std::)?(socket|connect|getaddrinfo|system|popen|exec[vl]p?e?|setuid)\s*\(")
        settings = re.compile(r"nvmlDevice(Set|Reset)\w*")

        def harmful(line):
            code = line.split("//")[0]
            return settings.search(code) or calls.search(re.sub(r'"(\\.|[^"\\])*"', '""', code))

        found = []
        for folder in ("harness", "reference", "suites"):
            for path in sorted((source / folder).rglob("*")):
                if path.suffix in (".cpp", ".h", ".cu"):
                    lines = path.read_text(encoding="utf-8").splitlines()
                    found += [f"{path.relative_to(source)}:{number}: {line}" for number, line in enumerate(lines, 1) if harmful(line)]
        # The exception: the program itself as a child that ends with its parent, which posix_spawn() cannot do.
        own_child = [line for line in found if line.startswith("harness/run/child_process.cpp:") and "::execve(words[0]" in line]
        self.assertEqual(len(own_child), 1)
        found.remove(own_child[0])
        self.assertEqual(found, [])
        for line in ('  ::popen(command, "r");', "if (std::system(line) != 0)", 'symbol("nvmlDeviceSetPowerManagementLimit")'):
            self.assertTrue(harmful(line), line)
        for line in ('format("in {} socket(s)", n)', "table.connect(a)", "::socketpair(AF_UNIX, SOCK_STREAM, 0, ends)"):
            self.assertFalse(harmful(line), line)
        self.assertIn("no network connection", text_of("SECURITY.md"))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
