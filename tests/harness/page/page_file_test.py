"""A page as a file: its policy's hash is of its script, every element that opens closes, ids and anchors fit together.

page_file_test.py WRITE_PAGE: the program that writes one.
"""

import base64
import hashlib
import html.parser
import re
import subprocess
import sys
import tempfile
import unittest

VOID = {"meta", "br", "hr", "img", "input", "link", "wbr"}


class Stack(html.parser.HTMLParser):
    """Fails where an element is closed that is not the innermost open one."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.ids, self.anchors, self.headings, self.scripts = [], [], [], [], []

    def handle_starttag(self, tag, attributes):
        names = [name for name, _ in attributes]
        assert len(names) == len(set(names)), f"<{tag}> has an attribute twice: {names}"
        named = dict(attributes)
        if "id" in named:
            self.ids.append(named["id"])
        if tag == "a":
            self.anchors.append(named["href"])
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        assert not any(name.startswith("on") for name in names), f"<{tag}> has a handler"
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> at {self.getpos()} closes {self.open[-1:]}"
        self.open.pop()

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts.append(data)


class PageFile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.NamedTemporaryFile(suffix=".html") as file:
            subprocess.run([PROGRAM, file.name, "200"], check=True)
            cls.bytes = file.read()
        cls.text = cls.bytes.decode()
        cls.parsed = Stack()
        cls.parsed.feed(cls.text)
        cls.parsed.close()

    def test_every_element_that_opens_closes(self):
        self.assertEqual(self.parsed.open, [])

    def test_the_policy_names_the_hash_of_the_script(self):
        script = re.search(b"<script>(.*?)</script>", self.bytes, re.S).group(1)
        told = re.search(rb"script-src '(sha256-[A-Za-z0-9+/]{43}=)'", self.bytes).group(1).decode()
        self.assertEqual(told, "sha256-" + base64.b64encode(hashlib.sha256(script).digest()).decode())
        self.assertLessEqual(len(script), 10240)

    def test_ids_are_different_and_anchors_lead_to_them(self):
        ids = self.parsed.ids
        self.assertEqual(len(ids), len(set(ids)))
        for anchor in self.parsed.anchors:
            self.assertIn(anchor.removeprefix("#"), ids)

    def test_headings_leave_out_no_level(self):
        self.assertEqual(self.parsed.headings[0], 1)
        self.assertEqual(self.parsed.headings.count(1), 1)
        for above, below in zip(self.parsed.headings, self.parsed.headings[1:]):
            self.assertLessEqual(below, above + 1)

    def test_text_of_the_report_is_no_markup(self):
        self.assertIn("&lt;b&gt;3 of 64 elements&lt;/b&gt;", self.text)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
