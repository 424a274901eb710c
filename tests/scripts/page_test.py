#!/usr/bin/env python3
"""Opens report pages in headless Chromium with the network blocked: page_test.py SOURCE_DIR [--written-by PROGRAM | PAGE.html...]

With pages: each must request only itself, print nothing to the console, fit into 320 pixels, begin with a summary of one
screen, have a dark theme, print, and show the same charts with scripts blocked. Without pages: tests the checks on a good
page made of the golden charts, and on pages with one fault each. Exit code 77: no Chromium.
"""
import hashlib
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
root = Path(sys.argv[1])
sys.path.insert(0, str(root / "scripts"))

import browser  # noqa: E402

SIZES = "[...document.querySelectorAll('svg.c-chart')].map(s => {const r = s.getBoundingClientRect(); return [r.width, r.height]})"
# Moves one chart to the corner of the window, so that its picture does not depend on its place.
ALONE = """(() => {
  const chart = document.querySelectorAll('svg.c-chart')[%d];
  const box = chart.viewBox.baseVal;
  const body = document.body;
  const others = [...body.children];
  others.forEach(o => { o.hidden = true; o.style.display = 'none'; });
  chart.remove();
  body.append(chart);
  chart.style.cssText = 'position:fixed;left:0;top:0;max-width:none;width:' + box.width + 'px;height:' + box.height + 'px';
  return [box.width, box.height];
})()"""


def charts(chromium, page, scripts):
    """Sizes of the charts on the page, and a hash of the picture of each."""
    chromium.emulate(width=1280, scripts=scripts)
    chromium.open(page)
    sizes = chromium.evaluate(SIZES)
    pictures = []
    for number in range(len(sizes)):
        chromium.open(page)
        width, height = chromium.evaluate(ALONE % number)
        pictures.append(hashlib.sha256(chromium.screenshot((0, 0, width, height))).hexdigest())
    return sizes, pictures


def faults(chromium, page):
    """The faults of a page, as texts."""
    found = []
    page = Path(page)
    chromium.open(page)
    if not chromium.evaluate(SIZES):
        return ["has no chart"]
    for view in ({"width": 1280}, {"width": 320}, {"width": 1280, "dark": True}, {"width": 794, "media": "print"}):
        chromium.emulate(**view)
        chromium.open(page)
        others = [url for url in chromium.requests if url.split("#")[0] != page.resolve().as_uri()]
        found += [f"{view}: asks for {url}" for url in others + chromium.refused]
        found += [f"{view}: says {message}" for message in chromium.messages]
        width = chromium.evaluate("document.documentElement.scrollWidth")
        if not width <= view["width"]:
            found.append(f"{view}: is {width} pixels wide")
    chromium.emulate(width=1280, height=800)
    chromium.open(page)
    if chromium.evaluate("document.querySelector('#summary')?.getBoundingClientRect().bottom > 800"):
        found.append("its summary takes more than one screen")
    # In print: a heading starts a page with its charts, a chart fits below it, the table of cases is shown.
    chromium.emulate(width=794, media="print")
    chromium.open(page)
    if chromium.evaluate("[...document.querySelectorAll('section')].some(s =>"
                         " s.querySelector(':scope > .figures') && getComputedStyle(s).breakBefore !== 'page')"):
        found.append("prints a heading that can stand alone")
    if chromium.evaluate("[...document.querySelectorAll('section svg.c-chart')].some(s => s.getBoundingClientRect().height > 800)"):
        found.append("prints a chart that is taller than its page")
    if chromium.evaluate("[...document.querySelectorAll('.cases tbody tr')].some(r => r.getBoundingClientRect().height === 0)"):
        found.append("does not print its cases")
    looks = {}
    for name, view in {"light": {}, "dark": {"dark": True}, "printed in the dark": {"dark": True, "media": "print"}}.items():
        chromium.emulate(width=1280, **view)
        chromium.open(page)
        looks[name] = chromium.evaluate(
            "[getComputedStyle(document.body).backgroundColor,"
            " getComputedStyle(document.querySelector('svg.c-chart .c-paper')).fill].join()")
    if looks["light"] == looks["dark"]:
        found.append("looks the same in the dark")
    if looks["light"] != looks["printed in the dark"]:
        found.append("prints dark")
    with_scripts, without = charts(chromium, page, True), charts(chromium, page, False)
    if with_scripts != without:
        found.append("its charts differ with scripts blocked")
    return found


def page_of(body):
    """A page with the golden charts, as a report has them."""
    drawings = [path.read_text() for path in sorted((root / "tests/harness/page/chart/golden").glob("*.svg"))]
    style = re.search(r"<style>(.*?)</style>", drawings[0], re.DOTALL).group(0)
    charts_text = "".join(
        re.sub(r'^<svg [^>]*? viewBox', '<svg class="c-chart" viewBox', drawing.replace(style, "")) for drawing in drawings)
    return ('<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
            '<title>charts</title><style>body{margin:0 12px;background:#fff}'
            '@media screen and (prefers-color-scheme:dark){body{background:#14181d}}</style>'
            f'{style}</head><body><main>{charts_text}</main>{body}</body></html>')


WRONG = {
    "asks for": '<img alt="" src="http://example.invalid/x.png">',
    "asks for file:": '<img alt="" src="file:///nonexistent.png">',
    "says console.log: one": "<script>console.log('one')</script>",
    "says exception": "<script>throw new Error('two')</script>",
    "its summary takes more than one screen": '<section id="summary">x</section>',
    "is 500 pixels wide": '<div style="width:488px">x</div>',
    "prints a heading that can stand alone": '<section><h2>x</h2><div class="figures">x</div></section>',
    "does not print its cases": '<style>@media print{.cases{display:none}}</style><div class="cases"><table><tbody><tr><td>x</td></tr></tbody></table></div>',
    "prints a chart that is taller": '<section><svg class="c-chart" viewBox="0 0 9 900" style="height:900px;width:9px"><rect class="c-paper"/></svg></section>',
    "looks the same in the dark": "<style>body,.c-paper{background:#fff!important;fill:#fff!important}</style>",
    "its charts differ with scripts blocked": "<script>document.querySelector('svg.c-chart text').textContent = 'three'</script>",
}


def try_checks(chromium, folder):
    """Wrong results of the checks, as texts."""
    page = folder / "page.html"
    wrong = []
    page.write_text(page_of(""))
    wrong += ["a good page: " + fault for fault in faults(chromium, page)]
    page.write_text("<!doctype html><title>empty</title>")
    if faults(chromium, page) != ["has no chart"]:
        wrong.append("a page without a chart passes")
    for expected, body in WRONG.items():
        page.write_text(page_of(body))
        found = faults(chromium, page)
        if not any(expected in fault for fault in found):
            wrong.append(f"'{expected}' is not reported; reported: {found}")
    return wrong


def main():
    if browser.find_chromium() is None:
        print("skipped: no Chromium found; install the package chromium, or name one in GPUBENCH_CHROMIUM")
        return 77
    pages = sys.argv[2:]
    with tempfile.TemporaryDirectory() as folder, browser.Browser() as chromium:
        if pages[:1] == ["--written-by"]:  # its arguments: the file and the number of cases
            pages = [Path(folder) / "made.html"]
            subprocess.run([sys.argv[3], pages[0], "60"], check=True)
        if pages:
            found = [f"{page}: {fault}" for page in pages for fault in faults(chromium, page)]
        else:
            found = try_checks(chromium, Path(folder))
    print("\n".join(found) if found else "nothing wrong")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
