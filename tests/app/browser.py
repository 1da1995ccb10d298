"""Chromium without a window, driven over the DevTools protocol: what a browser test needs, and no more."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

from websockets.sync.client import connect

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--remote-debugging-port=0",
    "--window-size=1280,1600",
)
PATIENCE = 120.0
"""Seconds that anything may take on a busy machine."""


class Navigated(Exception):  # noqa: N818 -- nothing is wrong
    """The page was replaced before it could answer."""


class Browser:
    """One browser with one page; a context manager."""

    def __init__(self, folder: Path, dark: bool = False) -> None:
        self.downloads = folder / "downloads"
        self._profile, self._dark, self._calls = folder / "profile", dark, 0

    def __enter__(self) -> Browser:
        with ExitStack() as stack:
            self._socket = stack.enter_context(connect(self._started(stack), max_size=None))
            self.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(self.downloads))
            if self._dark:
                features = [{"name": "prefers-color-scheme", "value": "dark"}]
                self.call("Emulation.setEmulatedMedia", features=features)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._stack.close()

    def _started(self, stack: ExitStack) -> str:
        """Start the browser, to be ended with the stack; returns where its page listens."""
        assert PROGRAM is not None
        words = [PROGRAM, *FLAGS, f"--user-data-dir={self._profile}", "about:blank"]
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        stack.callback(process.wait)
        stack.callback(process.terminate)
        port_file = self._profile / "DevToolsActivePort"
        until(lambda: port_file.is_file() and port_file.read_text().strip() != "")
        port = port_file.read_text().splitlines()[0]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json") as answer:
            found: str = next(e["webSocketDebuggerUrl"] for e in json.load(answer) if e["type"] == "page")
        return found

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command of the protocol, and its answer."""
        self._calls += 1
        self._socket.send(json.dumps({"id": self._calls, "method": method, "params": parameters}))
        while True:
            answer = json.loads(self._socket.recv(PATIENCE))
            if answer.get("id") == self._calls:
                if "navigated" in answer.get("error", {}).get("message", ""):
                    raise Navigated(method)
                assert "error" not in answer, answer
                found: dict[str, Any] = answer["result"]
                return found

    def go(self, address: str) -> None:
        """Open an address."""
        self.call("Page.navigate", url=address)

    def reload(self) -> None:
        """Open the page again."""
        self.call("Page.reload")

    def ask(self, script: str) -> Any:
        """The value of an expression in the page; asked again where the page is just being replaced."""
        try:
            answer = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        except Navigated:
            return self.ask(script)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def text(self) -> str:
        """What can be read on the page."""
        return str(self.ask("document.body ? document.body.innerText : ''"))

    def click(self, label: str) -> None:
        """Click the first button that says this, once it is there."""
        script = (
            "(() => { const b = [...document.querySelectorAll('button')]"
            f".find(b => b.innerText.includes({json.dumps(label)}) && !b.disabled);"
            " if (b) b.click(); return !!b })()"
        )
        until(lambda: self.ask(script) is True)

    def press(self, key: str, code: int, selector: str, times: int = 1) -> None:
        """Press a key on what a CSS selector finds."""
        until(lambda: self.ask(f"document.querySelector({json.dumps(selector)}) !== null") is True)
        self.ask(f"document.querySelector({json.dumps(selector)}).focus()")
        for _ in range(times):
            for kind in ("keyDown", "keyUp"):
                self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)

    def screenshot(self, path: Path) -> None:
        """The page as it is, as PNG."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))


def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.1)
