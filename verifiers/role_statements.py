"""Who is what: reads statements such as ``Ava is a knight, Ben and Cleo are knaves`` into person -> roles.

A scanner for the names and roles of one puzzle and a grammar without recursion; whatever is neither name, role nor joining word makes the
text unreadable, so negations, hedges, conditions and strangers need no list of their own::

    statement := NAME (is|:|-|=) [a|an|the] ROLE       NAMES are [both|all] ROLES       ROLES (are|:|-|=) NAMES
               | "(" NAME "," ROLE ")"                 "|" NAME "|" ROLE "|"

Between statements: line breaks, ``, ; .``, and/but/while/so, bullets, numbering such as ``(1)`` or ``2.``, brackets.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from functools import lru_cache

Token = tuple[str, str]  # kind, text

_ARTICLES = ("a", "an", "the")
_GROUPING = ("both", "all")
_SYNONYMS = ("truth-teller", "truth teller", "truthteller"), ("liar",)
_BETWEEN_STATEMENTS = frozenset(["sep", "and", "comma", "dash", "number", "open", "close", "bar"])
_LINKS = frozenset(["link", "arrow", "dash", "verb"])

_WRAPPER = re.compile(r"<\|[^|>\n]{0,40}\|>(?:assistant\b)?|\\(?:text|textbf|mathrm|mathbf|quad|,|;)(?![a-z])")
_LEAD_IN = re.compile(r"(?:assistant: ?)?(?:(?:the )?(?:final )?(?:answer|solution|conclusion)(?: is)? ?:?|we conclude that)[ \n]")

# Names and roles of the puzzle come first, the longest first. No alternative can backtrack over more than a few characters.
_REST = r"""
    (?P<number>\([0-9]{1,3}\)|(?<![0-9.])[0-9]{1,3}[.):](?![0-9]))
  | (?P<verb>(?:is|are)\b)  | (?P<article>(?:a|an|the)\b)  | (?P<grouping>(?:both|all)\b)  | (?P<none>(?:none|nobody)\b)
  | (?P<and>and\b|&)        | (?P<sep>[;.\n•]|(?:while|whereas|but|so|thus|therefore|hence)\b|(?:name|person)\ ?\|\ ?(?:role|identity)\b)
  | (?P<arrow>[-−]>|→|=>)   | (?P<dash>:?[-–—−]+:?) | (?P<link>[:=])  | (?P<comma>,) | (?P<bar>\|)  | (?P<open>[(\[{])  | (?P<close>[)\]}])
  | (?P<space>[\ *_`"“”‘’'$]+)
"""


def plain(text: str) -> str:
    """Compatibility forms and case folded, control and invisible characters dropped, runs of white space made one space."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    return " ".join("".join(c for c in text if c.isspace() or c.isprintable()).casefold().split())


def read_statements(text: str, people: tuple[str, ...], role_names: tuple[str, str], synonyms: bool) -> dict[str, set[str]] | None:
    """Person -> the roles stated of them, both as :func:`plain` text; None where some of the text belongs to no statement.

    ``people`` and ``role_names`` (truth-teller, liar) are plain text. Work is linear in the text for a given puzzle.
    """
    scanner, roles = _scanner(people, role_names, synonyms)
    lines = (plain(line) for line in _WRAPPER.sub(" ", text).splitlines())
    folded = "\n".join(line for line in lines if line)
    lead_in = _LEAD_IN.match(folded)
    position = lead_in.end() if lead_in else 0
    tokens: list[Token] = []
    while position < len(folded):
        match = scanner.match(folded, position)
        if match is None:
            return None
        position = match.end()
        if match.lastgroup != "space":
            tokens.append((str(match.lastgroup), match[0]))
    return _Reader(tokens, roles).read()


@lru_cache(maxsize=1024)
def _scanner(people: tuple[str, ...], role_names: tuple[str, str], synonyms: bool) -> tuple[re.Pattern[str], Mapping[str, str]]:
    """(pattern of one token, every word for a role -> the role)."""
    roles = {}
    for role, others in zip(role_names, _SYNONYMS):
        for word in (role, *(others if synonyms else ())):
            roles.update(dict.fromkeys((word, word + "s", word + "es"), role))

    def words(texts: tuple[str, ...]) -> str:
        return "|".join(re.escape(text) for text in sorted(texts, key=len, reverse=True))

    edge = r"(?<![^\W_])(?:%s)(?![^\W_])"  # an underscore is emphasis, not part of a word
    named = rf"(?P<name>{edge % words(people)})|(?P<role>{edge % words(tuple(roles))})|"
    return re.compile(named + re.sub(r"(?<!\\)\s+", "", _REST)), roles


class _Reader:
    """One pass over the tokens; every method leaves ``position`` behind what it has read."""

    def __init__(self, tokens: list[Token], roles: Mapping[str, str]) -> None:
        self.tokens = [*tokens, ("end", ""), ("end", ""), ("end", ""), ("end", "")]  # sentinels save bounds checks
        self.roles = roles
        self.found: dict[str, set[str]] = {}
        self.position = 0

    def read(self) -> dict[str, set[str]] | None:
        while True:
            while self.kind() in _BETWEEN_STATEMENTS:
                self.position += 1
            if self.kind() == "end":
                return self.found or None
            if not (self.of_person() if self.kind() == "name" else self.of_role()):
                return None

    def kind(self, ahead: int = 0) -> str:
        return self.tokens[self.position + ahead][0]

    def text(self, ahead: int = 0) -> str:
        return self.tokens[self.position + ahead][1]

    def say(self, people: list[str], role: str | None) -> bool:
        if role is None:
            return False
        for person in people:
            self.found.setdefault(person, set()).add(role)
        return True

    def take_role(self, skip: tuple[str, ...]) -> str | None:
        """The role that comes next, after at most one word of ``skip``. A name may read like an article or a role."""
        if self.text() in skip and self.kind(1) in ("role", "name"):
            self.position += 1
        role = self.roles.get(self.text())
        self.position += 1
        return role

    def take_people(self) -> list[str]:
        """Names joined by commas and and; stops before a name that a statement of its own follows."""
        people: list[str] = []
        ahead = 0
        while self.kind(ahead) == "name" and self.kind(ahead + 1) not in _LINKS:
            people.append(self.text(ahead))
            self.position += ahead + 1
            ahead = 0
            while self.kind(ahead) in ("comma", "and"):
                ahead += 1
        return people

    def of_person(self) -> bool:
        person, before = self.text(), self.tokens[self.position - 1][0] if self.position else ""
        if (self.kind(1), before) in (("comma", "open"), ("bar", "bar")):
            closing = "close" if before == "open" else "bar"
            self.position += 2
            return self.say([person], self.take_role(())) and self.kind() == closing
        if self.kind(1) in _LINKS and self.text(1) != "are":
            self.position += 2
            role = None if self.text(1) in _GROUPING else self.take_role(_ARTICLES)
            return self.singular() and self.say([person], role)
        return self.of_group()

    def singular(self) -> bool:
        """Whether the role just read is one word for one person (``Ava is a knights`` is not read)."""
        word = self.text(-1)
        return not (word.endswith("s") and (word[:-1] in self.roles or word[:-2] in self.roles))

    def of_group(self) -> bool:
        people = [self.text()]
        self.position += 1
        while self.kind() in ("comma", "and"):
            while self.kind() in ("comma", "and"):
                self.position += 1
            if self.kind() != "name":
                return False
            people.append(self.text())
            self.position += 1
        if len(people) < 2 or self.text() != "are":
            return False
        self.position += 1
        return self.say(people, self.take_role((*_GROUPING, "the")))

    def of_role(self) -> bool:
        if self.kind() == "grouping" and self.kind(1) == "name":  # both Ava and Ben are knights
            self.position += 1
            return self.of_group()
        role = self.take_role(_ARTICLES)
        if role is None or self.kind() not in _LINKS:
            return False
        self.position += 1
        if self.kind() == "none":
            self.position += 1
            return True
        people = self.take_people()
        return bool(people) and self.say(people, role)
