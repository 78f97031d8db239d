"""A real browser without a window, for tests of pages; skipped where there is none."""

import shutil
import time
from contextlib import contextmanager

import pytest

PATIENCE = 60  # seconds; on a busy machine a browser takes its time


@contextmanager
def open_browser(saved):
    """Start a browser that saves what it downloads in a folder, and end it
    afterwards."""
    webdriver = pytest.importorskip("selenium.webdriver")
    from selenium.webdriver.chrome.service import Service

    program = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip("needs chromium and chromedriver")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--window-size=1100,900",
    ):
        options.add_argument(argument)
    options.add_experimental_option("prefs", {"download.default_directory": str(saved)})
    options.set_capability(
        "goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"}
    )
    browser = webdriver.Chrome(options=options, service=Service(driver))
    try:
        yield browser
    finally:
        browser.quit()


def wait(browser, condition):
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(browser, PATIENCE, poll_frequency=0.1).until(lambda _: condition())


def show(browser, element):
    """Bring an element to the middle of the window."""
    browser.execute_script(
        "arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", element
    )
    time.sleep(0.2)
