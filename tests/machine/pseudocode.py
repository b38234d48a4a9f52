"""Evaluates the pseudocode of AMD's CDNA instructions, as tinygrad 0.14.0 carries it as text.

`Pseudocode(text)` translates it to Python; `run(variables)` evaluates it for one lane. Variables
are `Number`s: S0, S1, S2, D0 as bits, VCC, SCC, EXEC, laneId and whatever the text asks for.
See `pseudocode_functions` for what the guides leave open.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from tests.machine import pseudocode_numbers as numbers
from tests.machine.pseudocode_functions import (
    CONSTANTS,
    FUNCTIONS,
    SAME_ZERO,
    Denormal,
    Environment,
    binary,
    boolean,
    of_bool,
    unary,
)
from tests.machine.pseudocode_numbers import Number, bits_of, convert

_TOKEN = re.compile(
    r"\s*(\d+'(?:0x[0-9a-fA-F]+|\d+\.\d+|\d+)(?:ULL|LL|U)?|\d+'[FUIB]\b"
    r"|0x[0-9a-fA-F]+(?:ULL|LL|U)?|\d+\.\d+F?|\d+(?:ULL|LL|U)?"
    r"|[A-Za-z_]\w*|<<|>>|<=|>=|==|!=|<>|&&|\|\||\*\*|\+=|-=|[-+*/&|^~!<>=?:;,.(){}\[\]])"
)
_NAME = re.compile(r"[A-Za-z_]\w*")
_TYPE = re.compile(r"([ufib])(\d+)|bf16")
_LEVELS = (
    ("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!=", "<>", SAME_ZERO),
    ("<", "<=", ">", ">="), ("<<", ">>"), ("+", "-"), ("*", "/"), ("**",),
)  # fmt: skip
_ZERO = Number("b", 64, 0)


class UnknownSyntax(ValueError):
    """Text that the evaluator does not know."""


class Pseudocode:
    """The pseudocode of one instruction; `others` are those that it calls by name."""

    def __init__(self, text: str, others: dict[str, str] | None = None) -> None:
        translation = _Translation(_split(text))
        lines = translation.block(())
        if translation.peek():
            raise UnknownSyntax(f"at {translation.tokens[translation.at :][:5]}")
        inner = {
            name: Pseudocode((others or {})[name], others) for name in translation.instructions
        }

        def instruction(environment: Environment, name: str, *arguments: Number) -> Number:
            given = {f"S{i}": argument for i, argument in enumerate(arguments)}
            modes = {n: v for n, v in environment.items() if n.startswith("WAVE_MODE")}
            result, first = inner[name].run(given | modes)["D0"], arguments[0]
            return Number(first.kind, first.width, bits_of(result.bits, first.width))

        known = {
            **{each.__name__: each for each in (
                Number, binary, boolean, of_bool, unary, _cast, _joined, _sliced, _store, _typed,
            )},
            "CONSTANTS": CONSTANTS, "FUNCTIONS": FUNCTIONS, "ZERO": _ZERO,
            "instruction": instruction, **translation.literals,
        }  # fmt: skip
        exec("\n".join(["def run(e):", *_indented(lines)]), known)
        self._run = known["run"]

    def run(self, variables: Environment) -> Environment:
        """The variables after the instruction."""
        environment = dict(variables)
        self._run(environment)
        return environment


def _split(text: str) -> list[str]:
    text = re.sub(r"//[^\n]*", "", text).rstrip()
    tokens, at = [], 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if not found:
            raise UnknownSyntax(text[at : at + 20])
        tokens.append(found[1])
        at = found.end()
    # `== -0.0` and `== +0.0` ask for the sign of a zero, `== 0.0` does not.
    for place in range(len(tokens) - 2):
        if tokens[place] == "==" and tokens[place + 1] in "+-" and tokens[place + 2] == "0.0":
            tokens[place] = SAME_ZERO
    return tokens


def _indented(lines: list[str]) -> list[str]:
    return [f"  {line}" for line in lines or ["pass"]]


class _Translation:
    """Lines and expressions of Python for the tokens, whose variables are in a dictionary `e`."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens, self.at = tokens, 0
        self.literals: dict[str, Number] = {}
        self.instructions: set[str] = set()

    def peek(self, ahead: int = 0) -> str:
        place = self.at + ahead
        return self.tokens[place] if place < len(self.tokens) else ""

    def take(self, *wanted: str) -> str:
        token = self.peek()
        if wanted and token not in wanted:
            raise UnknownSyntax(f"{token!r} where one of {wanted} was expected")
        self.at += 1
        return token

    def name(self) -> str:
        token = self.take()
        if not _NAME.fullmatch(token):
            raise UnknownSyntax(f"{token!r} where a name was expected")
        return token

    # --- statements -----------------------------------------------------------------------

    def block(self, ends: tuple[str, ...]) -> list[str]:
        lines: list[str] = []
        while self.peek() and self.peek() not in ends:
            if self.peek() == ";":
                self.take()
            else:
                lines += self.statement()
        return lines

    def statement(self) -> list[str]:
        match self.peek():
            case "if":
                return self.choice()
            case "for":
                return self.loop()
            case "declare":
                while self.peek() not in (";", ""):
                    self.take()
                return []
            case "break":
                return [self.take()]
            case "return":
                return [f"{self.take()} {self.expression()}"]
        if self.peek(1) == "=" and self.peek(2) == "lambda":
            return self.function()
        return self.assignment()

    def choice(self) -> list[str]:
        lines = []
        while (token := self.take("if", "elsif", "else", "endif")) in ("if", "elsif"):
            condition = self.expression()
            self.take("then")
            body = self.block(("elsif", "else", "endif"))
            lines += [
                f"{'if' if token == 'if' else 'elif'} boolean({condition}):",
                *_indented(body),
            ]
        if token == "else":
            lines += ["else:", *_indented(self.block(("endif",)))]
            self.take("endif")
        return lines

    def loop(self) -> list[str]:
        self.take("for")
        name = self.name()
        self.take("in")
        first = self.expression()
        self.take(":")
        last = self.expression()
        self.take("do")
        body = self.block(("endfor",))
        self.take("endfor")
        return [
            f"for n in range(({first}).integer, ({last}).integer + 1):",
            *_indented([f"e[{name!r}] = Number('i', 32, n)", *body]),
        ]

    def function(self) -> list[str]:
        name = self.name()
        self.take("=")
        self.take("lambda")
        self.take("(")
        parameters = []
        while (token := self.take()) != ")":
            parameters += [token] * (token != ",")
        self.take("(")
        start = self.at
        try:
            body = [f"return {self.expression()}"]
            self.take(")")
        except UnknownSyntax:
            self.at = start
            body = self.block((")",))
            self.take(")")
        given = f"e = e | dict(zip({parameters}, arguments, strict=True))"
        return [f"def {name}(e, *arguments):", *_indented([given, *body]), f"e[{name!r}] = {name}"]

    def assignment(self) -> list[str]:
        if self.peek() == "{":
            return self.parts()
        targets = [self.target()]
        operator = self.take("=", "+=", "-=")
        while operator == "=" and (other := self.target_before_equals()):
            targets.append(other)
        lines = [f"value = {self.expression()}"]
        for name, suffixes in reversed(targets):
            value = "value"
            if operator != "=":
                value = f"binary({operator[0]!r}, {_read(name, suffixes)}, value, e)"
            lines.append(f"_store(e, {name!r}, {value}, {_place(suffixes)})")
        return lines

    def target(self) -> tuple[str, list[str]]:
        return self.name(), self.suffixes()

    def target_before_equals(self) -> tuple[str, list[str]] | None:
        start = self.at
        try:
            found = self.target()
            self.take("=")
        except UnknownSyntax:
            self.at = start
            return None
        return found

    def parts(self) -> list[str]:
        """`{ D1.u1, D0.u64 } = …`: the last is of the lowest bits."""
        places = []
        while self.take("{", ",", "}") != "}":
            name = self.name()
            self.take(".")
            places.append((name, self.take()))
        self.take("=")
        lines, low = [f"value = {self.expression()}"], 0
        for name, kind in reversed(places):
            width = int(kind[1:])
            bits = f"value.bits >> {low} & {(1 << width) - 1}"
            lines.append(f"e[{name!r}] = Number({kind[0]!r}, {width}, {bits})")
            low += width
        return lines

    # --- expressions ----------------------------------------------------------------------

    def expression(self) -> str:
        condition = self.level(0)
        if self.peek() != "?":
            return condition
        self.take()
        then = self.expression()
        self.take(":")
        return f"({then} if boolean({condition}) else {self.expression()})"

    def level(self, level: int) -> str:
        if level == len(_LEVELS):
            return self.prefixed()
        left = self.level(level + 1)
        while self.peek() in _LEVELS[level]:
            operator = self.take()
            right = self.level(level + 1)
            if operator in ("&&", "||"):
                word = "and" if operator == "&&" else "or"
                left = f"of_bool(boolean({left}) {word} boolean({right}))"
            else:
                left = f"binary({operator!r}, {left}, {right}, e)"
        return left

    def prefixed(self) -> str:
        if self.peek() in ("-", "+", "!", "~"):
            return f"unary({self.take()!r}, {self.prefixed()})"
        value = self.primary()
        return _selected(value, self.suffixes())

    def suffixes(self) -> list[str]:
        """Selections: a type such as `.f32`, and the bounds of bits or a number."""
        found = []
        while self.peek() in (".", "["):
            if self.take() == ".":
                kind = self.take()
                if not _TYPE.fullmatch(kind):
                    raise UnknownSyntax(f".{kind}")
                found.append(kind)
                continue
            high, low = self.expression(), "None"
            if self.take(":", "]") == ":":
                low = self.expression()
                self.take("]")
            found.append(f"[{high}, {low}]")
        return found

    def primary(self) -> str:
        token = self.take()
        if token == "(":
            inside = self.expression()
            self.take(")")
            return inside
        if token == "{":
            return f"_joined({self.arguments('}')})"
        if re.fullmatch(r"\d+'[FUIB]", token):
            is_pattern = self.peek(1).startswith("0x")
            return f"_cast({self.primary()}, {token[-1].lower()!r}, {token[:-2]}, {is_pattern})"
        if token[0].isdigit():
            name = f"literal_{len(self.literals)}"
            self.literals[name] = _literal(token)
            return name
        if not _NAME.fullmatch(token):
            raise UnknownSyntax(f"{token!r} in an expression")
        if self.peek() == "(":
            self.take()
            return self.call(token, self.arguments(")"))
        if token == "WAVE_MODE":
            self.take(".")
            return f"e['WAVE_MODE.{self.take()}']"
        return f"CONSTANTS[{token!r}]" if token in CONSTANTS else f"e.get({token!r}, ZERO)"

    def arguments(self, end: str) -> str:
        found = []
        while self.peek() != end:
            found.append(self.expression())
            if self.peek() == ",":
                self.take()
        self.take(end)
        return ", ".join(found)

    def call(self, name: str, arguments: str) -> str:
        if name in FUNCTIONS:
            return f"FUNCTIONS[{name!r}](e, {arguments})"
        if name.startswith("v_"):
            self.instructions.add(name)
            return f"instruction(e, {name!r}, {arguments})"
        return f"e[{name!r}](e, {arguments})"


def _selected(value: str, suffixes: Sequence[str]) -> str:
    """A type right before a selection of bits says nothing: `S0.u32[63 : 32]` is of all bits."""
    for suffix, after in zip(suffixes, [*suffixes, ""][1:], strict=True):
        if suffix.startswith("["):
            value = f"_sliced({value}, {suffix[1:-1]})"
        elif not after.startswith("["):
            value = f"_typed({value}, {suffix!r})"
    return value


def _read(name: str, suffixes: Sequence[str]) -> str:
    return _selected(f"e.get({name!r}, ZERO)", suffixes)


def _place(suffixes: Sequence[str]) -> str:
    """The last arguments of `_store`: the type, and the bounds."""
    kind = suffixes[-1] if suffixes and not suffixes[-1].startswith("[") else None
    bounds = next((each[1:-1] for each in suffixes if each.startswith("[")), "None, None")
    return f"{kind!r}, ({bounds})"


# What translated text calls.


def _store(
    environment: Environment,
    name: str,
    value: Number,
    kind: str | None,
    bounds: tuple[Number | None, Number | None],
) -> None:
    """Sets a variable, or of it the bits between two bounds, or one bit or element."""
    high, low = bounds
    if kind is not None:
        value = convert(value, kind[0], int(kind[1:]))
    old = environment.get(name, _ZERO)
    if high is None:
        if kind is None and name in ("D0", "VCC", "EXEC", "SCC"):
            value = Number("b", 64, bits_of(value.bits, 64))
        elif name == "D0" and value.width < 64:
            value = Number("b", 64, old.bits >> value.width << value.width | value.bits)
        environment[name] = value
        return
    first = high.integer
    if name == "in":  # the one array
        environment[name] = (old if isinstance(old, dict) else {}) | {first: value}
        return
    last = first if low is None else low.integer
    mask = (1 << (first - last + 1)) - 1 << last
    bits = old.bits & ~mask | value.bits << last & mask
    environment[name] = Number("b", max(64, old.width), bits)


def _typed(value: Any, kind: str) -> Any:
    letter, width = kind[0], int(kind[1:])
    if isinstance(value, Denormal) or (value.kind == letter and value.width == width):
        return value
    if value.kind == "f" and letter == "f" and value.width != width:
        return convert(value, "f", width)  # a constant such as INF
    bits = value.integer if letter == "i" and value.kind == "i" else value.bits
    return Number(letter, width, bits_of(bits, width))


def _sliced(value: Any, high: Number, low: Number | None) -> Any:
    first = high.integer
    if isinstance(value, dict):
        return value[first]
    if low is None:
        return Number("u", 1, value.bits >> first & 1)
    last = low.integer
    if last > first:  # [0 : 31] turns the bits around
        width = last - first + 1
        bits = bits_of(value.bits >> first, width)
        return Number("u", width, int(f"{bits:0{width}b}"[::-1], 2))
    width = first - last + 1
    return Number("u", width, bits_of(value.bits >> last, width))


def _joined(*values: Number) -> Number:
    width = bits = 0
    for value in values:
        bits, width = bits << value.width | value.bits, width + value.width
    return Number("u", width, bits)


def _cast(value: Number, kind: str, width: int, is_pattern: bool) -> Number:
    if is_pattern and kind == "f":
        return Number("f", width, bits_of(value.bits, width))
    return convert(value, kind, width)


def _literal(token: str) -> Number:
    if "'" in token:
        width_text, _, digits = token.partition("'")
        width = int(width_text)
        if "." in digits:
            return numbers.make_float(Fraction(digits), width)
        kind = "u" if digits.endswith("U") else "b"
        return Number(kind, width, bits_of(int(digits.rstrip("UL"), 0), width))
    if "." in token:
        return numbers.make_float(Fraction(token.rstrip("F")), 32 if token.endswith("F") else 64)
    digits = token.rstrip("UL")
    suffix, value = token[len(digits) :], int(digits, 0)
    kind, width = {"": ("i", 32), "U": ("u", 32), "LL": ("i", 64), "ULL": ("u", 64)}[suffix]
    return Number(kind, width, bits_of(value, width))
