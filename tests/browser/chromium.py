"""A real browser: Chromium without a window, driven by Selenium."""

import base64
import os
import shutil
from contextlib import contextmanager
from typing import Literal, NamedTuple

from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.support.select import Select
from selenium.webdriver.support.ui import WebDriverWait

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
DRIVER = "chromedriver"
SECONDS = 20
GLANCE_SECONDS = 0.02
ARRIVED = "return !window.isOfTheOldPage && document.readyState === 'complete'"

HARMLESS = ("favicon.ico",)
"""What Chromium asks for by itself and the site of the tests has not."""


class Look(NamedTuple):
    """How a page is looked at: the theme of the system, and the width in CSS pixels."""

    theme: Literal["light", "dark"]
    width: int
    height: int

    def __str__(self):
        return f"{self.theme}-{'phone' if self.is_phone else 'desktop'}"

    @property
    def is_phone(self):
        return self.width < 600

    @property
    def is_dark(self):
        return self.theme == "dark"


LOOKS = tuple(
    Look(theme, *size) for size in ((1280, 900), (390, 844)) for theme in ("light", "dark")
)


def program():
    """Return where Chromium is; None without it, or without its driver."""
    found = (shutil.which(name) for name in PROGRAMS)
    return shutil.which(DRIVER) and next(filter(None, found), None)


@contextmanager
def running():
    """Start a browser, which is gone afterwards."""
    options = Options()
    options.binary_location = program()
    for argument in ("--headless=new", "--disable-gpu", "--hide-scrollbars", "--lang=en"):
        options.add_argument(argument)
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, Service(shutil.which(DRIVER)))
    try:
        driver.set_page_load_timeout(SECONDS)
        yield Browser(driver)
    finally:
        driver.quit()


class Browser:
    """What a person does with a browser."""

    def __init__(self, driver):
        self.driver = driver

    def look(self, look):
        """Use this theme and size from now on."""
        self.driver.execute_cdp_cmd(
            "Emulation.setEmulatedMedia",
            {"features": [{"name": "prefers-color-scheme", "value": look.theme}]},
        )
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {
                "width": look.width,
                "height": look.height,
                "deviceScaleFactor": 1,
                "mobile": look.is_phone,
            },
        )

    def forget(self):
        """Log out, in effect, and forget a theme that was chosen."""
        self.driver.delete_all_cookies()
        if self.url.startswith("http"):
            self.driver.execute_script("localStorage.clear()")

    def open(self, url):
        self.driver.get(url)

    @property
    def url(self):
        return self.driver.current_url

    @property
    def status(self):
        """The HTTP status of the page."""
        return self.run("return performance.getEntriesByType('navigation')[0].responseStatus")

    @property
    def text(self):
        return self.driver.find_element(By.TAG_NAME, "body").text

    @property
    def source(self):
        return self.driver.page_source

    def find(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def link(self, text):
        return self.driver.find_element(By.PARTIAL_LINK_TEXT, text)

    def button(self, text):
        return self.driver.find_element(By.XPATH, f"//button[normalize-space()='{text}']")

    def texts(self, selector):
        return [" ".join(text.split()) for text in self._each(selector, "textContent")]

    def values(self, selector):
        return self._each(selector, "value")

    def _each(self, selector, attribute):
        script = "return [...document.querySelectorAll(arguments[0])].map(it => it[arguments[1]])"
        return self.run(script, selector, attribute)

    def fill(self, selector, text):
        field = self.find(selector)
        field.clear()
        field.send_keys(text)

    def choose(self, selector, value):
        Select(self.find(selector)).select_by_value(value)

    def follow(self, element):
        """Click on what leads to another page, and wait for that."""
        if isinstance(element, str):
            element = self.find(element)
        self.run("arguments[0].scrollIntoView({block: 'center'})", element)
        with self.another_page():
            element.click()

    def follow_key(self, key):
        """Press a key that leads to another page, and wait for that."""
        with self.another_page():
            self.press(key)

    @contextmanager
    def another_page(self):
        self.run("window.isOfTheOldPage = true")
        yield
        WebDriverWait(self.driver, SECONDS, GLANCE_SECONDS, [WebDriverException]).until(
            lambda _: self.run(ARRIVED)
        )

    def press(self, key):
        ActionChains(self.driver).send_keys(key).perform()

    @property
    def focused(self):
        return self.driver.switch_to.active_element

    def style(self, selector, name):
        """Return a computed property of the first such element."""
        return self.find(selector).value_of_css_property(name)

    def run(self, script, *arguments):
        """Return what a script of the test's own returns."""
        return self.driver.execute_script(script, *arguments)

    def overflow(self):
        """Return by how many pixels the page is wider than its window."""
        return self.driver.execute_script(
            "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )

    def complaints(self):
        """Return what the browser's console says since the last time."""
        said = [entry["message"] for entry in self.driver.get_log("browser")]
        return [message for message in said if not any(words in message for words in HARMLESS)]

    def picture(self, path, *, whole=False):
        """Store what is seen as a PNG file; the whole page where asked."""
        shot = self.driver.execute_cdp_cmd(
            "Page.captureScreenshot", {"captureBeyondViewport": whole}
        )
        path.write_bytes(base64.b64decode(shot["data"]))
