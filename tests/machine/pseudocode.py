"""Evaluates the pseudocode of AMD's CDNA instructions, as tinygrad 0.14.0 carries it as text.

`Pseudocode(text)` parses; `run(variables)` evaluates for one lane. Variables are
`Number`s: S0, S1, S2, D0 as bits, VCC, SCC, EXEC, laneId and whatever the text asks for.
See `pseudocode_functions` for what the guides leave open.
"""

from __future__ import annotations

import re
from collections.abc import Callable
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

__all__ = ["Pseudocode", "UnknownSyntax"]

_TOKEN = re.compile(
    r"\s*(?://[^\n]*\n?\s*)*"
    r"(\d+'(?:0x[0-9a-fA-F]+|\d+\.\d+|\d+)(?:ULL|LL|U)?|\d+'[FUIB]\b"
    r"|0x[0-9a-fA-F]+(?:ULL|LL|U)?|\d+\.\d+F?|\d+(?:ULL|LL|U)?"
    r"|[A-Za-z_]\w*|<<|>>|<=|>=|==|!=|<>|&&|\|\||\*\*|\+=|-=|[-+*/&|^~!<>=?:;,.(){}\[\]])"
)
_TYPE = re.compile(r"[ufib]\d+|bf16")
_LEVELS = (
    ("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!=", "<>", SAME_ZERO),
    ("<", "<=", ">", ">="), ("<<", ">>"), ("+", "-"), ("*", "/"), ("**",),
)  # fmt: skip

Expression = Callable[[Environment], Any]
# A type such as `f32`, or the bounds of a selection of bits.
Part = str | tuple[Expression, Expression | None]


class UnknownSyntax(ValueError):
    """Text that the evaluator does not know."""


class _Break(Exception):
    pass


class _Return(Exception):
    pass


class Pseudocode:
    """The pseudocode of one instruction; `others` are those that it calls by name."""

    def __init__(self, text: str, others: dict[str, str] | None = None) -> None:
        self._others = others or {}
        self._tokens = self._split(text)
        self._at = 0
        self._body = self._statements(())
        if self._at != len(self._tokens):
            raise UnknownSyntax(f"at {self._tokens[self._at :][:5]}")

    def run(self, variables: Environment) -> Environment:
        """The variables after the instruction."""
        environment = dict(variables)
        for statement in self._body:
            statement(environment)
        return environment

    # --- reading -------------------------------------------------------------------------

    @staticmethod
    def _split(text: str) -> list[str]:
        text = re.sub(r"//[^\n]*", "", text)
        tokens, at = [], 0
        while at < len(text.rstrip()):
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

    def _peek(self, ahead: int = 0) -> str:
        place = self._at + ahead
        return self._tokens[place] if place < len(self._tokens) else ""

    def _take(self, wanted: str | None = None) -> str:
        token = self._peek()
        if wanted is not None and token != wanted:
            raise UnknownSyntax(f"{token!r} where {wanted!r} was expected")
        self._at += 1
        return token

    def _statements(self, ends: tuple[str, ...]) -> list[Expression]:
        found = []
        while self._at < len(self._tokens) and self._peek() not in ends:
            if self._peek() == ";":
                self._take()
            else:
                found.append(self._statement())
        return found

    def _statement(self) -> Expression:
        match self._peek():
            case "if":
                return self._if()
            case "for":
                return self._for()
            case "declare":
                while self._peek() not in (";", ""):
                    self._take()
                return lambda environment: None
            case "break":
                self._take()
                return _raise_break
            case "return":
                self._take()
                value = self._expression()
                return lambda environment: _raise_return(value(environment))
        if self._peek(1) == "=" and self._peek(2) == "lambda":
            return self._lambda()
        return self._assignment()

    def _if(self) -> Expression:
        branches: list[tuple[Expression, list[Expression]]] = []
        otherwise: list[Expression] = []
        while self._take() in ("if", "elsif"):
            condition = self._expression()
            self._take("then")
            branches.append((condition, self._statements(("elsif", "else", "endif"))))
        if self._tokens[self._at - 1] == "else":
            otherwise = self._statements(("endif",))
            self._take("endif")

        def run(environment: Environment) -> None:
            chosen = otherwise
            for condition, body in branches:
                if boolean(condition(environment)):
                    chosen = body
                    break
            for statement in chosen:
                statement(environment)

        return run

    def _for(self) -> Expression:
        self._take("for")
        name = self._take()
        self._take("in")
        first = self._expression()
        self._take(":")
        last = self._expression()
        self._take("do")
        body = self._statements(("endfor",))
        self._take("endfor")

        def run(environment: Environment) -> None:
            for count in range(first(environment).integer, last(environment).integer + 1):
                environment[name] = Number("i", 32, count)
                try:
                    for statement in body:
                        statement(environment)
                except _Break:
                    break

        return run

    def _lambda(self) -> Expression:
        name = self._take()
        self._take("=")
        self._take("lambda")
        self._take("(")
        parameters = []
        while (token := self._take()) != ")":
            if token != ",":
                parameters.append(token)
        self._take("(")
        start = self._at
        try:
            value: Expression | None = self._expression()
            if self._peek() != ")":
                raise UnknownSyntax("not an expression")
            body: list[Expression] = []
        except UnknownSyntax:
            self._at, value = start, None
            body = self._statements((")",))
        self._take(")")

        def call(arguments: list[Number], environment: Environment) -> Number:
            inner = environment | dict(zip(parameters, arguments, strict=True))
            if value is not None:
                return value(inner)
            try:
                for statement in body:
                    statement(inner)
            except _Return as returned:
                return returned.args[0]
            raise UnknownSyntax(f"{name} returns nothing")

        def define(environment: Environment) -> None:
            environment[name] = call

        return define

    def _assignment(self) -> Expression:
        targets = [self._target()]
        operator = self._take()
        if operator not in ("=", "+=", "-="):
            raise UnknownSyntax(f"{operator!r} in an assignment")
        while operator == "=" and self._is_target_before_equals():
            targets.append(self._target())
            self._take("=")
        value = self._expression()

        def run(environment: Environment) -> None:
            result = value(environment)
            for read, write in reversed(targets):
                new = result
                if operator != "=":
                    new = binary(operator[0], read(environment), result, environment)
                write(environment, new)

        return run

    def _is_target_before_equals(self) -> bool:
        start = self._at
        try:
            self._target()
            return self._peek() == "="
        except UnknownSyntax:
            return False
        finally:
            self._at = start

    def _target(self) -> tuple[Expression, Callable[[Environment, Number], None]]:
        """How a place is read and written."""
        if self._peek() == "{":
            return self._concatenated_target()
        name = self._take()
        if not re.fullmatch(r"[A-Za-z_]\w*", name):
            raise UnknownSyntax(f"{name!r} as a target")
        start = self._at
        while self._peek() in (".", "["):
            if self._take() == "[":
                self._expression()
                if self._peek() == ":":
                    self._take()
                    self._expression()
                self._take("]")
            else:
                self._take()
        end, self._at = self._at, start
        parts = self._suffixes(end)
        steps = _steps(parts)

        def read(environment: Environment) -> Number:
            value = environment.get(name, Number("b", 64, 0))
            for step in steps:
                value = step(environment, value)
            return value

        def write(environment: Environment, value: Number) -> None:
            environment[name] = _stored(environment, name, parts, value)

        return read, write

    def _concatenated_target(self) -> tuple[Expression, Callable[[Environment, Number], None]]:
        self._take("{")
        places = []
        while True:
            name = self._take()
            self._take(".")
            places.append((name, self._take()))
            if self._take() == "}":
                break

        def write(environment: Environment, value: Number) -> None:
            bits = value.bits
            for name, kind in reversed(places):
                width = int(kind[1:])
                environment[name] = Number(kind[0], width, bits_of(bits, width))
                bits >>= width

        return lambda environment: Number("b", 1, 0), write

    # --- places ---------------------------------------------------------------------------

    def _suffixes(self, end: int) -> list[Part]:
        """The selections after a name up to a token: `.f32`, `[3]`, `[7 : 0]`."""
        parts: list[Part] = []
        while self._at < end:
            if self._take() == ".":
                kind = self._take()
                if not _TYPE.fullmatch(kind):
                    raise UnknownSyntax(f".{kind}")
                parts.append(kind)
                continue
            high = self._expression()
            low = None
            if self._peek() == ":":
                self._take()
                low = self._expression()
            self._take("]")
            parts.append((high, low))
        return parts

    # --- expressions ------------------------------------------------------------------------

    def _expression(self) -> Expression:
        condition = self._level(0)
        if self._peek() != "?":
            return condition
        self._take()
        then = self._expression()
        self._take(":")
        otherwise = self._expression()
        return lambda environment: (
            then(environment) if boolean(condition(environment)) else otherwise(environment)
        )

    def _level(self, level: int) -> Expression:
        if level == len(_LEVELS):
            return self._prefixed()
        left = self._level(level + 1)
        while self._peek() in _LEVELS[level]:
            operator = self._take()
            left = self._operation(operator, left, self._level(level + 1))
        return left

    @staticmethod
    def _operation(operator: str, left: Expression, right: Expression) -> Expression:
        if operator == "&&":
            return lambda e: of_bool(boolean(left(e)) and boolean(right(e)))
        if operator == "||":
            return lambda e: of_bool(boolean(left(e)) or boolean(right(e)))
        return lambda e: binary(operator, left(e), right(e), e)

    def _prefixed(self) -> Expression:
        match self._peek():
            case "-" | "+" | "!" | "~":
                operator = self._take()
                operand = self._prefixed()
                return lambda e: unary(operator, operand(e))
        return self._postfix()

    def _postfix(self) -> Expression:
        value = self._primary()
        start = self._at
        while self._peek() in (".", "["):
            if self._take() == ".":
                self._take()
                continue
            depth = 1
            while depth:
                depth += {"[": 1, "]": -1}.get(self._take(), 0)
        end, self._at = self._at, start
        if start == end:
            return value
        steps = _steps(self._suffixes(end))

        def read(environment: Environment) -> Any:
            result = value(environment)
            for step in steps:
                result = step(environment, result)
            return result

        return read

    def _primary(self) -> Expression:
        token = self._take()
        if token == "(":
            inside = self._expression()
            self._take(")")
            return inside
        if token == "{":
            return self._concatenation()
        if re.fullmatch(r"\d+'[FUIB]", token):
            return self._cast(token)
        if token[0].isdigit():
            literal = _literal(token)
            return lambda environment: literal
        if not re.fullmatch(r"[A-Za-z_]\w*", token):
            raise UnknownSyntax(f"{token!r} in an expression")
        if self._peek() == "(":
            return self._call(token)
        if token == "WAVE_MODE":
            self._take(".")
            name = self._take()
            return lambda environment: environment[f"WAVE_MODE.{name}"]
        if token in CONSTANTS:
            return lambda environment: CONSTANTS[token]
        return lambda environment: environment.get(token, Number("b", 64, 0))

    def _concatenation(self) -> Expression:
        parts = [self._expression()]
        while self._take() == ",":
            parts.append(self._expression())

        def join(environment: Environment) -> Number:
            width = bits = 0
            for part in parts:
                value = part(environment)
                bits, width = bits << value.width | value.bits, width + value.width
            return Number("u", width, bits)

        return join

    def _cast(self, token: str) -> Expression:
        width, kind = int(token[:-2]), token[-1].lower()
        is_pattern = self._peek(1).startswith("0x")
        inside = self._primary()

        def cast(environment: Environment) -> Number:
            value = inside(environment)
            if is_pattern and kind == "f":
                return Number("f", width, bits_of(value.bits, width))
            return convert(value, kind, width)

        return cast

    def _call(self, name: str) -> Expression:
        self._take("(")
        arguments = []
        while self._peek() != ")":
            arguments.append(self._expression())
            if self._peek() == ",":
                self._take()
        self._take(")")
        if name in FUNCTIONS:
            function = FUNCTIONS[name]
            return lambda e: function(e, *(a(e) for a in arguments))
        if name.startswith("v_"):
            return self._instruction_call(name, arguments)
        return lambda e: e[name]([a(e) for a in arguments], e)

    def _instruction_call(self, name: str, arguments: list[Expression]) -> Expression:
        if name not in self._others:
            raise UnknownSyntax(f"{name} is not known")
        inner = Pseudocode(self._others[name], self._others)

        def call(environment: Environment) -> Number:
            given = {f"S{i}": a(environment) for i, a in enumerate(arguments)}
            first = given["S0"]
            modes = {n: v for n, v in environment.items() if n.startswith("WAVE_MODE")}
            result = inner.run(given | modes)["D0"]
            return Number(first.kind, first.width, bits_of(result.bits, first.width))

        return call


def _raise_break(_environment: Environment) -> None:
    raise _Break


def _raise_return(value: Number) -> None:
    raise _Return(value)


def _steps(parts: list[Part]) -> list[Callable[[Environment, Any], Any]]:
    """A type right before a selection of bits says nothing: `S0.u32[63 : 32]` is of all bits."""
    return [
        _typed(part) if isinstance(part, str) else _sliced(*part)
        for part, after in zip(parts, [*parts, ""][1:], strict=True)
        if not (isinstance(part, str) and isinstance(after, tuple))
    ]


def _stored(environment: Environment, name: str, parts: list[Part], value: Number) -> Any:
    """The new contents of a variable of which `parts` are set to a value."""
    cut = next((part for part in parts if isinstance(part, tuple)), None)
    if parts and isinstance(parts[-1], str):
        value = convert(value, parts[-1][0], int(parts[-1][1:]))
    old = environment.get(name, Number("b", 64, 0))
    if cut is None:
        if not parts and name in ("D0", "VCC", "EXEC", "SCC"):
            return Number("b", 64, bits_of(value.bits, 64))
        if name == "D0" and value.width < 64:
            return Number("b", 64, old.bits >> value.width << value.width | value.bits)
        return value
    high = cut[0](environment).integer
    if name == "in":  # the one array
        return (old if isinstance(old, dict) else {}) | {high: value}
    low = high if cut[1] is None else cut[1](environment).integer
    mask = (1 << (high - low + 1)) - 1 << low
    return Number("b", max(64, old.width), old.bits & ~mask | value.bits << low & mask)


def _typed(kind: str) -> Callable[[Environment, Any], Any]:
    letter, width = kind[0], int(kind[1:])

    def read(_environment: Environment, value: Any) -> Any:
        if isinstance(value, Denormal):
            return value
        if value.kind == "f" and letter == "f" and value.width != width:
            return convert(value, "f", width)  # a constant such as INF
        bits = value.bits
        if letter == "i" and value.kind == "i":
            bits = value.integer
        return Number(letter, width, bits_of(bits, width))

    return read


def _sliced(high: Expression, low: Expression | None) -> Callable[[Environment, Any], Any]:
    def read(environment: Environment, value: Any) -> Any:
        first = high(environment)
        if isinstance(value, dict):
            return value[first.integer]
        if low is None:
            return Number("u", 1, value.bits >> first.integer & 1)
        last = low(environment).integer
        if last > first.integer:  # [0 : 31] turns the bits around
            width = last - first.integer + 1
            bits = bits_of(value.bits >> first.integer, width)
            return Number("u", width, int(f"{bits:0{width}b}"[::-1], 2))
        width = first.integer - last + 1
        return Number("u", width, bits_of(value.bits >> last, width))

    return read


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
