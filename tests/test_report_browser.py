"""The report's page in a real browser: choosing, sorting and keys work, hostile completions stay text, the console is silent."""

import pytest
from report_folder import HOSTILE, make_folder

pytest.importorskip("matplotlib", reason="the report needs matplotlib (the 'report' extra)")
pytest.importorskip("selenium", reason="needs selenium (the 'dev' extra)")

from chromium import needs_chromium, start_chromium
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from setpo_agents.report import write_report

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    driver = start_chromium(tmp_path_factory.mktemp("profile"))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    return write_report(make_folder(tmp_path_factory.mktemp("study"), seeds=1))[-1].as_uri()


@pytest.fixture
def page(browser, url):
    browser.get("about:blank")  # a changed #fragment alone would not load the page again
    browser.get(url)
    yield browser
    assert browser.get_log("browser") == []  # no error, no blocked request, no alert


def text(page, css):
    return page.find_element(By.CSS_SELECTOR, css).text


def texts(page, css):
    return [element.get_property("textContent") for element in page.find_elements(By.CSS_SELECTOR, css)]


def choose(page, name, label):
    Select(page.find_element(By.ID, name)).select_by_visible_text(label)


def test_page_shows_table_figures_and_the_first_group(page):
    assert "minus GRPO" in text(page, "#table")
    sizes = page.execute_script("return [...document.images].map((image) => [image.id, image.complete && image.naturalWidth > 100])")
    assert sizes == [["pass_at_k", True], ["diversity", True], ["embedding_map", True]]
    assert text(page, "#prompt") == "1234=10>"
    assert text(page, "#gold") == '{"numbers": [1, 2, 3, 4], "target": 10}'
    assert text(page, "#summary").startswith("6 of 8 correct; 3 distinct correct solutions of 9 that exist")
    assert len(texts(page, "#rows tr")) == 8
    assert text(page, "#kernel") == "cosine_clamp, expression"


def test_choosing_arm_evaluation_and_problem_changes_the_completions(page):
    choose(page, "arm", "SetPO+GRPO")
    assert "1+2+3+0 seed 0 of SetPO+GRPO" in texts(page, "td.completion")
    choose(page, "file", "validation, step 4")
    assert "1+2+3+4 seed 0 of SetPO+GRPO" in texts(page, "td.completion")
    choose(page, "arm", "GRPO")  # keeps the evaluation
    assert "1+2+3+4 seed 0 of GRPO" in texts(page, "td.completion")
    page.find_element(By.ID, "next").click()
    assert text(page, "#prompt") == "2345=14>" and "5+4+3+2" in texts(page, "td.completion")
    assert not page.find_element(By.ID, "next").is_enabled()
    choose(page, "arm", "SetPO+GRPO")  # and the problem
    assert text(page, "#prompt") == "2345=14>"
    page.refresh()  # the address holds the choice
    assert (text(page, "#prompt"), Select(page.find_element(By.ID, "arm")).first_selected_option.text) == ("2345=14>", "SetPO+GRPO")


def test_hostile_completion_stays_text(page):
    assert HOSTILE in texts(page, "td.completion")
    markup = "return ['script', 'img'].map((tag) => document.querySelectorAll(`main ${tag}`).length)"
    assert page.execute_script(markup) == [0, 3]  # the three figures
    assert page.execute_script("return document.scripts.length") == 2


def test_sorting_by_credit_and_verdict(page):
    page.find_element(By.CSS_SELECTOR, "[data-sort=credit]").click()
    credits = [float(value) for value in texts(page, "td.credit")]
    assert credits == sorted(credits, reverse=True) and len(set(credits)) > 1
    assert text(page, "th[aria-sort=descending]").startswith("Credit")
    page.switch_to.active_element.send_keys(Keys.ENTER)  # the sorted head keeps the focus: the same again, by keyboard
    assert [float(value) for value in texts(page, "td.credit")] == sorted(credits)
    page.find_element(By.CSS_SELECTOR, "[data-sort=verdict]").click()
    verdicts = texts(page, "#rows .verdict")
    assert verdicts == sorted(verdicts) and len(set(verdicts)) > 1


def test_arrow_keys_move_over_rows_and_heat_map(page):
    heat = page.find_element(By.ID, "heat")
    before = text(page, "#pair b")
    heat.send_keys(Keys.ARROW_DOWN)
    heat.send_keys(Keys.ARROW_RIGHT)
    assert text(page, "#pair b") != before and texts(page, "#rows tr.chosen")[0] == texts(page, "#rows tr")[1]
    page.find_element(By.CSS_SELECTOR, "#rows tr.chosen").send_keys(Keys.ARROW_DOWN)
    assert texts(page, "#rows tr.chosen")[0] == texts(page, "#rows tr")[2]
    assert page.execute_script("return document.activeElement === document.querySelector('#rows tr.chosen')")


def test_heat_map_is_dark_for_equal_and_light_for_unlike_completions(page):
    page.execute_script("pick(7, 7)")
    pixels = page.execute_script("""
        const cell = heat.width / order.length;
        const {data} = heat.getContext("2d").getImageData(0, Math.floor(cell / 2), heat.width, 1);
        return order.map((member, j) => [similarity(order[0], member), data[4 * Math.floor((j + 0.5) * cell)]]);""")
    for share, red in pixels:
        assert abs(red - round(255 * (1 - share))) <= 1
    assert len({red for _, red in pixels}) > 1


def test_page_fits_a_phone(page):
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 360, "height": 740, "deviceScaleFactor": 1, "mobile": True})
    page.refresh()
    try:
        assert page.execute_script("return document.documentElement.scrollWidth") <= 360
        ends = page.execute_script("return [...document.querySelectorAll('#rows td')].map((cell) => cell.getBoundingClientRect().right)")
        assert max(ends) <= 360
    finally:
        page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
