"""What colours are seen on a page, and whether they can be told apart."""

from typing import NamedTuple

READABLE = 4.5
"""The least contrast of text, by WCAG 2 at level AA."""

SEEN = """
const canvas = new OffscreenCanvas(1, 1).getContext('2d', {willReadFrequently: true});
function painted(colour) {
  canvas.clearRect(0, 0, 1, 1);
  canvas.fillStyle = colour;
  canvas.fillRect(0, 0, 1, 1);
  return Array.from(canvas.getImageData(0, 0, 1, 1).data);
}
function ground(element) {
  for (; element; element = element.parentElement) {
    const colour = painted(getComputedStyle(element).backgroundColor);
    if (colour[3] === 255) return colour;
  }
  return [255, 255, 255, 255];
}
return Array.from(document.querySelectorAll(arguments[0]))
  .filter(element => element.getClientRects().length)
  .map(element => [
    element.textContent.trim(), painted(getComputedStyle(element)[arguments[1]]), ground(element),
  ]);
"""


class Seen(NamedTuple):
    """An element with the colour of its text, or its fill, and what it stands on."""

    text: str
    colour: tuple[int, int, int]
    ground: tuple[int, int, int]

    @property
    def contrast(self):
        """From 1, which cannot be seen, to 21."""
        one, other = sorted((luminance(self.colour), luminance(self.ground)))
        return (other + 0.05) / (one + 0.05)


def seen(browser, selector, kind="color"):
    """Return what is shown of such elements; `kind` is "color" or "fill"."""
    found = browser.run(SEEN, selector, kind)
    return [Seen(text, tuple(one[:3]), tuple(other[:3])) for text, one, other in found]


def luminance(colour):
    red, green, blue = (linear(part / 255) for part in colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def linear(part):
    return part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
