"""SVG out of plain calls, with everything escaped. No style attributes: the page forbids them; classes do it."""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import Markup, escape

from suite.report.style import clean

Value = str | float | int | None


def tag(name: str, *inside: str, **attributes: Value) -> Markup:
    """<name a="b">…</name>. Text inside is escaped, Markup is not; attributes that are None are left out.

    'class_' gives class, underscores become hyphens ('text_anchor'), numbers are rounded to 0.1.
    """
    given = "".join(f' {_name(key)}="{_value(value)}"' for key, value in attributes.items() if value is not None)
    # Each part is escaped before it becomes Markup.
    body = Markup("").join(part if isinstance(part, Markup) else escape(clean(part)) for part in inside)
    return Markup(f"<{name}{given}>") + body + Markup(f"</{name}>")


def text(x: float, y: float, words: str, **attributes: Value) -> Markup:
    """Words at a place (of the baseline)."""
    return tag("text", words, x=x, y=y, **attributes)


def joined(parts: Iterable[Markup]) -> Markup:
    """Elements one after another."""
    return Markup("").join(parts)


def picture(width: float, height: float, title: str, *inside: Markup, class_: str = "picture") -> Markup:
    """A whole SVG that scales with the page and says its title to screen readers."""
    return tag(
        "svg",
        tag("title", title),
        *inside,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width:.0f} {height:.0f}",
        width=width,
        height=height,
        role="img",
        aria_label=title,
        class_=class_,
    )


def _name(key: str) -> str:
    return key.rstrip("_").replace("_", "-")


def _value(value: Value) -> Markup:
    if isinstance(value, float):
        return Markup(f"{value:.1f}".removesuffix(".0"))
    return escape(clean(str(value)))
