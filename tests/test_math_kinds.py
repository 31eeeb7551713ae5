"""Kinds of notation, each with answers that state the gold and answers that do not."""

import pytest

from setpo_verifiers import Status, verify

# kind: (gold, answers that are right, answers that are wrong)
BOXED = {
    "compound units": (
        r"8\text{ m/s}",
        ["8", "8 m/s", r"8\text{ m s}^{-1}", "8 meters per second", r"8\,\mathrm{m\,s^{-1}}", r"8\,\frac{\text{m}}{\text{s}}"],
        [r"8\text{ m/s}^2", r"8\text{ km/h}", r"8\text{ m}"],
    ),
    "square units": (
        r"31\text{ cm}^2",
        [r"31\,\mathrm{cm^2}", "31 square centimeters", "31 sq cm", r"31\text{ cm²}"],
        [r"31\text{ cm}", r"31\text{ cm}^3"],
    ),
    "unit in words around": (
        "31",
        [r"\text{31 cm}", "31 (cm)", r"31\text{ in total}", r"{31\rm\ cm}", r"31^\circ\text{C}"],
        [r"31\mathrm{i}", r"31\mathrm{e}"],
    ),
    "scale words": ("4000000", ["4 million", r"4\text{ million}"], ["4", "4 billion"]),
    "currency": ("75", [r"\text{\$}75", r"US\$75", "₹75", "75元", r"\text{Rs. }75", r"\pounds 75"], ["750", "0.75"]),
    "durations": (
        r"3\text{ hours and }20\text{ minutes}",
        ["3 hours 20 minutes", r"3\text{ h }20\text{ min}"],
        ["3 hours 25 minutes", "20"],
    ),
    "time of day": (r"8:15 \text{ PM}", [r"\text{8:15 p.m.}", "8:15", "20:15", "8{:}15"], [r"8:15\text{ AM}", "8:51"]),
    "degrees": (
        "72^\\circ",
        ["72º", r"72\text{°}", "72^o", r"m\angle B = 72^\circ", r"144^\circ/2", r"90^\circ - 18^\circ", r"71^\circ 60'"],
        ["72\\%", "27^\\circ"],
    ),
    "upright constants": ("2+7i", [r"2+7\mathrm{i}", r"2+7\text{i}"], ["9", "2", "2-7i"]),
    "fonts": ("y=5x-2", [r"\mathbf{y=5x-2}", r"\boldsymbol{5x-2}", "5x-y=2"], ["z=5x-2", "y=5x+2"]),
    "fraction commands": (
        r"\frac{5}{8}",
        [r"\sfrac58", r"\nicefrac{5}{8}", r"{5 \over 8}", r"\left.\frac58\right.", "^5/_8", r"\ensuremath{\frac58}"],
        [r"\frac{8}{5}"],
    ),
    "mixed number in words": (r"3\frac{2}{7}", ["3 and 2/7", "23/7"], ["3, 2/7", "6/7"]),
    "decimal marks": ("6.25", ["6{,}25", "6{.}25", "6,25"], ["625", "6,26"]),
    "decimal comma after zero": ("0.125", ["0,125"], ["125", "0,12"]),
    "repeating": (r"\frac{5}{11}", ["0.(45)", r".\overline{45}", "0.454545...", r"0.\overline{45}"], ["0.45", r"0.\overline{4}5"]),
    "cut decimal": (r"\sqrt{3}", [r"1.73205\dots", "1.7320508..."], ["1.75...", "1.73..."]),
    "superscripts": (r"3\times10^{-12}", ["3×10⁻¹²", "3e-12"], ["3×10⁻¹³"]),
    "binomials": (r"\binom{9}{4}", ["C(9,4)", r"{9 \choose 4}", "{}_9C_4", "^{9}C_{4}", "126"], ["C(9,3)", "9/4"]),
    "whole-number identities": (
        r"\binom{n}{2}",
        [r"\frac{n(n-1)}{2}", r"\frac{n!}{2!(n-2)!}", r"\sum_{k=1}^{n-1} k", r"\sum_{i=1}^{n-1} i"],
        [r"\binom{n+1}{2}", r"\sum_{k=1}^{n} k", r"\frac{n^2}{2}"],
    ),
    "functions by name": (
        r"\arctan 3",
        [r"\operatorname{arctg} 3", r"\text{arctan}(3)", r"\cot^{-1}\frac13", "arctan 3"],
        [r"\tan 3", r"\cot 3"],
    ),
    "logarithms": (r"\ln 5", ["ln 5", r"\mathrm{ln}(5)", r"\operatorname{ln}5", r"-\ln\frac15"], [r"\log_2 5", "l*n*5"]),
    "several branches": (r"2\ln a+\ln b", [r"\ln(a^2b)"], [r"\ln(ab)"]),
    "absolute values": ("|x-7|", ["|7-x|", r"\sqrt{(x-7)^2}"], ["7-x", "x-7"]),
    "greatest common divisor": ("14", [r"\gcd(42,28)", r"\max\{9,14\}", r"\operatorname{lcm}(7,2)"], [r"\min\{9,14\}"]),
    "bases": ("1202_3", ["(1202)_3", r"1202_{\text{three}}", "1202_{(3)}", "1202"], ["1202_4", "47"]),
    "congruences": (r"x\equiv 3\pmod{11}", ["3", r"3\pmod{11}", "3 (mod 11)"], [r"3\pmod{12}", r"x\equiv 3\pmod{22}", "8"]),
    "families": (
        r"x=\frac{\pi}{6}+2k\pi, k\in\mathbb{Z}",
        [r"\frac{\pi}{6}+2k\pi", r"\frac{\pi}{6}+2n\pi \quad (n \in \mathbb{Z})", r"x=2m\pi+\frac{\pi}{6}, m \in Z"],
        [r"\frac{\pi}{6}+k\pi", r"\frac{\pi}{6}"],
    ),
    "intervals in words": (
        r"(-\infty, 9]",
        [
            r"\text{all } x \le 9",
            r"]-\infty,9]",
            "(-inf, 9]",
            "(-oo, 9]",
            r"\text{Domain: }(-\infty,9]",
            "{x | x ≤ 9}",
            r"\{t \mid t \le 9\}",
        ],
        [r"(-\infty, 9)", r"[9,\infty)"],
    ),
    "open ends outward": ("(3,8)", ["]3,8[", r"\left]3,8\right[", "3&lt;x&lt;8"], ["[3,8]", "]3,9["]),
    "two rays": (r"(-\infty,-4)\cup(4,\infty)", ["x<-4, x>4", "x<-4 or x>4", r"(-\infty,-4) U (4,\infty)"], ["-4<x<4", "x>4"]),
    "nested conditions": ("(-3,-1)\\cup(2,5)", ["(x>2 and x<5) or (x>-3 and x<-1)"], ["(x>2 and x<5) and (x>-3 and x<-1)"]),
    "symbolic ends": ("[p,q]", [r"p\le x\le q", r"q\ge x\ge p"], ["(p,q]", r"p\le x< q"]),
    "all but one": (
        r"\mathbb{R}\setminus\{6\}",
        [r"\text{all real numbers except }6", r"x \not= 6", r"\R-\{6\}", r"(-\infty,6)\cup(6,\infty)"],
        ["6", r"\mathbb{R}"],
    ),
    "real numbers": (
        r"\mathbb{R}",
        [r"\text{All reals}", r"\Bbb{R}", r"(-\infty,\infty)", r"\text{all real } x"],
        [r"\mathbb{Z}", r"\emptyset"],
    ),
    "nothing": (
        r"\emptyset",
        [r"\text{no solution}", r"\text{No real solutions}", r"\{\}", r"\text{none}"],
        [r"\{\emptyset\}", "0", "1,2"],
    ),
    "sets with both signs": (r"\{-6,0,6\}", [r"\{0,\pm 6\}", r"0,\pm6"], [r"\{\pm 6\}"]),
    "points": (
        "(7,-1)",
        ["P(7,-1)", "<7,-1>", r"\langle 7,-1\rangle", r"x=7\\y=-1", r"\begin{cases}x=7\\y=-1\end{cases}"],
        ["(-1,7)", r"y=7\\x=-1"],
    ),
    "systems": (r"\left\{\begin{array}{l}x=2\\y=9\end{array}\right.", ["x=2,y=9", "(2,9)", "y=9, x=2"], ["(9,2)"]),
    "indexed roots": (r"x_1=4, x_2=-\frac13", [r"-\frac13, 4", r"\{4,-\frac13\}", r"x_1=-\frac13,x_2=4"], ["4", r"x_1=4, x_2=\frac13"]),
    "vectors": (
        r"\begin{pmatrix}2\\5\end{pmatrix}",
        ["(2,5)", r"\left[\begin{array}{c}2\\5\end{array}\right]", r"\langle 2,5 \rangle"],
        ["(5,2)", r"\{2,5\}"],
    ),
    "scaled matrix": (
        r"\frac13\begin{pmatrix}1&2\\0&3\end{pmatrix}",
        [r"\begin{pmatrix}1/3&2/3\\0&1\end{pmatrix}", r"\begin{pmatrix}\frac13&\frac23\\0&1\end{pmatrix}"],
        [r"\begin{pmatrix}1&2\\0&3\end{pmatrix}"],
    ),
    "matrix product": (
        r"\begin{pmatrix}2&1\\4&3\end{pmatrix}",
        [r"\begin{pmatrix}1&0\\2&1\end{pmatrix}\begin{pmatrix}2&1\\0&1\end{pmatrix}", r"\begin{pmatrix}2&4\\1&3\end{pmatrix}^T"],
        [r"\begin{pmatrix}2&1\\0&1\end{pmatrix}\begin{pmatrix}1&0\\2&1\end{pmatrix}"],
    ),
    "one-line environments": (
        "18",
        [r"\begin{aligned}x&=18\end{aligned}", r"\begin{align*}18\end{align*}", "x&=18", r"\begin{array}{c}18\end{array}"],
        ["81"],
    ),
    "described": (
        "63",
        [
            "[ABC]=63",
            r"\text{Number of ways} = 63",
            r"\text{Total: }63",
            r"\Rightarrow 63",
            r"\max f = 63",
            r"\#S=63",
            "Sum = 63",
            "m+n = 60+3 = 63",
            r"E[X]=63",
        ],
        ["n+m=63", "m+n = 60+3 = 64"],
    ),
    "other quantity": ("P(A)=0.4", ["0.4", r"\frac25"], ["P(B)=0.4"]),
    "function of a variable": (r"\sin\theta=\frac{5}{13}", [r"\frac{5}{13}"], [r"\theta=\frac{5}{13}", r"\cos\theta=\frac{5}{13}"]),
    "derivatives": (r"\frac{dy}{dx}=6x", ["6x", "dy/dx=6x"], [r"\frac{dx}{dy}=6x", "y=6x"]),
    "inverse function": (
        r"f^{-1}(x)=\frac{x-4}{3}",
        [r"\frac{x-4}{3}", r"y=\frac{x-4}{3}", r"f^{-1}(t)=\frac{t-4}{3}"],
        [r"\frac{x+4}{3}"],
    ),
    "sequences": ("a_n = 5n - 2", [r"a_n = 5n - 2, n \ge 1", "a_k=5k-2", "5n-2"], ["a_{n+1}=5n-2"]),
    "angles by name": (r"\angle PQR", [r"\angle RQP"], [r"\angle QPR"]),
    "letters with content": ("D", ["D. x = 9", r"\textbf{(D)}\ 41", r"\text{The answer is D}", "(D) 41", "D: 41"], ["A. D", "(C) 41", "d"]),
    "several letters": ("ACD", ["A, C, D", r"\text{A, C and D}", "D,C,A"], ["A,C", "A,B,D"]),
    "gold with content": (r"\textbf{(B)}\ 75", ["B", "(B)", "75"], ["C", "(A) 75x"]),
    "words": (r"\text{parabola}", [r"\text{a parabola}", r"\text{The parabola}", "Parabola."], [r"\text{hyperbola}"]),
    "lists of words": (r"\text{Mia and Tom}", [r"\text{Tom, Mia}", r"\text{Mia, Tom}"], [r"\text{Mia}", r"\text{Mia and Tim}"]),
    "short words": (r"\text{no}", ["no", r"\text{No}", "NO"], ["on", r"\text{yes}"]),
    "roman numerals": (r"\text{IV}", ["IV"], ["VI", "IVI"]),
    "parts": ("(1) 8; (2) 15", ["8, 15", "(1) 8 (2) 15"], ["15, 8", "8, 30"]),
    "one value a paragraph": ("4, 9", ["4\n\n9"], ["4 9"]),
    "marks behind": ("54", [r"54\quad\checkmark", "54 ✓", r"54 \blacksquare", "'54'"], [r"\cancel{54}", r"54\text{ or }45"]),
    "tiny is not zero": ("0", ["0.0", r"\sin\pi"], ["e^{-1000}", "10^{-80}"]),
}

BOXED |= {
    "thousands in braces": ("48256", ["{48,256}", r"\color{red}{48,256}", "48{,}256"], ["48, 256", "48"]),
    "thousands with zeros": ("9,009", ["9009"], ["9", "9,9"]),
    "far values": ("|t+80|", ["|-t-80|", r"\sqrt{(t+80)^2}"], ["t+80", "80+t"]),
    "products of roots": (r"\sqrt{cd}", [r"\sqrt c\sqrt d"], [r"\sqrt{c}+\sqrt d", "cd"]),
    "exponentials": ("e^{3x}", [r"\frac{1}{e^{-3x}}", "(e^x)^3"], ["e^{-3x}", "3e^x"]),
    "plus or minus with names": (r"\pm\sqrt{5},\pm\sqrt{7}", [r"x=\pm\sqrt5 \text{ or } x=\pm\sqrt7"], [r"\pm\sqrt5"]),
    "pairs": ("(2,7),(7,2)", [r"(2,7)\text{ and }(7,2)", r"(x,y)\in\{(2,7),(7,2)\}"], ["(2,7)"]),
    "pieces": (
        r"\begin{cases}x+3&x\ge0\\-x&x<0\end{cases}",
        [r"\begin{cases}3+x&\text{if }x\ge0\\-x&\text{if }x<0\end{cases}"],
        [r"\begin{cases}x+3&x>0\\-x&x<0\end{cases}"],
    ),
    "units behind a name": (r"x=5\text{ cm}", ["5", r"x=5\text{ cm}"], [r"x=5\text{ m}", r"x=5\text{ cm}^2"]),
    "row gaps": (r"\begin{pmatrix}1\\2\end{pmatrix}", [r"\begin{pmatrix}1\\[4pt]2\end{pmatrix}"], [r"\begin{pmatrix}1\\42\end{pmatrix}"]),
    "absolute bounds": ("(-5,5)", ["|x|<5", "-5<x<5"], [r"|x|\le 5", "|x|>5", "x<5"]),
    "two rings": (r"[-3,-2]\cup[2,3]", [r"2\le|z|\le 3"], [r"2\le z\le 3", r"2<|z|\le 3"]),
    "ranges": ("(0,9)", ["0<f(x)<9"], ["0<f(x)<8"]),
    "two signs": ("p+q", ["p--q", "p- -q"], ["p-q", "p+-q"]),
    "order of bounds": (r"\int_a^b g\,dx", [r"\int^b_a g\,dx"], [r"\int_b^a g\,dx"]),
    "two-letter words": (r"\text{up}", ["up", r"\text{Up}", "UP"], [r"\text{down}", "pu"]),
    "long chains": ("149", ["+".join("1" * 149)], ["+".join("1" * 148), "+".join("1" * 600), "3" + "!" * 340, "x " * 600]),
    "a gold too long to read": ("x+" + "1+" * 2_500 + "1", [], ["binom", "x", "7", "(B)"]),
    "constants of integration": ("y=x^2+C", ["x^2+c", r"x^2+\text{const}", "x^2+K"], ["x^2+a", "x^2"]),
    "a factor that is a constant": ("3x+Ce^{2x}", ["c e^{2x}+3x"], ["3x+c", "3x+ae^{2x}"]),
    "letters keep their case": ("ax+c", ["c+ax"], ["ax+C", "Ax+c"]),
    "nothing behind approx": ("5", [], [r"n \approx", r"\approx", "binom(2)", r"2 2/3\frac12"]),
}

PROSE = {
    "36": [
        "The answer is **36**.",
        "#### Final Answer\n\n36",
        "La réponse finale est 36.",
        "答えは36です。",
        "So we need a total of 36 tickets.",
        r"The area is $36$ cm$^2$.",
    ],
    "18": [
        "She makes 9 × $2 = $18 per day.",
        "The total is $5 + $6 + $7 = $18.",
        "Each is $6, so three cost $18 = 3 * $6.\nThe answer is $18",
    ],
    r"2\sqrt{7}": ["The answer is 2√7.", "Answer: 2*sqrt(7)", r"The answer is $2\sqrt{7}$."],
    "9": [
        "Thus there are $9$ such integers in $[1, 20]$.",
        "The minimum is $9$ when $x = 4$.",
        "The answer is 9 for n = 4.",
        "The answer is 9, because 3*3 is the square.",
        "Answer: 9 (= 3^2)",
    ],
    "5:4": ["The ratio is 5:4."],
    "-2, 6": ["The answer is -2 and 6.", "The solutions are $-2$ and $6$.", "So $x = -2$ or $x = 6$."],
    "B": ["I would go with B.", "B is the correct answer.", "故选：B", "### Final Answer\nB"],
    r"\frac13": [r"$\boxed{\frac13} \approx \boxed{0.333}$", "<answer>It comes to a ratio that is 1/3 of it.</answer>"],
}
DENIED = {
    "36": [
        "The answer is not 36.",
        "36 is not the answer.",
        "The answer is either 36 or 35.",
        "The answer is at least 36.",
        "The answer is 36π.",
        "The question says 36 apples were sold.",
        "The answer is 36 million.",
    ],
    "B": ["The answer is B or C."],
    "9": ["The answer is 18, where x is 9.", "The answer is below 9.", "The answer is no less than 9."],
    "6": ["The solutions are $-2$ and $6$.", "The ratio is 5:6."],
}


@pytest.mark.parametrize("kind", BOXED)
def test_boxed_answers_of_a_kind(kind):
    gold, right, wrong = BOXED[kind]
    for answer in [gold, *right]:
        assert verify("math", f"\\boxed{{{answer}}}", gold).status == Status.CORRECT, answer
    for answer in wrong:
        assert verify("math", f"\\boxed{{{answer}}}", gold).reward == 0, answer


@pytest.mark.parametrize(("gold", "texts"), PROSE.items())
def test_prose_that_states_the_answer(gold, texts):
    assert [text for text in texts if verify("math", text, gold).reward != 1] == []


@pytest.mark.parametrize(("gold", "texts"), DENIED.items())
def test_prose_that_does_not(gold, texts):
    assert [text for text in texts if verify("math", text, gold).reward != 0] == []


@pytest.mark.parametrize(
    "text",
    [
        "<think>The answer is 3.\nQuestion: is that right?\nNo.</think>\\boxed{7}",
        "The answer is found by steps.\nQuestion: what is the sum?\nSo \\boxed{7}",
        "\\boxed{7}\n\n### Problem 2\nFind 1+1.\n\\boxed{2}",
        "\\boxed{7}<|im_end|>\n<|im_start|>user\nNext\n<|im_start|>assistant\n\\boxed{2}",
        "\\boxed {7}",
        "<answer>#### 7</answer>",
    ],
)
def test_where_the_answer_stands(text):
    assert verify("math", text, "7").status == Status.CORRECT


EQUAL_KEYS = [
    ["(-\\infty,3]", "x\\le 3"],
    ["\\sin 30^\\circ", "\\frac12", "0.5"],
    ["C", "(C)", "\\text{(C)}", "Option C"],
    ["yes", "Yes", "\\text{Yes.}"],
    ["2:3", "4:6", "\\frac23"],
    ["3x-y=4", "6x-2y=8"],
    ["y>2x+1", "2x+1<y"],
    ["x=3,y=-2", "y=-2,x=3", "(3,-2)"],
    ["\\frac{n(n+1)}{2}", "\\binom{n+1}{2}"],
]


@pytest.mark.parametrize("answers", EQUAL_KEYS)
def test_equal_answers_have_one_mode(answers):
    assert len({verify("math", f"\\boxed{{{answer}}}", "gold").mode_key for answer in answers}) == 1


def test_different_answers_have_different_modes():
    answers = [
        "\\infty",
        "-\\infty",
        "\\binom{n}{2}",
        "\\binom{n+1}{2}",
        "n!",
        "|y|-y",
        "y-y+1",
        "x^2",
        "y>2.5x",
        "x>2.5y",
        "(3,-2)",
        "(-2,3)",
    ]
    keys = [verify("math", f"\\boxed{{{answer}}}", "gold").mode_key for answer in answers]
    assert len(set(keys)) == len(keys)
