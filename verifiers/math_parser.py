"""One mathematical expression in the notation of ``math_latex`` to a tree; bounded recursive descent, nothing is evaluated by Python.

A tree is a nested tuple: ``("n", Fraction)``, ``("s", name)`` (a variable), ``("c", name)`` (pi, e, i), ``("+"|"*"|"/"|"^", a, b)``,
``("-", a)``, ``("f", name, arguments...)``, ``("sum"|"prod", variable, low, high, body)`` and ``("o", name, arguments...)`` for an operator
that is not computed but has arguments (an integral, a limit): two of these are equal when name and arguments are.
"""

from __future__ import annotations

from fractions import Fraction

from .math_symbols import FUNCTIONS, GREEK, PLAIN_FUNCTIONS, PLAIN_GREEK
from .math_tokens import Tokens, Tree, Unreadable, number
from .math_trees import applied, letter_of, levels, with_imaginary_unit, with_index

MAX_LENGTH = 2_000
MAX_DEPTH = 40
MAX_LEVELS = 150  # of a tree; a chain of products is as deep as it is long

_CLOSING = {"(": ")", "[": "]", "{": "}", "\\{": "\\}"}


def parse_expression(text: str) -> Tree:
    """The tree of ``text``. Raises Unreadable, or OverflowError where a number is too long to be meant."""
    if len(text) > MAX_LENGTH:
        raise Unreadable("too long")
    parser = _Parser(text)
    tree = parser.whole(0)
    if parser.kind != "end":
        raise Unreadable(f"unexpected {parser.value!r}")
    if levels(tree) > MAX_LEVELS:
        raise Unreadable("too many terms")
    return with_imaginary_unit(tree) if parser.capital_i and tree != ("s", "I") else tree


class _Parser(Tokens):
    bars = 0  # of absolute values, open around here

    # --- sums and products ---------------------------------------------------------------------------------------

    def sum(self, depth: int) -> Tree:
        if depth > MAX_DEPTH:
            raise Unreadable("nested too deeply")
        sign = self.take() if self.value in ("+", "-") and self.kind == "sign" else "+"
        tree = self.product(depth)
        if sign == "-":
            tree = ("-", tree)
        while self.kind == "sign" and self.value in ("+", "-"):
            sign = self.take()
            if self.kind == "sign" and self.value in ("+", "-"):  # a - -b
                sign = "+" if self.take() == sign else "-"
            right = self.product(depth)
            tree = ("+", tree, right if sign == "+" else ("-", right))
        return tree

    def product(self, depth: int) -> Tree:
        literal = self.kind == "number"
        tree = self.factor(depth)
        literal = literal and tree[0] == "n"
        while True:
            if self.kind == "sign" and self.value in ("*", "/"):
                sign = self.take()
                negative = self.kind == "sign" and self.value == "-"
                if negative:
                    self.take()
                right = self.factor(depth)
                tree = (sign, tree, ("-", right) if negative else right)
                literal = False
            elif self.value == "\\bmod" and self.kind == "command":
                self.take()
                tree = ("f", "mod", tree, self.factor(depth))
            elif self.starts_factor():
                if literal and self.kind == "number":
                    tree, literal = self.mixed(tree), False
                else:
                    fraction = literal and self.value == "\\frac" and tree[1].denominator == 1
                    numeric = self.kind == "number"
                    right = self.factor(depth)
                    proper = fraction and right[0] == "/" and right[1][0] == right[2][0] == "n" and right[1][1] < right[2][1]
                    tree = ("+", tree, right) if proper else ("*", tree, right)
                    literal = False
                    if numeric and right[0] == "n" and self.kind == "number":
                        raise Unreadable("two numbers side by side")
            else:
                return tree

    def mixed(self, whole: Tree) -> Tree:
        """``3 1/7`` after the 3: the only way two literals may stand side by side."""
        top = self.take()
        if self.value != "/" or not top.isdigit() or whole[1].denominator != 1:
            raise Unreadable("two numbers side by side")
        self.take()
        bottom = self.take()
        if not bottom.isdigit() or not 0 < int(top) < int(bottom):
            raise Unreadable("two numbers side by side")
        return ("+", whole, ("/", ("n", number(top)), ("n", number(bottom))))

    def starts_factor(self) -> bool:
        if self.kind in ("number", "letters"):
            return True
        if self.kind == "text":
            return bool(self.value.strip())
        if self.kind == "command":
            name = self.value[1:]
            return name in GREEK or name in FUNCTIONS or name in _ATOMS
        return self.kind == "sign" and (self.value in ("(", "[", "{") or (self.value == "|" and not self.bars))

    # --- one factor with its powers --------------------------------------------------------------------------------

    def factor(self, depth: int) -> Tree:
        if depth > MAX_DEPTH:
            raise Unreadable("nested too deeply")
        tree = self.atom(depth)
        while self.kind == "sign":
            if self.value == "^":
                self.take()
                if self.value == "\\circ" or (self.value == "{" and self.after() == "\\circ"):
                    tree = self.degrees(tree)
                else:
                    tree = ("^", tree, self.exponent(depth))
            elif self.value == "*" and self.after() == "*":
                self.take()
                self.take()
                tree = ("^", tree, self.exponent(depth))
            elif self.value == "_" and tree[0] == "^" and tree[1][0] == "s":  # v^2_0
                tree = ("^", self.subscripted(tree[1]), tree[2])
            elif self.value == "!":
                self.take()
                tree = ("f", "fact", tree)
            elif self.value == "%":
                self.take()
                tree = ("/", tree, ("n", Fraction(100)))
            else:
                break
        return tree

    def degrees(self, tree: Tree) -> Tree:
        braced = self.value == "{"
        if braced:
            self.take()
        self.take()
        if braced:
            self.want("}")
        return ("/", ("*", tree, ("c", "pi")), ("n", Fraction(180)))

    def exponent(self, depth: int) -> Tree:
        """What stands behind ``^``: a group, or one signed factor with its own powers (``2^3^2`` is ``2^(3^2)``)."""
        if self.kind == "sign" and self.value in ("+", "-"):
            sign = self.take()
            tree = self.exponent(depth + 1)
            return ("-", tree) if sign == "-" else tree
        if self.kind == "letters" and len(self.value) > 1 and self.value not in PLAIN_FUNCTIONS:
            letters = self.value
            self.put("letters", letters[1:])
            return letter_of(letters[0])
        if self.kind == "sign" and self.value in ("{", "("):
            tree = self.group(depth)
            if self.kind == "sign" and self.value == "^":
                self.take()
                return ("^", tree, self.exponent(depth + 1))
            return tree
        return self.factor(depth + 1)

    def whole(self, depth: int) -> Tree:
        r"""A sum, or ``a \over b`` and ``n \choose k``, which take all there is in their group."""
        tree = self.sum(depth)
        if self.kind == "command" and self.value in ("\\over", "\\choose"):
            over = self.take() == "\\over"
            right = self.sum(depth)
            return ("/", tree, right) if over else ("f", "binom", tree, right)
        return tree

    def group(self, depth: int) -> Tree:
        opening = self.take()
        tree = self.whole(depth + 1)
        self.want(_CLOSING[opening])
        return tree

    def argument(self, depth: int) -> Tree:
        r"""One argument of ``\frac`` or ``\sqrt``: a group, one digit or one symbol."""
        if self.value in ("{", "(") and self.kind == "sign":
            return self.group(depth)
        if self.kind == "number":
            first, rest = self.value[0], self.value[1:]
            if rest:
                self.put("number", rest)
            else:
                self.take()
            return ("n", number(first))
        if self.kind == "letters" and len(self.value) > 1:
            first = self.value[0]
            self.put("letters", self.value[1:])
            return letter_of(first)
        return self.atom(depth + 1)

    # --- atoms -----------------------------------------------------------------------------------------------------

    def atom(self, depth: int) -> Tree:
        if depth > MAX_DEPTH:
            raise Unreadable("nested too deeply")
        if self.kind == "number":
            return self.literal()
        if self.kind == "letters":
            return self.letters(depth)
        if self.kind == "text":
            word = self.take().strip()
            if word.lower() == "infinity":
                return ("s", "\\infty")
            if not word.isalpha():
                raise Unreadable("text inside an expression")
            return self.subscripted(letter_of(word) if len(word) == 1 else ("s", word))
        if self.kind == "sign":
            if self.value in ("(", "[", "{", "\\{"):
                return self.subscripted(self.group(depth))
            if self.value == "|":
                self.take()
                self.bars += 1
                tree = self.sum(depth + 1)
                self.bars -= 1
                self.want("|")
                return ("f", "abs", tree)
        if self.kind == "command":
            return self.command(depth)
        raise Unreadable(f"unexpected {self.value!r}")

    def letters(self, depth: int) -> Tree:
        word = self.value
        if word in PLAIN_FUNCTIONS and (
            self.after() in ("(", "{", "^", "[") or (word in FUNCTIONS and (len(word) > 2 or word in ("ln", "lg")))
        ):
            self.take()
            return self.call(PLAIN_FUNCTIONS[word], depth)
        if word == "sqrt" and self.after() == "[":
            self.take()
            return self.root(depth)
        if len(word) > 3 and word[:-1] in FUNCTIONS or word[:-1] == "ln":  # sinx
            self.put("letters", word[-1])
            return applied(word[:-1], None, [self.factor(depth + 1)])
        if word == "pi":
            self.take()
            return ("c", "pi")
        if word in PLAIN_GREEK:
            self.take()
            return self.subscripted(("s", "\\" + word))
        if word in ("inf", "oo", "infty", "infinity"):
            self.take()
            return ("s", "\\infty")
        if word in ("nan", "NaN") or len(word) > 3:  # a word is one name, never a product of its letters
            self.take()
            return self.subscripted(("s", word))
        if len(word) > 1:
            self.put("letters", word[1:])
        else:
            self.take()
        return self.subscripted(letter_of(word[0]))

    def subscripted(self, tree: Tree) -> Tree:
        """``tree`` with subscripts and primes made part of its name."""
        while self.kind == "sign" and self.value in ("_", "'"):
            mark = self.take()
            if tree[0] not in "sc":
                raise Unreadable("subscript of something that is not a name")
            if mark == "_":
                mark = "_" + self.raw_group()
            if len(tree[1]) > 60:
                raise Unreadable("name too long")
            tree = ("s", tree[1] + mark)
        return tree

    def command(self, depth: int) -> Tree:
        name = self.take()[1:]
        if name in GREEK:
            return self.subscripted(("s", "\\" + name))
        if name in FUNCTIONS:
            return self.call(name, depth)
        if name == "pi":
            return ("c", "pi") if self.value != "_" else self.subscripted(("s", "\\pi"))
        if name == "infty":
            return ("s", "\\infty")
        if name == "frac":
            return ("/", self.argument(depth), self.argument(depth))
        if name == "sqrt":
            return self.root(depth)
        if name == "binom":
            return ("f", "binom", self.argument(depth), self.argument(depth))
        if name == "cbrt":
            return ("^", self.argument(depth), ("/", ("n", Fraction(1)), ("n", Fraction(3))))
        if name in ("lfloor", "lceil"):
            tree = self.sum(depth + 1)
            self.want("\\rfloor" if name == "lfloor" else "\\rceil")
            return ("f", "floor" if name == "lfloor" else "ceil", tree)
        if name in ("sum", "prod", "int", "lim"):
            return self.big(name, depth)
        if name in ("angle", "triangle") and self.kind == "letters" and self.value.isupper():
            letters = self.take()  # ABC and CBA are one angle
            return ("s", f"\\{name} {min(letters, letters[::-1]) if name == 'angle' else ''.join(sorted(letters))}")
        if name in ("overline", "vec", "hat", "bar", "dot", "ddot", "angle", "triangle", "mathbb", "widehat", "overrightarrow", "tilde"):
            return self.subscripted(("s", f"\\{name}" + (self.raw_group() if self.value == "{" or self.kind == "letters" else "")))
        raise Unreadable(f"\\{name}")

    def root(self, depth: int) -> Tree:
        degree: Tree = ("n", Fraction(2))
        if self.value == "[":
            degree = self.group(depth)
        if self.value == "{" and self.after() == "}":  # \sqrt{}{3}
            self.take()
            self.take()
        radicand = self.whole_argument(depth)
        return ("^", radicand, ("/", ("n", Fraction(1)), degree))

    def whole_argument(self, depth: int) -> Tree:
        r"""As ``argument``, but a bare number is taken whole when it is typed plainly: ``\sqrt 12`` from a root sign."""
        return self.literal() if self.kind == "number" else self.argument(depth)

    def call(self, name: str, depth: int) -> Tree:
        exponent = base = None
        while self.kind == "sign" and self.value in ("^", "_"):
            if self.take() == "^":
                exponent = self.exponent(depth)
            else:
                base = self.argument(depth)
        arguments = self.arguments(depth)
        if exponent == ("-", ("n", Fraction(1))) and "arc" + name in FUNCTIONS:
            name, exponent = "arc" + name, None
        tree = applied(name, base, arguments)
        return tree if exponent is None else ("^", tree, exponent)

    def arguments(self, depth: int) -> list[Tree]:
        if self.kind == "sign" and self.value in ("(", "{", "[", "\\{"):
            opening = self.take()
            found = [self.sum(depth + 1)]
            while self.value == "," and self.kind == "sign":
                self.take()
                found.append(self.sum(depth + 1))
            self.want(_CLOSING[opening])
            return found
        sign = self.take() if self.kind == "sign" and self.value in ("+", "-") else "+"  # sin -a
        tree = self.factor(depth + 1)
        tree = tree if sign == "+" else ("-", tree)
        while (
            self.starts_factor()
            and self.kind in ("letters", "command", "number")
            and self.value[1:] not in FUNCTIONS
            and (self.value not in PLAIN_FUNCTIONS)
        ):
            tree = ("*", tree, self.factor(depth + 1))
        return [tree]

    def bound(self, depth: int) -> Tree:
        """One letter without a subscript of its own, as the a of ``\\int^b_a``, or an argument."""
        if self.kind != "letters":
            return self.argument(depth)
        letters = self.value
        self.put("letters", letters[1:]) if len(letters) > 1 else self.take()
        return letter_of(letters[0])

    def big(self, name: str, depth: int) -> Tree:
        low: Tree = ("s", "")
        high: Tree = ("s", "")
        variable = ""
        while self.kind == "sign" and self.value in ("_", "^"):
            if self.take() == "^":
                high = self.bound(depth)
                continue
            if self.value == "{":
                self.take()
                if self.kind == "letters" and self.after() in ("=", "\\to"):
                    variable = self.take()
                    self.take()
                low = self.sum(depth + 1)
                self.want("}")
            else:
                low = self.bound(depth)
        body = self.product(depth + 1)
        if variable == "i":  # an index here, not the imaginary unit
            body, high = with_index(body), with_index(high)
        if name in ("sum", "prod") and variable:
            return (name, variable, low, high, body)
        return ("o", name + variable, low, high, body)


_ATOMS = frozenset(
    "frac sqrt cbrt binom lfloor lceil pi infty sum prod int lim "
    "overline vec hat bar dot ddot widehat overrightarrow mathbb angle triangle tilde".split()
)
