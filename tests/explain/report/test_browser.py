"""The report of a fit in a real browser: it loads nothing, sorts, saves, and fits on a
phone."""

import json

import numpy as np
import pytest

pytest.importorskip("jinja2")
pytest.importorskip("selenium")

from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from helpers.browser import open_browser, show, wait
from mkclust import SimpleMKKM, write_report
from mkclust.datasets import load

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    data = load("digits")
    views = {name: view[:200] for name, view in data.views.items()}
    views["<b>static</b>"] = np.random.default_rng(0).normal(size=(200, 20))
    model = SimpleMKKM(10, random_state=0).fit(views)
    path = tmp_path_factory.mktemp("page") / "digits.html"
    return write_report(model, views, path, data.y[:200], n_resamples=2), model


@pytest.fixture(scope="module")
def browser(digits):
    with open_browser(digits[0].parent / "saved") as browser:
        browser.get(digits[0].as_uri())
        unfold = "document.querySelectorAll('details').forEach(d => d.open = true)"
        browser.execute_script(unfold)
        yield browser


def table(browser, caption):
    return browser.find_element(By.XPATH, f"//table[caption='{caption}']")


def column(found, at):
    rows = found.find_elements(By.CSS_SELECTOR, "tbody tr")
    return [row.find_elements(By.XPATH, "*")[at].text for row in rows]


# The first test, because it reads the log of loading.
def test_the_page_loads_without_error_and_asks_for_nothing_else(browser):
    assert browser.get_log("browser") == []
    entries = [
        json.loads(entry["message"])["message"]
        for entry in browser.get_log("performance")
    ]
    asked = [
        entry["params"]["request"]["url"]
        for entry in entries
        if entry["method"] == "Network.requestWillBeSent"
    ]
    assert all(url.startswith(("file://", "data:")) for url in asked), asked
    assert sum(url.startswith("file://") for url in asked) == 1


def test_tables_are_sorted_by_mouse_and_keyboard(browser, digits):
    found = table(browser, "What each view contributes")
    heads = found.find_elements(By.CSS_SELECTOR, "thead th")
    at = [head.text for head in heads].index("Weight")
    button = heads[at].find_element(By.TAG_NAME, "button")
    show(browser, button)
    button.click()
    values = sorted((f"{weight:.3f}" for weight in digits[1].weights_), reverse=True)
    assert column(found, at) == values
    assert heads[at].get_attribute("aria-sort") == "descending"
    button.send_keys(Keys.ENTER)
    assert column(found, at) == values[::-1]
    assert "sorted by Weight, ascending" in browser.find_element(
        By.ID, "status"
    ).get_attribute("textContent")


def test_labels_are_saved_and_the_methods_can_be_copied(browser, digits):
    link = browser.find_element(By.CSS_SELECTOR, "a.download")
    show(browser, link)
    link.click()
    wait(browser, (digits[0].parent / "saved" / "clusters.csv").exists)
    button = browser.find_element(By.CSS_SELECTOR, "button.copy")
    show(browser, button)
    button.click()
    assert button.text in ("Copied", "Selected")
    assert "We clustered 200 samples" in browser.execute_script(
        "return String(getSelection())"
    )


@pytest.mark.parametrize("width", [1200, 400])
def test_the_page_is_as_wide_as_the_window(browser, width):
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False},
    )
    assert (
        browser.execute_script("return document.documentElement.scrollWidth") <= width
    )
