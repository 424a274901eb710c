"""Opens a local page in headless Chromium and records its requests and console messages.

Uses the DevTools protocol (chromedevtools.github.io/devtools-protocol) over a pair of pipes, without a port; needs only
Python 3 and Chromium. Blocks and records every request except the opened file. Used by scripts/screenshots and
tests/scripts/page_test.py.
"""

import base64
import fcntl
import json
import os
import pathlib
import select
import shutil
import signal
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


class BrowserError(RuntimeError):
    """Chromium is missing, died, did not answer in time, or refused a command."""


def find_chromium():
    """Path of Chromium: GPUBENCH_CHROMIUM, or the first of NAMES that is installed; None: not found."""
    asked = os.environ.get("GPUBENCH_CHROMIUM")
    if asked:
        return shutil.which(asked)
    return next((path for path in map(shutil.which, NAMES) if path), None)


def _high(descriptor):
    """Moves the descriptor to 10 or above, since Chromium's ends must be 3 and 4."""
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(descriptor)
    return moved


class Browser:
    """Chromium with one page, as a context manager that ends it and removes its profile."""

    def __init__(self, program=None, timeout_s=60.0):
        self._program = program or find_chromium()
        if not self._program:
            raise BrowserError("no Chromium found; install the package chromium, or name one in GPUBENCH_CHROMIUM")
        self._timeout_s = timeout_s
        self._pid = None
        self._next = 0
        self._buffer = b""
        self._session = None
        self.requests = []  # URLs requested since open(), including the page
        self.refused = []  # requests other than the page
        self.messages = []  # of console and log, including exceptions
        self._page = None
        self._loaded = False

    def __enter__(self):
        self._profile = tempfile.TemporaryDirectory(prefix="gpubench-chromium-", ignore_cleanup_errors=True)
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    def _start(self):
        commands_out, commands_in = map(_high, os.pipe())
        answers_out, answers_in = map(_high, os.pipe())
        home = self._profile.name
        arguments = [self._program, "--headless=new", "--remote-debugging-pipe", f"--user-data-dir={home}", "--no-first-run",
                     "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking", "--disable-sync",
                     "--disable-extensions", "--disable-component-update", "--hide-scrollbars", "--font-render-hinting=none",
                     "--force-color-profile=srgb", "--host-resolver-rules=MAP * ~NOTFOUND", "about:blank"]
        if os.geteuid() == 0:  # root cannot set up Chromium's sandbox
            arguments.insert(1, "--no-sandbox")
        nowhere = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        environment = dict(os.environ, HOME=home, XDG_CONFIG_HOME=home, XDG_CACHE_HOME=home)
        self._pid = os.posix_spawn(self._program, arguments, environment, setpgroup=0, file_actions=[
            (os.POSIX_SPAWN_DUP2, nowhere, 0), (os.POSIX_SPAWN_DUP2, nowhere, 1), (os.POSIX_SPAWN_DUP2, nowhere, 2),
            (os.POSIX_SPAWN_DUP2, commands_out, 3), (os.POSIX_SPAWN_DUP2, answers_in, 4)])
        for descriptor in (nowhere, commands_out, answers_in):
            os.close(descriptor)
        self._to, self._from = commands_in, answers_out
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")
        self.call("Fetch.enable", patterns=[{"urlPattern": "*"}])

    def close(self):
        """Ends Chromium and its children, by their process group."""
        if self._pid is not None:
            try:
                os.killpg(self._pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            os.waitpid(self._pid, 0)
            self._pid = None
            os.close(self._to)
            os.close(self._from)
        self._profile.cleanup()

    def _read(self, deadline):
        while b"\0" not in self._buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._from], [], [], left)[0]:
                raise BrowserError(f"Chromium did not answer within {self._timeout_s:g} s")
            read = os.read(self._from, 1 << 20)
            if not read:
                raise BrowserError("Chromium ended unexpectedly")
            self._buffer += read
        message, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(message)

    def _send(self, method, parameters):
        self._next += 1
        message = {"id": self._next, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        try:
            while data:
                data = data[os.write(self._to, data):]
        except BrokenPipeError:
            raise BrowserError("Chromium ended unexpectedly") from None
        return self._next

    def call(self, method, **parameters):
        """Runs a command of the protocol and returns its result. Records events that arrive meanwhile."""
        number = self._send(method, parameters)
        deadline = time.monotonic() + self._timeout_s
        while True:
            message = self._read(deadline)
            if message.get("id") == number:
                if "error" in message:
                    raise BrowserError(f"{method}: {message['error'].get('message', message['error'])}")
                return message["result"]
            self._note(message)

    def _note(self, message):
        method, event = message.get("method"), message.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(event["request"]["url"])
        elif method == "Fetch.requestPaused":
            url = event["request"]["url"]
            if url.split("#")[0] == self._page:
                self._send("Fetch.continueRequest", {"requestId": event["requestId"]})
            else:
                self.refused.append(url)
                self._send("Fetch.failRequest", {"requestId": event["requestId"], "errorReason": "BlockedByClient"})
        elif method == "Runtime.consoleAPICalled":
            words = [str(a.get("value", a.get("description", a.get("type")))) for a in event["args"]]
            self.messages.append(f"console.{event['type']}: {' '.join(words)}")
        elif method == "Runtime.exceptionThrown":
            detail = event["exceptionDetails"]
            self.messages.append("exception: " + detail.get("exception", {}).get("description", detail["text"]))
        elif method == "Log.entryAdded":
            self.messages.append(f"{event['entry']['source']}: {event['entry']['text']}")
        elif method == "Page.loadEventFired":
            self._loaded = True

    def emulate(self, width=1280, height=900, dark=False, media="screen", scripts=True, scale=1):
        """Settings of the next page: width in CSS pixels, color scheme, screen or print, with or without scripts."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale,
                  mobile=width < 700)
        self.call("Emulation.setEmulatedMedia", media=media, features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.call("Emulation.setScriptExecutionDisabled", value=not scripts)

    def open(self, path):
        """Opens a local file and waits until it is loaded and painted."""
        self.requests, self.refused, self.messages = [], [], []
        self._loaded = False
        self._page = pathlib.Path(path).resolve(strict=True).as_uri()
        answer = self.call("Page.navigate", url=self._page)
        if "errorText" in answer:
            raise BrowserError(f"open {path}: {answer['errorText']}")
        deadline = time.monotonic() + self._timeout_s
        while not self._loaded:
            self._note(self._read(deadline))
        # When a command after the load event is answered, all immediate events of the page have arrived.
        self.evaluate("document.readyState")

    def evaluate(self, expression):
        """Value of a JavaScript expression in the page; awaits promises; works also with scripts disabled."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise BrowserError(f"{expression}: {answer['exceptionDetails']['text']}")
        return answer["result"].get("value")

    def screenshot(self, clip=None, max_height=16000):
        """PNG of the page up to max_height, or of clip = (x, y, width, height) in CSS pixels. Chromium cannot paint more
        than 16,384 pixels of height."""
        if clip is None:
            size = self.call("Page.getLayoutMetrics")["cssContentSize"]
            clip = (0, 0, size["width"], min(size["height"], max_height))
        x, y, width, height = clip
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True,
                           clip={"x": x, "y": y, "width": width, "height": height, "scale": 1})
        return base64.b64decode(answer["data"])

    def pdf(self):
        """PDF of the printed page, A4."""
        answer = self.call("Page.printToPDF", printBackground=False, paperWidth=8.27, paperHeight=11.69)
        return base64.b64decode(answer["data"])
