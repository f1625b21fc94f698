"""Checks that every relative link in the project's Markdown pages leads somewhere.

Pages elsewhere (``https:``, ``mailto:``) are not asked. A ``#fragment`` must be a heading of the
page it points into. Run from anywhere: ``python docs/check_links.py``.
"""

import re
from collections.abc import Iterator
from pathlib import Path

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)
PAGES = ("*.md", "docs/**/*.md", "apps/**/*.md", "bench/**/*.md", "examples/**/*.md")
PAGES += ("newsfragments/README.md",)


def anchors(text: str) -> set[str]:
    """Return the fragments that a page's headings answer to."""
    headings = HEADING.findall(FENCE.sub("", text))
    kept = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.replace(" ", "-") for heading in kept}


def broken_links(page: Path) -> Iterator[str]:
    """Yield each relative link of `page` that leads nowhere."""
    for link in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, fragment = link.partition("#")
        target = page.parent / path if path else page
        if not target.exists() or (
            fragment and fragment not in anchors(target.read_text(encoding="utf-8"))
        ):
            yield link


def main(root: Path) -> int:
    """Print every broken link under `root`; return 1 if there is one or if no page was found."""
    pages = sorted({page for pattern in PAGES for page in root.glob(pattern)})
    broken = [f"{page.relative_to(root)}: {link}" for page in pages for link in broken_links(page)]
    for line in broken:
        print(line)
    print(f"{len(pages)} pages, {len(broken)} broken links")
    return 1 if broken or not pages else 0


if __name__ == "__main__":
    raise SystemExit(main(Path(__file__).resolve().parent.parent))
