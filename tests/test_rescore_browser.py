"""The page of a rescored file in a real browser: sorting by pay, choosing, keys; hostile completions stay text, the console is silent."""

import json

import pytest

pytest.importorskip("selenium", reason="needs selenium (the 'dev' extra)")

from chromium import needs_chromium, start_chromium
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from setpo_agents.comparison import compare_methods
from setpo_agents.methods import read_methods
from setpo_agents.rescore import rescore_methods
from setpo_agents.rescore_page import write_page

pytestmark = needs_chromium

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>{{DATA}}\u2028\u202e&amp;"
LONG = "thinking " * 400 + "<answer>4*5-3*2</answer>"
METHODS = ["none", 'setpo:{"kernel": "equality_key"}', "madrl"]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    driver = start_chromium(tmp_path_factory.mktemp("profile"))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rescored")
    groups = [
        ("1234=10", {"numbers": [1, 2, 3, 4], "target": 10}, ["1+2+3+4", "4+3+2+1", "1+2+3+4", "3*4-2*1", "1+2+3-4", HOSTILE]),
        ("2345=14", {"numbers": [2, 3, 4, 5], "target": 14}, ["2+3+4+5", LONG, "2*3*4-5", ""]),
        (f"a prompt that is {HOSTILE}", {"numbers": [1, 2], "target": 3}, ["1+2", "2"]),
    ]
    lines = [{"task": "countdown", "problem_id": f"p{i}", "prompt": p, "gold": g, "completions": c} for i, (p, g, c) in enumerate(groups)]
    (folder / "in.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    methods = read_methods(METHODS)
    lines = rescore_methods(folder / "in.jsonl", folder / "out.jsonl", methods=methods)
    return write_page(folder / "page.html", compare_methods(lines), lines, methods, name=f"in {HOSTILE}").as_uri()


@pytest.fixture
def page(browser, url):
    browser.get("about:blank")
    browser.get(url)
    yield browser
    assert browser.get_log("browser") == []  # no error, no blocked request, no alert


def text(page, css):
    return page.find_element(By.CSS_SELECTOR, css).text


def texts(page, css):
    return [element.get_property("textContent") for element in page.find_elements(By.CSS_SELECTOR, css)]


def pays(page, method):
    """The column of a method, counted from 0, from top to bottom."""
    return [float(row) for row in texts(page, f"#rows td.pay:nth-child({5 + method})")]


def test_page_shows_the_comparison_and_a_column_a_method(page):
    assert "Where the positive signal goes" in text(page, "#table")
    assert texts(page, "#agreement tbody th") == ["1 none", "2 setpo kernel=equality_key", "3 madrl"]
    assert len(texts(page, "#agreement td")) == 9
    assert [head.rstrip(" ↓↑") for head in texts(page, "#heads th")] == [
        "#", "Verdict", "Completion", "Mode", "none", "setpo kernel=equality_key", "madrl"
    ]  # fmt: skip
    assert text(page, "#prompt") == "1234=10" and text(page, "#summary").startswith("p0 (countdown): 4 of 6 correct; 2 distinct")
    assert len(texts(page, "#rows tr")) == 6 and len(texts(page, "#rows td.pay")) == 18


def test_sorting_by_what_a_method_pays(page):
    assert pays(page, 1) == sorted(pays(page, 1), reverse=True) and len(set(pays(page, 1))) > 1  # at first by the first beside the baseline
    page.find_element(By.CSS_SELECTOR, "[data-sort=pay2]").click()
    assert pays(page, 2) == sorted(pays(page, 2), reverse=True) and len(set(pays(page, 2))) > 1
    assert text(page, "th[aria-sort=descending]").startswith("madrl")
    page.switch_to.active_element.send_keys(Keys.ENTER)
    assert pays(page, 2) == sorted(pays(page, 2))
    assert texts(page, "#rows .verdict")[0] != "correct"
    Select(page.find_element(By.ID, "value")).select_by_visible_text("credit c (before λ)")
    assert set(pays(page, 0)) == {0.0} and len(set(pays(page, 1))) > 1


def test_a_button_leads_to_the_completion_that_is_paid_most(page):
    button = page.find_element(By.CSS_SELECTOR, "#paid tbody tr:nth-child(3) td:nth-child(2) button")
    pay, problem, number = button.text.split()[:3]
    button.click()
    chosen = page.find_element(By.CSS_SELECTOR, "#rows tr.chosen")
    assert page.switch_to.active_element == chosen
    assert chosen.find_element(By.CSS_SELECTOR, "td").text == number.strip("#:")
    assert text(page, "#summary").startswith(problem) and f"{pays(page, 2)[0]:+.3f}" == pay


def test_methods_can_be_hidden_and_an_undefined_one_is_marked(page):
    page.find_elements(By.CSS_SELECTOR, "#shown input")[0].click()
    assert texts(page, "#heads th.pay")[0].startswith("setpo") and len(texts(page, "#rows td.pay")) == 12
    page.find_element(By.ID, "next").click()
    page.find_element(By.ID, "next").click()
    assert not page.find_element(By.ID, "next").is_enabled()
    assert [head.rstrip(" ↓↑") for head in texts(page, "#heads th.pay")] == ["setpo kernel=equality_key (undefined)", "madrl"]
    page.refresh()  # the address holds the choice
    assert text(page, "#summary").startswith("p2 ")


def test_a_long_completion_is_clipped_until_it_is_opened(page):
    page.find_element(By.ID, "next").click()
    row = next(row for row in page.find_elements(By.CSS_SELECTOR, "#rows tr") if "thinking" in row.text)
    clipped = row.size["height"]
    row.click()
    assert row.size["height"] > 2 * clipped and LONG in texts(page, "#rows td.completion")
    row.send_keys(Keys.ENTER)
    assert row.size["height"] == clipped
    page.find_element(By.CSS_SELECTOR, "#rows tr").click()
    page.find_element(By.CSS_SELECTOR, "#rows tr.chosen").send_keys(Keys.ARROW_DOWN)
    assert texts(page, "#rows tr.chosen")[0] == texts(page, "#rows tr")[1]


def test_hostile_text_stays_text(page):
    assert HOSTILE in texts(page, "td.completion div")
    assert page.execute_script("return [document.scripts.length, document.querySelectorAll('main script, main img').length]") == [2, 0]
    assert HOSTILE in page.title or HOSTILE in texts(page, "#title")
    page.find_element(By.ID, "next").click()
    page.find_element(By.ID, "next").click()
    assert texts(page, "#prompt") == [f"a prompt that is {HOSTILE}"]


def test_page_fits_a_phone(page):
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 360, "height": 740, "deviceScaleFactor": 1, "mobile": True})
    page.refresh()
    try:
        assert page.execute_script("return document.documentElement.scrollWidth") <= 360
        ends = page.execute_script("return [...document.querySelectorAll('#rows td')].map((cell) => cell.getBoundingClientRect().right)")
        assert max(ends) <= 360
    finally:
        page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
