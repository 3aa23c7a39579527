"""Drives a headless Chromium by the DevTools protocol over two pipes: no other program and no Python package is needed.

    with Chromium() as browser:
        page = browser.open("http://127.0.0.1:8000/", width=400)
        page.wait("document.querySelector('h1')")
"""
import base64
import json
import os
import shutil
import subprocess
import tempfile
import time

PATIENCE_S = 120


def program():
    """Of Chromium, or None."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return next((path for path in map(shutil.which, names) if path), None)


class Failed(Exception):
    pass


class Chromium:
    def __init__(self, *more):
        self.folder = tempfile.mkdtemp(prefix="weir-chromium-")
        ours, theirs_out = os.pipe()
        theirs_in, self.to = os.pipe()
        arguments = [program(), "--headless=new", "--remote-debugging-pipe", f"--user-data-dir={self.folder}", "--no-first-run", "--disable-gpu",
                     "--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--mute-audio",
                     "--hide-scrollbars", "--force-color-profile=srgb", *more]
        if os.geteuid() == 0:
            arguments.append("--no-sandbox")  # which it does not have for root

        def place():  # where Chromium expects them; by way of higher numbers, because either may be 3 or 4 itself
            high_in, high_out = os.dup(theirs_in), os.dup(theirs_out)
            os.dup2(high_in, 3)
            os.dup2(high_out, 4)

        self.process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        preexec_fn=place, pass_fds=(3, 4, theirs_in, theirs_out), start_new_session=True)
        os.close(theirs_out)
        os.close(theirs_in)
        self.source = ours
        os.set_blocking(self.source, False)
        self.buffer = b""
        self.last = 0
        self.pages = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.to)
        os.close(self.source)
        # Its children notice a moment later, and write until then.
        for _ in range(20):
            shutil.rmtree(self.folder, ignore_errors=True)
            if not os.path.exists(self.folder):
                break
            time.sleep(0.1)

    def pump(self):
        """Takes what has come; gives answers by number, and events to their pages."""
        try:
            chunk = os.read(self.source, 1 << 20)
        except BlockingIOError:
            time.sleep(0.005)
            return []
        if not chunk:
            raise Failed("Chromium has ended")
        self.buffer += chunk
        *whole, self.buffer = self.buffer.split(b"\0")
        messages = [json.loads(message) for message in whole]
        for message in messages:
            page = self.pages.get(message.get("sessionId"))
            if page is not None and "method" in message:
                page.take(message["method"], message["params"])
        return [message for message in messages if "id" in message]

    def call(self, method, session=None, **params):
        self.last += 1
        message = {"id": self.last, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        rest = json.dumps(message).encode() + b"\0"
        while rest:
            rest = rest[os.write(self.to, rest):]
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            for answer in self.pump():
                if answer["id"] == self.last:
                    if "error" in answer:
                        raise Failed(f"{method}: {answer['error']['message']}")
                    return answer["result"]
        raise Failed(f"{method}: no answer in {PATIENCE_S} s")

    def open(self, url, **how):
        """A new page; see Page.emulate for `how` it is shown."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = self.pages[session] = Page(self, session, target)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(f"{domain}.enable")
        page.emulate(**how)
        page.call("Page.navigate", url=url)
        page.wait("document.readyState === 'complete'")
        return page


class Page:
    def __init__(self, browser, session, target):
        self.browser, self.session, self.target = browser, session, target
        self.complaints = []  # of the console, exceptions and violations of the policy
        self.requests = []    # addresses

    def call(self, method, **params):
        return self.browser.call(method, self.session, **params)

    def take(self, method, params):
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.complaints.append(" ".join(str(one.get("value", one.get("description"))) for one in params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.complaints.append(f'{params["entry"]["source"]}: {params["entry"]["text"]} {params["entry"].get("url", "")}')
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def emulate(self, width=1440, height=900, scale=1, dark=False, reduced_motion=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
                                                          {"name": "prefers-reduced-motion", "value": "reduce" if reduced_motion else "no-preference"}])

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise Failed(result["exceptionDetails"].get("exception", {}).get("description", "?"))
        return result["result"].get("value")

    def wait(self, expression, patience_s=PATIENCE_S):
        """Until it is true."""
        end = time.monotonic() + patience_s
        while True:
            if self.evaluate(f"Boolean({expression})"):
                return
            if time.monotonic() > end:
                raise Failed(f"never true: {expression}")
            time.sleep(0.02)

    def text(self, selector):
        return self.evaluate(f"document.querySelector({json.dumps(selector)}).textContent")

    def shown(self, selector):
        return self.evaluate(f"document.querySelector({json.dumps(selector)})?.checkVisibility() ?? false")

    def click(self, selector):
        """As with a mouse, so what lies above it is hit instead."""
        box = self.evaluate(f"(() => {{ const node = document.querySelector({json.dumps(selector)}); node.scrollIntoView({{block: 'center'}});"
                            "const box = node.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; })()")
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=box[0], y=box[1])
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)

    def key(self, key, shift=False):
        codes = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
        texts = {"Enter": "\r", " ": " "}
        named = {"key": key, "code": {" ": "Space"}.get(key, key), "windowsVirtualKeyCode": codes[key], "modifiers": 8 if shift else 0}
        self.call("Input.dispatchKeyEvent", type="keyDown", **named, **({"text": texts[key]} if key in texts else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **named)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def screenshot(self, path, whole=False):
        size = {}
        if whole:
            content = self.call("Page.getLayoutMetrics")["cssContentSize"]
            size = {"captureBeyondViewport": True, "clip": {"x": 0, "y": 0, "width": content["width"], "height": content["height"], "scale": 1}}
        data = self.call("Page.captureScreenshot", format="png", **size)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def close(self):
        self.browser.call("Target.closeTarget", targetId=self.target)
        del self.browser.pages[self.session]
