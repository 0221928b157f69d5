"""What mkdocs does not know by itself: the navigation, the reference pages and llms.txt.

The first half says what the pages are, and needs nothing but the package; the second half tells mkdocs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import deepstrike

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

DOCS = Path(__file__).parents[1] / "docs"

_PACKAGE = Path(deepstrike.__file__).parent

_NO_PROSE = ("#", "```", "![", "|", "* ", "<")

# A page that is in none of these groups stands in the guides, behind those named there.
START = ("index.md", "quick-start.md", "agent.md", "concepts.md")
GUIDES = ("running.md", "tools.md", "events.md", "providers.md", "governance.md", "durability.md", "testing.md")
BACKGROUND = ("context-partition-compression.md", "records.md", "replay.md", "errors.md", "measured.md", "migration.md")
DECISIONS = "decisions"

REFERENCE: Mapping[str, tuple[str, ...]] = {
    "Agents and runs": (),
    "Events": ("stream",),
    "Models": ("providers",),
    "Tools and planes": ("tools", "execution", "wire"),
    "Governance and secrets": ("governance", "secrets"),
    "Sessions": ("sessions",),
    "Skills, knowledge, memory": ("skills", "knowledge", "memory"),
    "Signals": ("signals",),
    "Harnesses and evaluation": ("harness",),
    "Records and replay": ("records", "replay"),
    "Errors": ("errors",),
    "Testing": ("testing",),
}
"""The pages of the reference, each with the rooms of the package whose names it describes; the first has the rest."""

# Their public names stand in the room and not, or not all, at the top level.
ROOMS = ("agents", "errors", "harness", "harness/evaluate", "knowledge", "memory", "secrets", "skills", "testing")

_IMPORT = re.compile(r"^from (deepstrike\.[\w.]+) import (\([^)]*\)|[\w, ]+)", re.MULTILINE)


@dataclass(frozen=True)
class Page:
    """A page of the site: its address in `docs`, its title and its first sentence."""

    path: str
    title: str
    says: str

    @property
    def url(self) -> str:
        """Its address on the site; mkdocs makes the index of a folder of its README."""
        return re.sub(r"(^|/)README\.md$", r"\1index.md", self.path).removesuffix(".md") + ".html"


def read(path: Path) -> Page:
    """The page in a file; its title is its first heading."""
    title, _, rest = path.read_text().partition("\n")
    paragraph = next(
        (each for each in rest.split("\n\n") if each.strip() and not each.strip().startswith(_NO_PROSE)), ""
    )
    sentence = re.split(r"(?<=\.)\s", " ".join(paragraph.split()))[0].rstrip(":")
    return Page(path.relative_to(DOCS).as_posix(), title.removeprefix("# ").strip(), sentence)


def groups() -> dict[str, list[Page]]:
    """The written pages, in their order."""
    pages = {page.path: page for page in map(read, sorted(DOCS.glob("*.md")))}
    placed = {*START, *BACKGROUND}
    others = [path for path in pages if path not in placed]
    guides = sorted(others, key=lambda path: (GUIDES.index(path) if path in GUIDES else len(GUIDES), path))
    decisions = [read(path) for path in sorted((DOCS / DECISIONS).glob("*.md"), key=_readme_first)]
    named: Mapping[str, Sequence[str]] = {"Start": START, "Guides": guides, "Background": BACKGROUND}
    return {title: [pages[path] for path in paths] for title, paths in named.items()} | {"Decisions": decisions}


def _readme_first(path: Path) -> tuple[bool, str]:
    return path.name != "README.md", path.name


def reference() -> Iterator[tuple[Page, list[str]]]:
    """The pages of the reference, each with the dotted names that it describes."""
    homes = vars(deepstrike)["_HOMES"]
    found = sorted({(str(home), str(name)) for name, home in homes.items()} | set(_of_rooms()) | set(_of_pages()))
    placed = {room for rooms in REFERENCE.values() for room in rooms}
    for title, rooms in REFERENCE.items():
        dotted = [(home.split(".")[1], f"{home}.{name}") for home, name in found]
        names = [name for room, name in dotted if (room in rooms if rooms else room not in placed)]
        if names:
            path = f"reference/{re.sub('[^a-z]+', '-', title.lower())}.md"
            yield Page(path, title, f"Reference of {', '.join(name.rpartition('.')[2] for name in names)}."), names


def _of_rooms() -> Iterator[tuple[str, str]]:
    """The public names of the rooms, each with the module that has it."""
    for room in ROOMS:
        module = f"deepstrike.{room.replace('/', '.')}"
        if (_PACKAGE / room).is_dir():
            yield from _imported(_source(module))
        else:
            yield from ((module, name) for name in re.findall(r"^class (\w+)", _source(module), re.MULTILINE))


def _of_pages() -> Iterator[tuple[str, str]]:
    """What the pages tell people to import, each name with the module that has it."""
    for page in DOCS.glob("*.md"):
        for module, name in _imported(page.read_text()):
            homes = {each: home for home, each in _imported(_source(module))}
            yield homes.get(name, module), name


def _imported(text: str) -> Iterator[tuple[str, str]]:
    for module, names in _IMPORT.findall(text):
        yield from ((module, name) for name in re.findall(r"\w+", names))


def _source(module: str) -> str:
    place = _PACKAGE.parent / module.replace(".", "/")
    return (place / "__init__.py" if place.is_dir() else place.with_suffix(".py")).read_text()


def llms() -> str:
    """What llms.txt says: every page, with its first sentence."""
    lines = ["# deepstrike", "", f"> {read(DOCS / 'index.md').says}", ""]
    sections = {**groups(), "Reference": [page for page, _ in reference()]}
    for title, pages in sections.items():
        lines += [f"## {title}", ""]
        lines += [f"- [{page.title}]({page.url}){': ' * bool(page.says)}{page.says}" for page in pages]
        lines.append("")
    return "\n".join(lines)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """The navigation."""
    config.nav = [{title: [{page.title: page.path} for page in pages]} for title, pages in groups().items()]
    config.nav.insert(3, {"Reference": [{page.title: page.path} for page, _ in reference()]})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """The pages of the reference, which exist here only."""
    from mkdocs.structure.files import File

    for page, names in reference():
        text = f"# {page.title}\n\n" + "\n".join(f"::: {name}\n" for name in names)
        files.append(File.generated(config, page.path, content=text))
    return files


def on_post_build(config: MkDocsConfig) -> None:
    """llms.txt beside the pages."""
    Path(config.site_dir, "llms.txt").write_text(llms())
