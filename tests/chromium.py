"""Chromium without a window, for the tests of pages."""

import os
import shutil

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
needs_chromium = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="needs chromium and chromedriver (Debian: apt install chromium chromium-driver)"
)


def start_chromium(profile):
    """A driver whose profile is in the folder ``profile`` and whose console is kept; the caller quits it."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    flags = ["headless=new", "disable-gpu", "no-first-run", "disable-background-networking", "disable-component-update", "disable-sync"]
    flags += [f"user-data-dir={profile}", "window-size=1200,1000"]
    if os.getuid() == 0:
        flags.append("no-sandbox")  # Chromium's sandbox refuses to run as root, as in containers
    for flag in flags:
        options.add_argument("--" + flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
