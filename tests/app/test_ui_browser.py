"""The whole way in a real browser: generate, watch, rank anew, reload, download."""

import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.ui import server
from data.store import Run
from tests.app.browser import PROGRAM, Browser, until


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((server.ADDRESS, 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """A UI that is served by the console command, with a home of its own."""
    port = free_port()
    environment = os.environ | {"FORESHAPE_HOME": str(tmp_path / "home"), "OMP_NUM_THREADS": "1"}
    words = [sys.executable, "-c", "from app.cli import main; main()", "ui", "--port", str(port)]
    process = subprocess.Popen(words, env=environment, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        until(lambda: answers(f"http://localhost:{port}/_stcore/health"))
        yield f"http://localhost:{port}"
    finally:
        os.killpg(process.pid, signal.SIGINT)
        process.wait()


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return answer.read() == b"ok"
    except (urllib.error.URLError, OSError):
        return False


def cards(browser: Browser) -> list[str]:
    """The numbers of the designs on the page, in their order."""
    words = browser.text().split("\n")
    return [line.split(" ")[0] for line in words if " · total " in line]


@pytest.mark.skipif(PROGRAM is None, reason="no chromium is installed here")
def test_generate_watch_rank_reload_download(address: str, tmp_path: Path) -> None:
    with Browser(tmp_path) as browser:
        browser.go(address)
        browser.click("Generate")
        until(lambda: "16 dna designs by rmf" in browser.text())
        until(lambda: len(cards(browser)) == 16 and "done" in browser.text())
        (folder,) = (tmp_path / "home" / "runs").iterdir()
        run = Run(folder)
        rows = {f"{int(row['design']):06d}": float(row["total"]) for row in run.rows()}
        until(lambda: [rows[number] for number in cards(browser)] == sorted(rows.values(), reverse=True))
        assert min(rows.values()) < max(rows.values())
        drawn = "[...document.querySelectorAll('img[alt^=design]')].filter(i => i.naturalWidth > 0).length"
        assert browser.ask(drawn) == 16

        browser.press("Home", 36, "input[type=range]")  # the least weight, which is negative: the worst are first
        until(lambda: [rows[number] for number in cards(browser)] == sorted(rows.values()))

        worst = cards(browser)[0]
        browser.reload()
        until(lambda: len(cards(browser)) == 16)
        assert f"run={folder.name}" in browser.ask("location.href")

        browser.click("All as zip")
        until(lambda: list(browser.downloads.glob("*.zip")) != [])
        with zipfile.ZipFile(next(browser.downloads.glob("*.zip"))) as archive:
            name = f"{folder.name}/designs/{worst}.gb"
            assert archive.read(name) == run.design_path(int(worst), ".gb").read_bytes()
