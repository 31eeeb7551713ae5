"""Self-contained pages: a template of this package with the style and script that all share, and its data inside."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any


def self_contained(template: str, data: Any) -> str:
    """The page of ``template`` (a file of this package) with ``data``, JSON values, inside.

    No ``<`` is left in the data, so nothing in it can end the script element it sits in; and it goes in last, so nothing in it is
    taken for a place of the template.
    """
    folder = resources.files(__package__)
    page = folder.joinpath(template).read_text(encoding="utf-8")
    for place, name in (("{{STYLE}}", "page.css"), ("{{SCRIPT}}", "page.js")):
        page = page.replace(place, folder.joinpath(name).read_text(encoding="utf-8"))
    text = json.dumps(data, allow_nan=False)  # ASCII: also no raw U+2028
    return page.replace("{{DATA}}", text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))
