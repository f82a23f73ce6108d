"""MkDocs hooks: documents of the repository root become pages; links to source files become plain text.

Mermaid diagrams become tables of their edges: the theme would load its renderer from another host.
"""

import re
from pathlib import Path
from posixpath import dirname, join, normpath, relpath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")
MERMAID = re.compile(r"^```mermaid\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NODE = re.compile(r"(\w+)[\[(]+\"([^\"]*)\"[\])]+")
"""A node of a flow chart: its id and its text."""
EDGE = re.compile(r"^(\S+)(?: -- (.+?))? <?--> (\S+?)(?:: (.+))?$")
"""An edge, with its text in the middle (flow chart) or at the end (state diagram)."""
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#)([^)#\s]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: MkDocsConfig, **_: object) -> Files:
    """Add the documents of the repository root under their own names; README stays a page beside index."""
    for name in PAGES:
        text = (ROOT / name).read_text(encoding="utf-8")
        files.append(File.generated(config, _page(name), content=text))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Rewrite links that are relative to the repository, so that strict mode checks them."""
    uri = page.file.src_uri
    place = next((name for name in PAGES if _page(name) == uri), f"docs/{uri}")

    def rewrite(link: re.Match[str]) -> str:
        image, text, path, anchor = link[1], link[2], link[3], link[4] or ""
        target = normpath(join(dirname(place), path))
        if not (ROOT / target).exists():
            return link[0]  # strict mode reports it
        if target in PAGES:
            inside = _page(target)
        elif target.startswith("docs/") and (ROOT / target).is_file():
            inside = target.removeprefix("docs/")
        else:
            return text
        return f"{image}[{text}]({relpath(inside, dirname(uri) or '.')}{anchor})"

    return LINK.sub(rewrite, MERMAID.sub(_edges, markdown))


def _page(name: str) -> str:
    """Name the page of a root document; a README would take the place of the index."""
    return "overview.md" if name == "README.md" else name.lower()


def _edges(diagram: re.Match[str]) -> str:
    """Write a diagram as a table: from, to, label."""
    texts = {"[*]": "·", **dict(NODE.findall(diagram[1]))}
    rows = []
    for line in NODE.sub(r"\1", diagram[1]).splitlines():
        if edge := EDGE.match(line.strip()):
            start, middle, end, label = edge.groups()
            what = (middle or label or "").strip('"')
            rows.append(f"| {texts.get(start, start)} | {texts.get(end, end)} | {what} |")
    return "\n".join(["| from | to | |", "|---|---|---|", *rows])
