"""The pages of a fit and of a benchmark in a real browser: they draw, answer, and ask nobody."""

import csv
import json

import numpy as np
import pytest

pytest.importorskip("plotly")
pytest.importorskip("selenium")

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from browsers import open_browser, show, wait
from mkclust import AnchoredMKKM
from mkclust.datasets import load
from mkclust.explain.page import fit_report

pytestmark = pytest.mark.slow

PLOTS = (
    "silhouettes",
    "features",
    "stability",
    "numbers",
    "embedding",
    "plane",
    "weights",
    "agreement",
    "similarities",
    "convergence",
)
# In the order in which they are read.
SECTIONS = (
    "clusters",
    "features",
    "stability",
    "classes",
    "number",
    "embedding",
    "kernels",
    "agreement",
    "similarities",
    "convergence",
    "run",
)


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """Return the page of some of the bundled digits, and the model that it is about."""
    data = load("digits")
    views = {name: view[:300] for name, view in data.views.items()}
    views["<b>static</b>"] = np.random.default_rng(0).normal(size=(300, 20))
    model = AnchoredMKKM(10, random_state=0).fit(views)
    path = tmp_path_factory.mktemp("page") / "digits.html"
    ids = [f"image <{i}>" for i in range(300)]
    options = {"n_resamples": 3, "leave_one_out": False}
    return fit_report(model, views, path, y=data.y[:300], ids=ids, **options), model


@pytest.fixture(scope="module")
def browser(digits):
    """Return a browser that has loaded the page."""
    with open_browser(digits[0].parent / "saved") as browser:
        browser.get(digits[0].as_uri())
        wait(browser, lambda: drawn(browser) == str(len(PLOTS)))
        yield browser


def drawn(browser):
    return browser.execute_script("return document.documentElement.dataset.drawn")


def column(table, at):
    """Return the cells of one column as they stand."""
    return [row.find_elements(By.XPATH, "*")[at].text for row in rows(table)]


def rows(table):
    return table.find_elements(By.CSS_SELECTOR, "tbody tr")


# The first test, for it reads the log of loading.
def test_the_page_loads_without_error_and_asks_nobody(browser):
    assert browser.get_log("browser") == []
    entries = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [
        entry["params"]["request"]["url"]
        for entry in entries
        if entry["method"] == "Network.requestWillBeSent"
    ]
    assert asked
    assert all(url.startswith(("file://", "data:", "blob:")) for url in asked), asked
    assert sum(url.startswith("file://") for url in asked) == 1


def test_every_section_and_plot_is_there_and_drawn(browser):
    for name in SECTIONS:
        assert browser.find_element(By.CSS_SELECTOR, f"section#{name} h2").is_displayed()
    for name in PLOTS:
        plot = browser.find_element(By.CSS_SELECTOR, f"#{name}-plot .js-plotly-plot")
        marks = plot.find_elements(By.CSS_SELECTOR, ".points path, .point path, .hm image")
        lines = plot.find_elements(By.CSS_SELECTOR, "path.js-line")
        assert marks or lines, name
        assert plot.get_attribute("aria-label")
    for name in ("embedding", "plane"):
        dots = browser.find_elements(By.CSS_SELECTOR, f"#{name}-plot .points path")
        assert len(dots) == 300


def test_the_verdict_is_read_first_then_clusters_and_convergence_late(browser):
    tops = browser.execute_script(
        """const top = (where) => document.querySelector(where).getBoundingClientRect().top;
           return ['h1', '.verdict', '.facts', ...arguments[0].map((name) => `section#${name}`)]
             .map(top);""",
        list(SECTIONS),
    )
    assert tops == sorted(tops)
    said = browser.find_element(By.CSS_SELECTOR, ".verdict").text
    assert said.startswith("4 of 5 views agree beyond chance")
    assert "Set aside, sharing nothing with any other view: <b>static</b>." in said
    assert "The 10 clusters are" in said


def test_the_two_maps_stand_beside_each_other_and_below_each_other_where_it_is_narrow(browser):
    places = (
        "return [...document.querySelectorAll('.beside figure')]"
        ".map((figure) => figure.getBoundingClientRect()).map((box) => [box.left, box.top])"
    )
    (left, top), (right, same) = browser.execute_script(places)
    assert right > left + 300
    assert same == top
    size = {"width": 400, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        (left, top), (right, below) = browser.execute_script(places)
        assert right == left
        assert below > top + 300
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_a_click_saves_the_labels_of_all_samples(browser, digits):
    page, model = digits
    link = browser.find_element(By.CSS_SELECTOR, "#clusters a.download")
    show(browser, link)
    link.click()
    saved = page.parent / "saved" / "clusters.csv"
    wait(browser, saved.exists)
    with open(saved, newline="") as file:
        head, *rows = csv.reader(file)
    assert head == ["id", "cluster"]
    assert rows == [[f"image <{i}>", str(c)] for i, c in enumerate(model.labels_)]


def test_clusters_are_counted_against_classes_in_one_table(browser):
    assert browser.find_elements(By.CSS_SELECTOR, "#classes figure") == []
    captions = browser.find_elements(By.CSS_SELECTOR, "caption")
    matched = [caption for caption in captions if "given class (columns)" in caption.text]
    assert len(matched) == 1
    table = matched[0].find_element(By.XPATH, "..")
    assert sum(int(cell) for at in range(1, 11) for cell in column(table, at)) == 300


def test_the_browser_itself_forbids_requests(browser):
    blocked = browser.execute_async_script(
        "const done = arguments[arguments.length - 1];"
        "fetch('http://127.0.0.1:9/').then(() => done('sent'), (e) => done(String(e)));"
    )
    assert "sent" not in blocked
    log = browser.get_log("browser")
    assert any("Content Security Policy" in entry["message"] for entry in log)


def test_hovering_over_a_dot_names_sample_and_cluster(browser, digits):
    plot = browser.find_element(By.CSS_SELECTOR, "#embedding-plot .plot")
    show(browser, plot)
    # A dot that no other covers: the one farthest from all others.
    number = browser.execute_script(
        """const dots = [...arguments[0].querySelectorAll('.points path')].map((dot) => {
             const box = dot.getBoundingClientRect();
             return [box.x + box.width / 2, box.y + box.height / 2];
           });
           const space = dots.map((a) => Math.min(...dots.filter((b) => b !== a)
             .map((b) => Math.hypot(a[0] - b[0], a[1] - b[1]))));
           return space.indexOf(Math.max(...space));""",
        plot,
    )
    dot = plot.find_elements(By.CSS_SELECTOR, ".points path")[number]
    ActionChains(browser).move_to_element(dot).perform()
    shown = "return document.querySelector('#embedding-plot .hoverlayer').textContent"
    wait(browser, lambda: "cluster" in browser.execute_script(shown))
    said = browser.execute_script(shown)
    sample = int(said.partition("image <")[2].partition(">")[0])
    assert f"cluster {digits[1].labels_[sample]}" in said
    assert "silhouette" in said
    assert "stability" in said


def test_hovering_over_the_mixed_kernel_names_two_samples(browser):
    plot = browser.find_element(By.CSS_SELECTOR, "#similarities-plot .plot")
    show(browser, plot)
    image = plot.find_element(By.CSS_SELECTOR, ".hm image")
    ActionChains(browser).move_to_element_with_offset(image, 40, 30).perform()
    shown = "return document.querySelector('#similarities-plot .hoverlayer').textContent"
    wait(browser, lambda: "similarity" in browser.execute_script(shown))
    assert browser.execute_script(shown).count("image <") == 2


def test_clicking_a_head_sorts_by_it_and_back(browser):
    table = browser.find_element(By.CSS_SELECTOR, "#clusters table")
    head = table.find_elements(By.CSS_SELECTOR, "thead th")[3]
    button = head.find_element(By.TAG_NAME, "button")
    assert head.get_attribute("aria-sort") == "none"
    show(browser, button)
    button.click()
    falling = [float(cell) for cell in column(table, 3)]
    assert head.get_attribute("aria-sort") == "descending"
    assert falling == sorted(falling, reverse=True)
    button.click()
    assert head.get_attribute("aria-sort") == "ascending"
    assert [float(cell) for cell in column(table, 3)] == sorted(falling)


def test_the_keyboard_sorts_and_the_focus_is_seen(browser):
    table = browser.find_element(By.CSS_SELECTOR, "#kernels table")
    first, second = table.find_elements(By.CSS_SELECTOR, "thead button")[:2]
    show(browser, first)
    browser.execute_script("arguments[0].focus()", first)
    ActionChains(browser).send_keys(Keys.TAB).perform()
    assert browser.switch_to.active_element == second
    style = browser.execute_script("return getComputedStyle(arguments[0]).outlineStyle", second)
    assert style == "solid"
    ActionChains(browser).key_down(Keys.SHIFT).send_keys(Keys.TAB).key_up(Keys.SHIFT).perform()
    assert browser.switch_to.active_element == first
    names = ["<b>static</b>", "fourier", "gradients", "pixels", "projections"]
    for key, order, expected in (
        (Keys.ENTER, "ascending", names),
        (Keys.SPACE, "descending", names[::-1]),
    ):
        ActionChains(browser).send_keys(key).perform()
        assert column(table, 0) == expected
        said = browser.execute_script("return document.getElementById('status').textContent")
        assert said == f"The kernels: sorted by Kernel, {order}"


def test_letters_stand_out_from_what_is_behind_them(browser):
    faint = browser.execute_script(
        """const light = (text) => {
             const [r, g, b] = text.match(/[\\d.]+/g).slice(0, 3).map((value) => {
               const part = value / 255;
               return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
             });
             return 0.2126 * r + 0.7152 * g + 0.0722 * b;
           };
           const behind = (element) => {
             for (let at = element; at; at = at.parentElement) {
               const color = getComputedStyle(at).backgroundColor;
               if (!/, 0\\)$/.test(color)) return color;
             }
             return 'rgb(255, 255, 255)';
           };
           return [...document.querySelectorAll('h1,h2,h3,p,li,dt,dd,th,td,a,figcaption,button')]
             .filter((element) => element.textContent.trim())
             .map((element) => {
               const [a, b] = [light(getComputedStyle(element).color), light(behind(element))];
               return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), element.outerHTML];
             })
             .filter(([ratio]) => ratio < 4.5)
             .map(([ratio, text]) => `${ratio.toFixed(2)} ${text.slice(0, 80)}`);"""
    )
    assert faint == []


def test_a_narrow_window_shows_all_without_scrolling_sideways(browser):
    size = {"width": 400, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        width = "return document.documentElement.scrollWidth"
        wait(browser, lambda: browser.execute_script(width) <= 400)
        wide = (
            "return [...document.querySelectorAll('.plot svg')]"
            ".filter((svg) => svg.getBoundingClientRect().right > 401).length"
        )
        wait(browser, lambda: browser.execute_script(wide) == 0)
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_printing_leaves_out_what_paper_cannot_do(browser):
    paper = {"width": 700, "height": 990, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", paper)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        browser.execute_script("window.dispatchEvent(new Event('beforeprint'))")
        width = "return document.documentElement.scrollWidth"
        wait(browser, lambda: browser.execute_script(width) <= 700)
        hidden = browser.find_elements(By.CSS_SELECTOR, "nav, button.save, button.copy")
        assert hidden
        assert not any(element.is_displayed() for element in hidden)
        box = browser.find_element(By.CSS_SELECTOR, "#stability .table")
        clipped = "return arguments[0].scrollHeight > arguments[0].clientHeight + 1"
        assert not browser.execute_script(clipped, box)
    finally:
        browser.execute_script("window.dispatchEvent(new Event('afterprint'))")
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
