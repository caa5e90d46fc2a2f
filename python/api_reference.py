"""Writes docs/python-api.md: the public interface of the package `foveate`, from its sources, which it reads and does not run.

usage: api_reference.py crates/foveate-py/python/foveate > docs/python-api.md
"""

import ast
import sys
import textwrap
from pathlib import Path

#: Modules in the order of the page, with what a reader finds there.
MODULES = {
    "agents": "Agents",
    "jobs": "What the commands do",
    "claims": "Claims of torch models",
    "envs": "Worlds for Gymnasium",
    "evolve": "Evolution strategies",
    "loggers": "Callbacks for other tools",
    "rliable": "Scores of several runs",
    "ray": "Clusters",
    "errors": "Errors",
}
#: Declarations of arguments that the page has; `name=...` stands for one where it comes again.
SAID = set()
HEAD = """# Reference of the package for Python

Written from the package's sources (`python/api_reference.py`); [python.md](python.md) introduces it. `name=...` is an argument as above.
"""


def public(tree):
    """The names in `__all__`, or all that do not begin with an underscore."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets):
            return ast.literal_eval(node.value)
    return [node.name for node in tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and not node.name.startswith("_")]


def signature(node, name):
    """A call as the sources declare it, one argument a line where it is long."""
    args = ast.unparse(node.args)
    parts = []
    for part in split(args):
        keyword = part.partition(":")[0]
        again = f"{keyword}=..." if part in SAID and len(part.split()) > 1 else None
        if again and parts and parts[-1].endswith("=..."):
            parts[-1] += f", {again}"
        elif part not in ("self", "cls"):
            parts.append(again or part)
        SAID.add(part)
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    line = f"{name}({', '.join(parts)}){returns}"
    return line if len(line) <= 100 else f"{name}(\n" + "".join(f"    {part},\n" for part in parts) + f"){returns}"


def split(arguments):
    """Arguments, split at the commas between them."""
    parts, depth, part = [], 0, ""
    for letter in arguments:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append(part.strip())
            part = ""
        else:
            part += letter
    return [*parts, part.strip()] if part.strip() else parts


def text(node):
    """The documentation, with its list of arguments as a list."""
    lines = (ast.get_docstring(node) or "").replace("``", "`").splitlines()
    out, inside = [], False
    for line in lines:
        if line.strip() in ("Args:", "Raises:", "Returns:"):
            out.append(f"*{line.strip()[:-1]}:*" if line.strip() != "Args:" else "*Arguments:*")
            out.append("")
            inside = True
        elif inside and line.startswith("    ") and not line.startswith("     "):
            name, colon, rest = line.strip().partition(": ")
            out.append(f"* `{name}`: {rest}" if colon else f"* {line.strip()}")
        elif inside and line.startswith("     "):
            out[-1] += f" {line.strip()}"
        else:
            inside = inside and not line.strip()
            out.append(line)
    return fenced("\n".join(out).strip())


def fenced(said):
    """Paragraphs that are examples or tables of reStructuredText, as they are."""
    paragraphs = said.split("\n\n")
    kept = [f"```text\n{one}\n```" if one.startswith((">>> ", "===")) else one for one in paragraphs]
    return "\n\n".join(kept)


def fields(node, source):
    """Fields of a dataclass with the comments above them."""
    lines, out = source.splitlines(), []
    for item in node.body:
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name) and not item.target.id.startswith("_"):
            about, at = [], item.lineno - 2
            while lines[at].strip().startswith("#:"):
                about.insert(0, lines[at].strip()[2:].strip())
                at -= 1
            said = " ".join(about).replace("``", "`")
            out.append(f"* `{item.target.id}: {ast.unparse(item.annotation)}`" + (f": {said}" if said else ""))
    return "\n".join(out)


def members(node):
    """Public methods and properties."""
    for item in node.body:
        if isinstance(item, ast.FunctionDef) and not item.name.startswith("_") and ast.get_docstring(item):
            is_property = any(ast.unparse(decorator) == "property" for decorator in item.decorator_list)
            call = f"{item.name}: {ast.unparse(item.returns)}" if is_property and item.returns else signature(item, item.name)
            block = f"`{call}`" if "\n" not in call else f"\n```python\n{call}\n```\n"
            said = text(item)
            # A list goes on behind a paragraph of its own only after an empty line.
            end = "\n" if "\n\n" in said else ""
            yield (f"* {block}: {said}" if "\n" not in call else f"{block}\n{said}") + end


def main():
    folder = Path(sys.argv[1])
    page = [HEAD]
    for module, title in MODULES.items():
        files = [folder / f"{module}.py"] if (folder / f"{module}.py").exists() else sorted((folder / module).glob("_*.py"))
        source = "\n".join(file.read_text(encoding="utf-8") for file in files)
        tree = ast.parse(source)
        page += [f"\n## {title}\n", f"`foveate.{module}`. {text(tree)}\n"]
        named = {node.name: node for node in tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
        for name in public(tree):
            node = named.get(name)
            if node is None:
                continue
            page.append(f"\n### {name}\n")
            if isinstance(node, ast.FunctionDef):
                page += [f"```python\n{signature(node, name)}\n```\n", text(node)]
                continue
            begin = next((item for item in node.body if isinstance(item, ast.FunctionDef) and item.name == "__init__"), None)
            if begin is not None:
                page.append(f"```python\n{signature(begin, name).removesuffix(' -> None')}\n```\n")
            page += [part for part in (text(node), "\n" + fields(node, source), "\n" + "\n".join(members(node))) if part.strip()]
    print(textwrap.dedent("\n".join(page)).strip())


main()
