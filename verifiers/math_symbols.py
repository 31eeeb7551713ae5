"""The many spellings of one symbol in LaTeX, Unicode and plain typing; ``math_latex`` replaces each by the plain one."""

from __future__ import annotations

# plain spelling: the characters that stand for it
_CHARACTERS = {
    "-": "−–—﹣－‐‑",
    "*": "×·⋅∗＊✕",
    "/": "÷∕⁄",
    "'": "′’",
    ",": "，、",
    ";": "；",
    ":": "：",
    ".": "。",
    "(": "（⟨",
    ")": "）⟩",
    " ": '$€£¥₹₽₩₱₫฿~“”"`✓✔☑■□∎\ufe0e\ufe0f',  # currencies, and quotation marks: text stands in double quotes later on
    r"^\circ ": "°º˚",
    r"\le ": "≤⩽≦",
    r"\ge ": "≥⩾≧",
    r"\ne ": "≠",
    r"\approx ": "≈",
    r"\equiv ": "≡",
    r"\pm ": "±",
    r"\mp ": "∓",
    r"\infty ": "∞",
    r"\sqrt ": "√",
    r"\sum ": "∑",
    r"\prod ": "∏",
    r"\int ": "∫",
    r"\sqrt[3] ": "∛",
    r"\cup ": "∪",
    r"\cap ": "∩",
    r"\in ": "∈",
    r"\setminus ": "∖",
    r"\emptyset ": "∅ø",
    r"\mathbb{R}": "ℝ",
    r"\mathbb{Z}": "ℤ",
    r"\mathbb{N}": "ℕ",
    r"\Rightarrow ": "⇒",
    r"\to ": "→",
    r"\angle ": "∠",
    r"\lfloor ": "⌊",
    r"\rfloor ": "⌋",
    r"\lceil ": "⌈",
    r"\rceil ": "⌉",
    r"\pi ": "π",
    r"\theta ": "θ",
    r"\alpha ": "α",
    r"\beta ": "β",
    r"\gamma ": "γ",
    r"\lambda ": "λ",
    r"\omega ": "ω",
    r"\phi ": "φ",
    r"\mu ": "μ",
    r"\rho ": "ρ",
    r"\sigma ": "σ",
    r"\delta ": "δ",
    r"\epsilon ": "ε",
    r"\tau ": "τ",
    r"\Delta ": "Δ",
    r"\Omega ": "Ω",
    " yuan": "元圆",
    " yen": "円",
}
_FRACTIONS = dict(zip("½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅐⅛⅜⅝⅞⅑⅒", "12 13 23 14 34 15 25 35 45 16 56 17 18 38 58 78 19".split() + ["1 10"]))
CHARACTERS = str.maketrans(
    {
        **{character: plain for plain, characters in _CHARACTERS.items() for character in characters},
        **{character: rf"\frac{{{digits[0]}}}{{{digits[1:].strip()}}}" for character, digits in _FRACTIONS.items()},
    }
)
SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺ⁿ", "0123456789-+n")
SUBSCRIPTS = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")

# plain spelling, a command or a sign: the commands that stand for it
_COMMANDS = {
    "le": "leq leqslant",
    "ge": "geq geqslant",
    "ne": "neq",
    "<": "lt",
    ">": "gt",
    "frac": "dfrac tfrac cfrac sfrac nicefrac",
    "binom": "dbinom tbinom",
    "sqrt": "surd",
    "*": "times cdot ast",
    "/": "div",
    "\\\\": "cr",
    ":": "colon",
    "|": "mid vert lvert rvert",
    "emptyset": "varnothing",
    "approx": "approxeq simeq",
    " and ": "land wedge",
    " or ": "lor vee",
    "cup": "bigcup",
    "cap": "bigcap",
    "setminus": "backslash smallsetminus",
    "{": "lbrace",
    "}": "rbrace",
    "[": "lbrack",
    "]": "rbrack",
    "(": "langle",
    ")": "rangle",
    "overline": "bar",
    "vec": "overrightarrow",
    "to": "rightarrow longrightarrow",
    "mathbb": "Bbb",
    "bmod": "mod",
    "\\mathbb {R}": "R Reals",
    "^\\circ ": "degree degrees textdegree",
    "phi": "varphi",
    "epsilon": "varepsilon",
    "theta": "vartheta",
    "dots": "ldots cdots dotsc dotsb",
    "i": "imath",
    "tan": "tg",
    "cot": "ctg",
    "arctan": "arctg atan",
    "arccot": "arcctg acot",
    "arcsin": "asin",
    "arcsinh": "arsinh asinh",
    "arccosh": "arcosh acosh",
    "arctanh": "artanh atanh",
    "arccos": "acos",
}
COMMANDS = {spelling: plain for plain, spellings in _COMMANDS.items() for spelling in spellings.split()}
DROPPED = frozenset(
    "left right middle big Big bigg Bigg bigl bigr Bigl Bigr biggl biggr Biggl Biggr displaystyle textstyle scriptstyle limits nolimits "
    "quad qquad nonumber bf rm it sf tt large Large small normalsize displaymath boldmath thinspace medspace hfill notag centering "
    "strut unboldmath "
    "checkmark blacksquare square Box qed qedsymbol newline enspace cal LARGE huge Huge tiny footnotesize scriptsize smash "
    "mathstrut nobreak "
    "space thickspace negthinspace negmedspace negthickspace textdollar dollar pounds textsterling euro texteuro yen".split()
)
TEXT_COMMANDS = frozenset(
    "text mbox textnormal textbf textit textrm textsf texttt emph mathrm mathbf mathit mathsf mathtt operatorname operatornamewithlimits "
    "hbox bm boldsymbol textup pmb mathnormal unit".split()
)
TRANSPARENT = frozenset(
    "boxed fbox framebox beginboxed underline mathcal mathscr makebox mathop mathbin mathrel mathopen mathclose mathpunct mathord "
    "ensuremath".split()
)
REMOVED = frozenset("color textcolor colorbox cancel hspace vspace vphantom label tag rule".split())  # with the group behind them
MEANINGLESS = frozenset("phantom hphantom verb input write".split())  # an answer with one of these states nothing
ENTITIES = {"&lt;": "<", "&gt;": ">", "&le;": r"\le ", "&ge;": r"\ge ", "&minus;": "-", "&times;": "*", "&nbsp;": " ", "&amp;": "&"}
FUNCTIONS = frozenset(
    "sin cos tan cot sec csc arcsin arccos arctan arccot arcsec arccsc sinh cosh tanh coth sech csch arcsinh arccosh arctanh "
    "exp ln log lg floor ceil abs max min gcd lcm".split()
)
PLAIN_FUNCTIONS = {  # typed without a backslash
    **{name: name for name in FUNCTIONS},
    **{spelling: plain for plain in FUNCTIONS for spelling in _COMMANDS.get(plain, "").split()},
    "sqrt": "sqrt",
    "cbrt": "cbrt",
    "binom": "binom",
    "Abs": "abs",
}
GREEK = frozenset(
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi rho sigma tau upsilon phi chi psi omega Gamma Delta Theta "
    "Lambda Xi Pi Sigma Upsilon Phi Psi Omega ell hbar".split()
)
PLAIN_GREEK = frozenset("alpha beta gamma delta epsilon theta lambda mu omega phi rho sigma tau".split())
