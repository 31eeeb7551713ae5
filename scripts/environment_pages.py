"""Write docs/environments/ from the docstrings of the environments, and their table in README.md from their cards: ``make pages``."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym

import setpo_envs
from setpo_envs import GroupEnv
from setpo_envs.tasks.questions import QuestionEnv

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "environments"
ENVIRONMENTS: dict[str, type[GroupEnv]] = {
    env_id: gym.envs.registration.load_env_creator(gym.spec(env_id).entry_point) for env_id in setpo_envs.ENVIRONMENTS
}
FOOT = "[All environments](../../README.md#the-environments), [their common arguments, orders and mixtures](../environments.md)"
COLUMNS = ('data (`source="hub"`)', "rows by split", "verifier", "licence of the data")


def page_name(env_id: str) -> str:
    """``setpo/KnightsAndKnaves-v0`` -> ``knights_and_knaves.md``."""
    name = env_id.partition("/")[2].partition("-")[0]
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower() + ".md"


PAGE_OF = {"QuestionEnv": "questions.md", **{env.__name__: page_name(env_id) for env_id, env in ENVIRONMENTS.items()}}


def pages() -> dict[str, str]:
    """File name -> text: a page for each environment, and one for what all environments over tables of questions share."""
    made = {page_name(env_id): page(env_id, env) for env_id, env in ENVIRONMENTS.items()}
    shared = markdown(inspect.cleandoc(QuestionEnv.__doc__ or ""))
    return {**made, "questions.md": f"# What the environments over questions share\n\n{shared}\n\n{FOOT}\n"}


def page(env_id: str, env: type[GroupEnv]) -> str:
    summary, snippet, rest = parts(env)
    names: dict[str, Any] = {"__name__": "page"}
    exec(compile(snippet, f"docstring of {env.__name__}", "exec"), names)  # our own code, for the prompt that it gets
    lines = [
        f"<!-- made by make pages from the docstring of {env.__module__}.{env.__name__}: change that -->",
        f"# {env_id}\n\n{inline(summary)}\n",
        *(row(COLUMNS), "|" + "---|" * len(COLUMNS), row(cells(env)), ""),
        f"## Example\n\n```python\n{snippet}\n```\n\nThe prompt:\n\n```text\n{names['prompt']}\n```\n",
        f"## Specification\n\n{markdown(rest, level=3)}\n",
        FOOT,
    ]
    return "\n".join(lines) + "\n"


def parts(env: type[GroupEnv]) -> tuple[str, str, str]:
    """(summary, code of the example, the rest) of the docstring."""
    text = inspect.cleandoc(env.__dict__["__doc__"])
    summary, _, after = text.partition("\n\nExample::\n\n")
    found = re.match(r"(?:(?:    .*)?\n)+", after)
    if found is None:
        raise ValueError(f"expected a summary and then Example:: in the docstring of {env.__name__}, got {text[:200]!r}")
    return summary, inspect.cleandoc(found[0]), after[found.end() :]


def markdown(text: str, level: int = 2) -> str:
    """A docstring of paragraphs and sections, each a line with an indented body, as Markdown."""
    made: list[str] = []
    for block in re.split(r"\n+(?=\S[^\n]*\n )|\n\n(?=\S)", text):
        head, _, body = block.strip().partition("\n")
        if not body.startswith(" "):
            made.append(inline(block.strip()))
            continue
        listed = head in ("Args:", "Raises:", "Version history")
        body = inspect.cleandoc("\n" + body)
        made += [f"{'#' * level} {inline(head.rstrip(':'))}", *(["\n".join(items(body))] if listed else paragraphs(body))]
    return "\n\n".join(filter(None, made))


def items(text: str) -> Iterator[str]:
    """``names: what they are`` as list items."""
    for entry in re.split(r"\n(?=\S)", text):
        names, _, words = entry.partition(": ")
        shown = ", ".join(name if name == "..." else f"`{name}`" for name in names.split(", "))
        indented = re.sub(r"\n +", "\n  ", words)
        yield f"- {shown}: {inline(indented)}"


def paragraphs(text: str) -> Iterator[str]:
    for paragraph in text.split("\n\n"):
        yield _table(paragraph) if paragraph.startswith("==") else inline(paragraph)


def _table(text: str) -> str:
    """A simple table of reStructuredText without a head."""
    rule, *texts, _ = text.splitlines()
    columns = [match.span() for match in re.finditer("=+", rule)]
    lines = [[inline(text[start : None if end == len(rule) else end].strip()) for start, end in columns] for text in texts]
    return "\n".join(["|" + " |" * len(columns), "|" + "---|" * len(columns), *map(row, lines)])


def inline(text: str) -> str:
    """Names in backticks, and references to classes as links to their pages."""

    def link(match: re.Match[str]) -> str:
        name = match[1].rpartition(".")[2].lstrip("~")
        return f"[`{name}`]({PAGE_OF[name]})" if name in PAGE_OF else f"`{name}`"

    return re.sub(r":class:`([^`]+)`", link, re.sub("(?s)``(.+?)``", r"`\1`", text))


def cells(env: type[GroupEnv]) -> list[str]:
    return [env.card.data, env.card.rows, env.card.verifier, env.card.licence]


def row(texts: Sequence[str]) -> str:
    return f"| {' | '.join(texts)} |"


def readme(text: str) -> str:
    """The text of README.md with the table as the cards have it."""
    rows = [row(["id", *COLUMNS]), "|" + "---|" * (len(COLUMNS) + 1)]
    rows += [row([f"[`{env_id}`](docs/environments/{page_name(env_id)})", *cells(env)]) for env_id, env in ENVIRONMENTS.items()]
    made = "".join(line + "\n" for line in rows)
    return re.sub(r"^\| id \| data .*\n(?:\|.*\n)+", lambda _: made, text, flags=re.MULTILINE)


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    made = pages()
    for path in FOLDER.glob("*.md"):
        if path.name not in made:
            path.unlink()
    for name, text in made.items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    path = ROOT / "README.md"
    path.write_text(readme(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
