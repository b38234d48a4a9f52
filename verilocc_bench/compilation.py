"""Compilation of a room's inner loops by numba: once for all processes, and as one piece.

Numba compiles each function by itself, with the code of all that it calls in it: what is
called five floors down is optimized five times and more. Here only a function that Python
calls is compiled. Those that it calls are parts of it: they are translated, and optimized
where they are used.

Compiled code is kept beside the room, or in numba's cache folder where that cannot be
written. It expires as soon as any file of the room changes. (Numba by itself looks at
the function's own file alone.) One process at a time compiles; the others wait, and take
what it kept.
"""

from __future__ import annotations

import fcntl
import gc
import hashlib
import sys
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import IO, Any, TypeVar, cast

import numba
from numba.core import sigutils, types
from numba.core.caching import IndexDataCacheFile
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder, Flags, compile_extra
from numba.core.compiler_lock import global_compiler_lock
from numba.core.typed_passes import NopythonRewrites
from numba.core.untyped_passes import InlineClosureLikes

Function = TypeVar("Function", bound=Callable[..., object])

_HERE = Path(__file__)
_IDLE_PASSES = (InlineClosureLikes, NopythonRewrites)


class Compilation:
    """The compiled functions of a room.

    `what` says in a user's words what is compiled. `interpreted` names the room's files
    that hold neither compiled code nor the numbers in it. `options` are numba's.
    """

    def __init__(
        self, room: Path, what: str, interpreted: Collection[str] = (), **options: Any
    ) -> None:
        self._what, self._options = what, options
        sources = [path for path in sorted(room.glob("*.py")) if path.stem not in interpreted]
        digest = hashlib.sha256(b"\0".join(path.read_bytes() for path in (*sources, _HERE)))
        self._stamp = digest.hexdigest()[:12]

    def compiled(self, function: Function) -> Function:
        """The function compiled to machine code, at Python's first call for each set of types.

        A number written at a call is an int64 like any other: numba would compile the
        function, and all that it calls, once for each of them.
        """
        dispatcher: Any = numba.njit(
            cache=True, no_cfunc_wrapper=True, pipeline_class=_Pipeline, **self._options
        )(function)
        typed_call, plain = dispatcher.get_call_template, types.unliteral  # type: ignore[attr-defined]
        dispatcher.get_call_template = lambda arguments, keywords: typed_call(
            tuple(map(plain, arguments)), {name: plain(each) for name, each in keywords.items()}
        )
        kept = dispatcher._cache._impl
        folder = kept.locator.get_cache_path()
        dispatcher._cache._cache_file = IndexDataCacheFile(
            folder, f"{kept.filename_base}-{self._stamp}", self._stamp
        )
        turn, whole, core = _turn(folder), dispatcher.compile, dispatcher._compiler._compile_core

        def compile_in_turn(signature: object) -> object:
            with turn:
                if turn.depth > 1:
                    return _part(dispatcher, signature)
                arguments = tuple(sigutils.normalize_signature(signature)[0])
                if isinstance(getattr(dispatcher.overloads.get(arguments), "library", 0), _Part):
                    del dispatcher.overloads[arguments]
                with global_compiler_lock, _without_collection(), _types_remembered():
                    return whole(signature)

        def compile_and_say(arguments: object, result: object) -> object:
            if sys.stderr is not None and sys.stderr.isatty():
                print(f"compiling {self._what}, the first time only", file=sys.stderr)
            return core(arguments, result)

        dispatcher.compile = compile_in_turn
        dispatcher._compiler._compile_core = compile_and_say
        return cast("Function", dispatcher)


@contextmanager
def _without_collection() -> Iterator[None]:
    """Numba makes millions of objects that stay: looking for garbage among them takes seconds."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextmanager
def _types_remembered() -> Iterator[None]:
    """Numba looks for the type of a function's result among dozens of rules, each time anew.

    Whoever asks for this has numba's lock.
    """
    known: dict[tuple[object, ...], object] = {}
    function: Any = types.Function
    ask = function.get_call_type

    def get_call_type(self: Any, context: object, arguments: Any, keywords: Any) -> object:
        if keywords:
            return ask(self, context, arguments, keywords)
        key = self, *arguments
        if key not in known:
            known[key] = ask(self, context, arguments, keywords)
        return known[key]

    function.get_call_type = get_call_type
    try:
        yield
    finally:
        function.get_call_type = ask


class _Pipeline(CompilerBase):  # type: ignore[misc]
    """Numba's passes but for two: here no function has closures or sums of whole arrays."""

    def __init__(self, typing: Any, target: Any, library: Any, *rest: Any) -> None:
        if library is None:
            library = _Whole(target.codegen(), "compiled")
            library.enable_object_caching()
        super().__init__(typing, target, library, *rest)

    def define_pipelines(self) -> list[Any]:
        """The one way to compile."""
        manager = DefaultPassBuilder.define_nopython_pipeline(self.state)
        manager.passes = [each for each in manager.passes if each[0] not in _IDLE_PASSES]
        return [manager]


class _Part(JITCodeLibrary):  # type: ignore[misc]
    """Code that is there to be linked into other code: it is neither optimized nor loaded."""

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def finalize(self) -> None:
        """Leaves to those that link the part what it calls."""
        self._finalized = True


class _Whole(JITCodeLibrary):  # type: ignore[misc]
    """Code that Python calls, with each of its parts once."""

    def finalize(self) -> None:
        """Links all parts, optimizes and loads."""
        libraries = list(dict.fromkeys(self._linking_libraries))
        for part in libraries:  # those that a part brings come behind it
            if isinstance(part, _Part):
                brought = dict.fromkeys(part._linking_libraries)
                libraries += [each for each in brought if each not in libraries]
        self._linking_libraries: list[Any] = libraries
        super().finalize()

    def _optimize_final_module(self) -> None:
        # Numba optimizes twice, for counted references that are not here.
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)


def _part(dispatcher: Any, signature: object) -> object:
    """The key under which numba finds the function for a caller; Python cannot call it."""
    arguments, result = sigutils.normalize_signature(signature)
    known = dispatcher.overloads.get(tuple(arguments))
    if known is None:
        compiler, context = dispatcher._compiler, dispatcher.targetctx
        flags = Flags()
        compiler.targetdescr.options.parse_as_flags(flags, compiler.targetoptions)
        flags = compiler._customize_flags(flags)
        flags.no_compile = flags.no_cpython_wrapper = True
        known = compile_extra(
            dispatcher.typingctx,
            context,
            dispatcher.py_func,
            arguments,
            result,
            flags,
            dispatcher.locals,
            library=_Part(context.codegen(), dispatcher.py_func.__qualname__),
            pipeline_class=compiler.pipeline_class,
        )._replace(entry_point=object())
        context.insert_user_function(known.entry_point, known.fndesc, [known.library])
        dispatcher.overloads[tuple(arguments)] = known
    return known.entry_point


class _Turn:
    """The right to compile, of one thread of one process; within it, it can be asked for again.

    Where the file cannot be written, every process has it at once.
    """

    def __init__(self, path: Path) -> None:
        self.depth = 0
        self._path = path
        self._threads = threading.RLock()
        self._file: IO[bytes] | None = None

    def __enter__(self) -> None:
        self._threads.acquire()
        self.depth += 1
        try:
            if self.depth == 1:
                self._lock_file()
        except BaseException:  # the wait was interrupted
            self.__exit__()
            raise

    def _lock_file(self) -> None:
        try:
            self._file = self._path.open("ab")
            fcntl.flock(self._file, fcntl.LOCK_EX)
        except OSError:
            return

    def __exit__(self, *_: object) -> None:
        self.depth -= 1
        if self.depth == 0 and self._file is not None:
            self._file.close()
            self._file = None
        self._threads.release()


@cache
def _turn(folder: str) -> _Turn:
    return _Turn(Path(folder) / "compiling.lock")
