"""What the site has beyond docs/, as a hook of MkDocs: the navigation, a gallery, and the files of the repository that pages link to.

It begins with README.md. The navigation is that of docs/README.md: a section for each kind of page in its table, with the notebooks,
then studies. FOVEATE_RUSTDOC names the folder that `cargo doc` wrote; without it the site has no reference of the Rust crates.
"""

import os
import posixpath
import re
import shutil
from pathlib import Path

from mkdocs.structure.files import File, InclusionLevel

ROOT = Path(__file__).parents[1]
DOCS = "docs/"
#: Where the site keeps files of the repository that are not in docs/.
OTHERS = "repository/"
LINK = re.compile(r"(?<=\]\()([^)\s]+)(?=\))")
IMAGE = re.compile(r"!\[([^\]]+)\]\(([^)\s]+)\)")
#: Kinds of pages in the order of the navigation, by their name in the table.
KINDS = {"tutorial": "Tutorials", "how-to": "How-to", "reference": "Reference", "explanation": "Explanation"}
ROW = re.compile(r"^\| \[[^\]]+\]\(([^)]+)\) \| ([\w-]+) \|", re.MULTILINE)
HOME, GALLERY, CRATES = "index.md", "gallery.md", "rust-crates.md"
RUSTDOC = os.environ.get("FOVEATE_RUSTDOC")


def source(uri):
    """The path in the repository of a file of the site."""
    if uri == HOME:
        return "README.md"
    return uri.removeprefix(OTHERS) if uri.startswith(OTHERS) else DOCS + uri


def uri(path):
    """The file of the site that a path in the repository becomes."""
    if path == "README.md":
        return HOME
    return path.removeprefix(DOCS) if path.startswith(DOCS) else OTHERS + path


def targets(path, text):
    """Files that a document of the repository links to, each with the link."""
    for link in LINK.findall(text):
        name, mark, anchor = link.partition("#")
        if name and "://" not in name and not name.startswith("mailto:"):
            yield link, posixpath.normpath(posixpath.join(posixpath.dirname(path), name)), mark + anchor


def on_config(config):
    index = (ROOT / DOCS / "README.md").read_text(encoding="utf-8")
    pages = ROW.findall(index)
    unknown = {kind for _, kind in pages} - set(KINDS)
    if unknown:
        raise ValueError(f"docs/README.md has pages of the kinds {unknown}; the site knows {list(KINDS)}")
    sections = {title: [page for page, kind in pages if kind == name] for name, title in KINDS.items()}
    sections["Tutorials"] += re.findall(r"\((notebooks/[^)]+\.ipynb)\)", index)
    sections["Reference"] += [OTHERS + name for name in ("ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    studies = re.findall(r"\((studies/[^)]+)\)", index)
    sections["Reference"] += [CRATES] if RUSTDOC else []
    config.nav = [HOME, "README.md", *({title: pages} for title, pages in sections.items()), {"Studies": studies}, GALLERY]
    return config


def named(config):
    """The files of the navigation."""
    for part in config.nav:
        yield from next(iter(part.values())) if isinstance(part, dict) else [part]


def on_files(files, config):
    # README.md is the first page.
    files.get_file_from_path("README.md").dest_uri = "documentation/index.html"
    left = [source(file.src_uri) for file in files.documentation_pages() if file.src_uri.endswith(".md")]
    left += [source(name) for name in named(config) if name.startswith(OTHERS) or name == HOME]
    seen, pictures = set(left), {}
    while left:
        path = left.pop()
        if not path.startswith(DOCS):
            files.append(File.generated(config, uri(path), abs_src_path=str(ROOT / path), inclusion=inclusion(config, path)))
        if not path.endswith(".md"):
            continue
        text = (ROOT / path).read_text(encoding="utf-8")
        for said, picture in IMAGE.findall(text):
            if "://" not in picture:
                pictures.setdefault(posixpath.normpath(posixpath.join(posixpath.dirname(path), picture)), (said, path))
        for _, target, _ in targets(path, text):
            if target not in seen and (ROOT / target).is_file() and not target.startswith(DOCS):
                seen.add(target)
                left.append(target)
    files.append(File.generated(config, GALLERY, content=gallery(pictures)))
    if RUSTDOC:
        link = '<a href="../rustdoc/foveate/index.html">The crate foveate, and those that it consists of</a>'
        files.append(File.generated(config, CRATES, content=f"# Reference of the Rust crates\n\n{link}\n"))
    return files


def inclusion(config, path):
    """Pages that are reached by links alone are not missing in the navigation."""
    return InclusionLevel.INCLUDED if uri(path) in named(config) else InclusionLevel.NOT_IN_NAV


def on_page_content(html, page, config, files):
    if not page.file.src_uri.endswith(".ipynb"):
        return html
    name = posixpath.basename(page.file.src_uri)
    return f'<p><a href="{name}" download>Download {name}</a></p>{html}'


def on_post_build(config):
    if RUSTDOC:
        shutil.copytree(RUSTDOC, Path(config.site_dir) / "rustdoc", dirs_exist_ok=True)


def gallery(pictures):
    """All pictures of the documents, each with what it shows and the page that it is on."""
    figures = [
        f"![{said}]({picture.removeprefix(DOCS)})\n\n{said} [{posixpath.basename(page)}]({uri(page)})\n"
        for picture, (said, page) in sorted(pictures.items(), key=lambda item: item[1][1])
    ]
    return "# Gallery\n\n" + "\n".join(figures)


def on_page_markdown(markdown, page, config, files):
    if page.file.src_uri in (GALLERY, CRATES) or not page.file.src_uri.endswith(".md"):
        return markdown
    path, here = source(page.file.src_uri), posixpath.dirname(page.file.src_uri)
    for link, target, anchor in set(targets(path, markdown)):
        if (ROOT / target).is_file():
            markdown = markdown.replace(f"]({link})", f"]({os.path.relpath(uri(target), here or '.')}{anchor})")
        elif (ROOT / target).is_dir():
            # The site has no page for a folder of the repository: its name stays.
            markdown = re.sub(rf"\[([^\]]*)\]\({re.escape(link)}\)", r"\1", markdown)
    return markdown
