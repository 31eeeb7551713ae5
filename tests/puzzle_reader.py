"""Knights and Knaves from the English text alone: a recursive-descent reader and a solver by going through all assignments."""

import re
from itertools import product


def read_quiz(text):
    """(names, roles (truth-teller, liar), statements as nested tuples in the order of the names)."""
    roles = re.search(r"is either an? (\w+), who always tells the truth, or an? (\w+), who always lies\.", text).groups()
    people = re.search(r"You meet (\w+) of them: ([^.]*)\.", text)
    names = re.split(r", and | and |, ", people[2])
    assert people[1] == ["two", "three", "four", "five", "six", "seven", "eight"][len(names) - 2]
    told = text[people.end() : text.index(" Who is ")].strip()
    claims = {}
    while told:
        before = re.match(r'(?:According to )?(\w+)(?: says| tells you| insists)?: "([^"]*)\."\s*', told)
        after = re.match(r'"([^"]*)," (?:says|claims|remarks|you hear from) (\w+)\.\s*', told)
        speaker, claim = before.groups() if before else after.groups()[::-1]
        assert speaker in names and speaker not in claims
        claims[speaker] = ClaimReader(claim, names, roles, names.index(speaker)).read()
        told = told[(before or after).end() :]
    return names, roles, tuple(claims[name] for name in names)


class ClaimReader:
    """claim := "it is not true that" part | "if" part ", then" part | "either" part "or" part ", or both"
    | "at least one of these is true:" part {";" part} | part "if and only if" part | part {(", " | " and " | ", and ") part}
    part := "(" claim ")" | (NAME "is" | "I am") ["not"] ("a" | "an") ROLE
    """

    def __init__(self, text, names, roles, speaker):
        self.tokens = re.findall(r"\w+|[(),;:]", text)
        self.tokens[0] = self.tokens[0] if self.tokens[0] in (*names, "I") else self.tokens[0].lower()
        self.names, self.roles, self.speaker = names, roles, speaker

    def read(self):
        statement = self.claim()
        assert not self.tokens, self.tokens
        return statement

    def take(self, words):
        """Whether the words come next; if so they are gone."""
        words = words.split()
        found = self.tokens[: len(words)] == words
        if found:
            del self.tokens[: len(words)]
        return found

    def want(self, words):
        assert self.take(words), (words, self.tokens)

    def claim(self):
        if self.take("it is not true that"):
            return ("not", self.part())
        if self.take("if"):
            first = self.part()
            self.want(", then")
            return ("implies", first, self.part())
        if self.take("either"):
            first = self.part()
            self.want("or")
            second = self.part()
            self.want(", or both")
            return ("or", first, second)
        if self.take("at least one of these is true :"):
            return ("or", *self.list(";"))
        first = self.part()
        if self.take("if and only if"):
            return ("iff", first, self.part())
        parts = [first]
        while self.take(", and") or self.take("and") or (self.tokens[:1] == [","] and self.tokens[1:] and self.take(",")):
            parts.append(self.part())
        return ("and", *parts) if len(parts) > 1 else first

    def list(self, separator):
        parts = [self.part()]
        while self.take(separator):
            parts.append(self.part())
        return parts

    def part(self):
        if self.take("("):
            statement = self.claim()
            self.want(")")
            return statement
        person = self.tokens.pop(0)
        self.want("am" if person == "I" else "is")
        negated = self.take("not")
        assert self.take("a") or self.take("an")
        kind = "truth" if self.roles.index(self.tokens.pop(0)) == 0 else "lie"
        statement = (kind, self.speaker if person == "I" else self.names.index(person))
        return ("not", statement) if negated else statement


def holds(statement, truthful):
    kind, *parts = statement
    if kind in ("truth", "lie"):
        return truthful[parts[0]] == (kind == "truth")
    values = [holds(part, truthful) for part in parts]
    if kind == "implies":
        return values[1] or not values[0]
    return {"not": not values[0], "and": all(values), "or": any(values), "iff": values[0] == values[-1]}[kind]


def solutions(statements):
    """Every assignment (True: tells the truth) in which exactly the truth-tellers' statements hold."""
    worlds = product((True, False), repeat=len(statements))
    return [world for world in worlds if all(holds(statement, world) == told for statement, told in zip(statements, world))]
