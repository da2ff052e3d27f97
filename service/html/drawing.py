"""Inline SVG: drawings that take their colours from the page and need no script."""

from __future__ import annotations

from dataclasses import dataclass

from service.html.markup import Content, Html, element

# A phone's width, so that letters stay readable where a plot is shrunk to it.
WIDTH = 360.0


@dataclass(frozen=True)
class Scale:
    """A linear scale from values to points of the drawing."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """Place a value; what is outside stands at the edge."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)


def svg(
    height: float, told: str, *children: Content, width: float = WIDTH, namespace: str | None = None
) -> Html:
    """Give a drawing with words for those who do not see it; a file of its own names its namespace."""
    return element(
        "svg",
        element("title", told),
        *children,
        xmlns=namespace,
        viewBox=f"0 0 {width:.0f} {height:.0f}",
        width=width,
        height=height,
        role="img",
        aria_label=told,
    )


def text(x: float, y: float, words: str, class_: str | None = None, anchor: str | None = None) -> Html:
    """Place words."""
    return element("text", words, x=x, y=y, class_=class_, text_anchor=anchor)


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Html:
    """Draw a straight line."""
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)
