"""Programs that lie, hang, crash and flood: each is a counted failure and nothing more."""

from __future__ import annotations

import json
import os
import random
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from verilocc_bench.allocators import FailureKind, Feedback, Request, Response
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.cli import main
from verilocc_bench.dataset import load_rows
from verilocc_bench.edits import Answer, parse_edits
from verilocc_bench.edits.findings import Finding, FindingKind
from verilocc_bench.errors import AllocationFailed, InputError
from verilocc_bench.evaluation.models.command import CommandAllocator, command_allocator
from verilocc_bench.settings.program import ProgramSettings
from verilocc_bench.verification import Verifier

HEAD = """\
import json, os, resource, signal, sys, time
def requests():
    for line in sys.stdin:
        yield json.loads(line)
def say(*lines):
    for line in lines:
        sys.stdout.write((line if isinstance(line, str) else json.dumps(line)) + "\\n")
    sys.stdout.flush()
def answer(request, **more):
    return {"id": request["id"], "assignment": {"%0": "s16"}} | more
def number(request):
    return answer(request, assignment={"%0": str(request["sample"])})
"""
GOOD = "for r in requests(): say(answer(r))"
LONG_SECONDS = 300.0
SHORT_SECONDS = 1.5

Make = Callable[..., CommandAllocator]
Respond = Callable[..., list[Response]]
ANSWER = Answer({"%0": "s16"})


@pytest.fixture(scope="module")
def problem() -> AllocationProblem:
    row = next(row for row in load_rows("mini").rows if row.arch == "gfx942")
    return AllocationProblem.from_text(row.normalized)


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Makes allocators of Python programs; afterwards no process of theirs is left."""
    marker = f"VERILOCC_TEST_{random.getrandbits(64):x}"
    made: list[CommandAllocator] = []

    def make(
        body: str,
        *,
        seconds: float = LONG_SECONDS,
        memory_limit_mib: int | None = None,
        processes: int = 1,
    ) -> CommandAllocator:
        path = tmp_path / f"program{len(made)}.py"
        path.write_text(HEAD + body + "\n")
        argv = [sys.executable, "-S", str(path), marker]
        allocator = CommandAllocator(
            "command:x",
            argv,
            ProgramSettings(time_limit_seconds=seconds, memory_limit_mib=memory_limit_mib),
            processes=processes,
        )
        made.append(allocator)
        return allocator

    yield make
    for allocator in made:
        allocator.close()
    assert not _processes_with(marker)


def _processes_with(marker: str) -> list[str]:
    """The command lines of running processes that name the marker; waits for those that die."""
    for _ in range(100):
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            try:
                state = (path / "stat").read_text().rpartition(")")[2].split()[0]
                line = (path / "cmdline").read_bytes()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if state != "Z" and marker.encode() in line:
                found.append(line.decode(errors="replace"))
        if not found:
            break
        time.sleep(0.1)
    return found


def ask(allocator: CommandAllocator, *requests: Request) -> list[Response]:
    found = dict(allocator.respond(requests))
    assert sorted(found) == list(range(len(requests)))
    return [found[place] for place in range(len(requests))]


@pytest.fixture
def respond(make: Make, problem: AllocationProblem) -> Respond:
    """What a program responds to as many samples of one problem."""

    def respond(body: str, count: int = 1, **limits: Any) -> list[Response]:
        return ask(make(body, **limits), *(Request(problem, n) for n in range(count)))

    return respond


def test_a_good_program_is_asked_line_by_line(make: Make, problem: AllocationProblem) -> None:
    allocator = make("for r in requests(): say(answer(r, assignment={'%0': f'{r[\"seed\"]}'}))")
    assert allocator.group_size == 64
    requests = [Request(problem, sample, seed) for sample, seed in enumerate((0, 2**64 - 1, 4096))]
    responses = ask(allocator, *requests)
    assert [response.answer for response in responses] == [
        Answer({"%0": "0"}),
        Answer({"%0": str(2**53 - 1)}),
        Answer({"%0": "2"}),
    ]
    assert all(response.failure is None for response in responses)
    assert allocator.allocate(requests[2]) == Answer({"%0": "2"})
    assert ask(allocator) == []


def test_a_program_sees_the_whole_request(
    make: Make, respond: Respond, problem: AllocationProblem
) -> None:
    body = "for r in requests(): say({'id': r['id'], 'failure': 'no_answer',"
    allocator = make(body + "'message': json.dumps({k: r[k] for k in r if k != 'normalized'})})")
    finding = Finding(FindingKind.OVERLAP, "both", 0, 3, ("%0", "%1"), "s3")
    feedback = (
        Feedback(Answer({"%0": "s3"}), (finding,)),
        Feedback(None, (), FailureKind.TIMEOUT, "slow"),
    )
    (response,) = ask(allocator, Request(problem, 7, 3 << 11, feedback=feedback))
    assert response.failure is FailureKind.NO_ANSWER
    assert json.loads(response.message or "") == {
        "id": problem.id,
        "target": "gfx942",
        "sample": 7,
        "seed": 3,
        "attempt": 2,
        "feedback": [
            {
                "assignment": {"%0": "s3"},
                "failure": None,
                "message": None,
                "findings": [finding.to_json()],
            },
            {"assignment": None, "failure": "timeout", "message": "slow", "findings": []},
        ],
    }
    (failed,) = respond("for r in requests(): say({'id': r['id'], 'failure': 'no_answer'})")
    assert (failed.failure, failed.message) == (FailureKind.NO_ANSWER, "the program has none")


def test_answers_may_have_edits(make: Make, problem: AllocationProblem) -> None:
    edits = parse_edits(
        {"new": {"%900": "V 1 v"}, "insert": [{"at": [0, 1], "spill": ["slot0", "%1"]}]}
    )
    expected = Answer({"%0": "s0", "%900": "v3"}, edits)
    # The program hands back what it was told of the attempt before.
    body = "for r in requests(): f = r['feedback'][0]; say(answer(r, assignment=f['assignment'],"
    allocator = make(body + " edits=f['edits']))")
    (response,) = ask(allocator, Request(problem, feedback=(Feedback(expected),)))
    assert response.answer == expected


WRONG_LINES = {
    '{"id": "0123456789abcdef", "assignment": {}}': "answered to '0123456789abcdef'",
    '{"assignment": {}}': "no 'id'",
    '{"failure": "no_answer"}': "no 'id'",
    '{"id": 5, "assignment": {}}': "string as 'id'",
    '{"id": "ID", "assignment": ["s0"]}': "object as 'assignment'",
    '{"id": "ID", "assignment": {"%0": 3}}': "name of a register for '%0'",
    '{"id": "ID", "assignment": {"%0": "s0", "%0": "s1"}}': "'%0' stands twice",
    '{"id": "ID", "assignment": {}, "note": 1}': "unknown key 'note'",
    '{"id": "ID", "assignment": {}, "edits": 3}': "object as 'edits'",
    '{"id": "ID", "failure": "valid"}': "where there is no answer",
    '{"id": "ID", "failure": "no_answer", "message": 3}': "string as 'message'",
    '{"id": "ID", "failure": ["no_answer"]}': "where there is no answer",
    '{"id": "ID", "assignment": {"%0": "\\ud800"}}': "surrogate",
    '{"id": "ID", "assignment": {"%0": NaN}}': "NaN",
    '{"id": "ID", "assignment": {}} {}': "Extra data",
    "[" * 100_000: "nested too deeply",
    "1" * 10_000: "integer",
    "[]": "expected an answer",
    "sorry, I cannot do that": "expected JSON",
    "": "blank line",
}


def test_lines_that_are_no_answer(respond: Respond, problem: AllocationProblem) -> None:
    lines = [line.replace("ID", problem.id) for line in WRONG_LINES]
    body = f"lines = {lines!r}\nfor r in requests(): say(lines[r['sample']])"
    for response, reason in zip(respond(body, len(lines)), WRONG_LINES.values(), strict=True):
        assert response.failure is FailureKind.UNPARSABLE, reason
        assert reason in (response.message or "")
        assert response.answer is None


# Programs that answer with the sample's number, whatever else they do.
ANSWERING = {
    "does not wait for the end of the line": "text = b''\n"
    "while data := os.read(0, 1000):\n"
    " text = (text + data).lstrip()\n"
    " try: r = json.loads(text)\n"
    " except ValueError: continue\n"
    " text = b''; say(number(r))",
    "ends after one request": "r = next(requests()); say(number(r))",
    "one line over": "for r in requests():\n"
    " say(number(r), answer(r, assignment={'%0': 'left over'}))",
    "lines without end": "for r in requests():\n while True: say(number(r))",
}


@pytest.mark.parametrize("body", ANSWERING.values(), ids=ANSWERING)
def test_each_request_has_its_own_answer(
    body: str, respond: Respond, capsys: pytest.CaptureFixture[str]
) -> None:
    assert [r.answer for r in respond(body, 4)] == [Answer({"%0": str(n)}) for n in range(4)]
    told = capsys.readouterr().err.count("more than one line for a request")
    assert told == ("left over" in body or "while True: say" in body)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("say('Loading …')\n" + GOOD, "something was written before the request was read"),
        (
            "say({'id': 'ID', 'assignment': {}})",
            "something was written before the request was read",
        ),
        (r"for r in requests(): os.write(1, b'\xff\xfe{}\n')", "UTF-8"),
    ],
)
def test_what_is_written_is_no_answer(
    body: str, message: str, respond: Respond, problem: AllocationProblem
) -> None:
    (response,) = respond(body.replace("ID", problem.id))
    assert response.failure is FailureKind.UNPARSABLE
    assert message in (response.message or "")


def test_extra_and_missing_registers_are_for_the_verifier(
    respond: Respond, problem: AllocationProblem
) -> None:
    (response,) = respond("for r in requests(): say(answer(r, assignment={'%99999': 's0'}))")
    assert response.answer == Answer({"%99999": "s0"})
    kinds = {finding.kind for finding in Verifier(problem).verify(response.answer).findings}
    assert kinds == {FindingKind.MISSING, FindingKind.UNKNOWN_VIRTUAL_REGISTER}


@pytest.mark.parametrize(
    "flood",
    [
        "for n in range(1024): os.write(1, b'x' * (1 << 20))",
        "while True: os.write(1, b'[[[[' * 1000)",
    ],
    ids=["a gigabyte on one line", "a line without end"],
)
def test_a_line_too_long(flood: str, respond: Respond) -> None:
    """The next request is answered by a program started afresh."""
    body = f"for r in requests():\n if r['sample']: say(answer(r)); continue\n {flood}"
    first, second = respond(body, 2)
    assert first.failure is FailureKind.UNPARSABLE
    assert first.message == "a line of more than 32 MiB"
    assert second.answer == ANSWER


HANGS = {
    "reads and hangs": "r = next(requests()); time.sleep(1000)",
    "does not read": "time.sleep(1000)",
    "ignores SIGTERM": "for s in (1, 2, 3, 15): signal.signal(s, signal.SIG_IGN)\n"
    "while True: time.sleep(1000)",
    "never ends its line": "r = next(requests()); os.write(1, b'{'); time.sleep(1000)",
    "writes errors without end": "while True: os.write(2, b'error\\n' * 1000)",
    "a grandchild holds the pipes": "import subprocess\n"
    "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(1000)', sys.argv[1]])\n"
    "time.sleep(1000)",
}


@pytest.mark.slow
@pytest.mark.parametrize("hang", HANGS)
def test_no_answer_in_time(hang: str, respond: Respond) -> None:
    (response,) = respond(HANGS[hang], seconds=SHORT_SECONDS)
    assert (response.failure, response.message) == (FailureKind.TIMEOUT, "no answer in 1.5 s")


def test_a_request_larger_than_the_pipe_does_not_block(make: Make) -> None:
    row = max(load_rows("mini").rows, key=lambda row: len(row.normalized))
    problem = AllocationProblem.from_text(row.normalized)
    message = "x" * (4 << 20)
    request = Request(problem, feedback=(Feedback(None, message=message),))
    (unread,) = ask(make("time.sleep(1000)", seconds=SHORT_SECONDS), request)
    assert unread.failure is FailureKind.TIMEOUT
    # It writes much before it reads: both pipes are full at once, and neither side may wait.
    body = "os.write(2, b'e' * (1 << 20))\n" + GOOD
    (read,) = ask(make(body), request)
    assert read.answer == ANSWER
    (closed,) = ask(make("os.close(0); sys.exit(4)"), request)
    assert (closed.failure, closed.message) == (
        FailureKind.CRASHED,
        "exit status 4, without an answer",
    )


CRASHES = {
    "status": ("r = next(requests()); sys.exit(3)", "exit status 3, without an answer"),
    "status 0": ("r = next(requests()); sys.exit(0)", "exit status 0, without an answer"),
    "at once": ("sys.exit('no licence')", "exit status 1, without an answer: no licence"),
    "signal": (
        "r = next(requests()); os.kill(os.getpid(), signal.SIGSEGV)",
        "killed by SIGSEGV, without an answer",
    ),
    "partial line": (
        "r = next(requests()); os.write(1, b'{\"id\"'); sys.exit(0)",
        "exit status 0, within a line",
    ),
    "last words": (
        "print('\\n'.join(['first'] * 9999), file=sys.stderr)\n"
        "print('\\x1b[2Jlast \\u2713', '\\n\\n', file=sys.stderr); sys.exit(9)",
        "exit status 9, without an answer: [2Jlast \u2713",
    ),
    "closes its output": (
        "r = next(requests()); os.close(1); time.sleep(1000)",
        "it closed its standard output, without an answer",
    ),
    "a grandchild holds the pipes": (
        "import subprocess\n"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(1000)', sys.argv[1]])\n"
        "os._exit(5)",
        "exit status 5, without an answer",
    ),
}


@pytest.mark.parametrize("crash", CRASHES)
def test_a_program_that_ends(crash: str, respond: Respond) -> None:
    body, message = CRASHES[crash]
    for response in respond(body, 2):  # the second shows that it is started again
        assert response.failure is FailureKind.CRASHED
        assert " ".join((response.message or "").split()) == message


def test_a_program_that_cannot_be_run(tmp_path: Path, problem: AllocationProblem) -> None:
    path = tmp_path / "program"
    path.write_text("#!/nowhere/interpreter\n")
    path.chmod(0o755)
    allocator = command_allocator(str(path), ProgramSettings(), 1)
    for response in ask(allocator, *(Request(problem, sample) for sample in range(4))):
        assert response.failure is FailureKind.CRASHED
        assert "exit status 127" in (response.message or "")
        assert "No such file" in (response.message or "")
    allocator.close()


def test_memory_has_a_limit(respond: Respond) -> None:
    body = "for r in requests():\n if not r['sample']: x = bytearray(1 << 30)\n say(answer(r))"
    first, second = respond(body, 2, memory_limit_mib=512)
    assert first.failure is FailureKind.CRASHED
    assert first.message == "exit status 1, without an answer: MemoryError"
    assert second.answer == ANSWER
    soft = "resource.getrlimit(resource.RLIMIT_AS)[0]"
    body = f"for r in requests(): say(answer(r, assignment={{'%0': str({soft})}}))"
    (limited,) = respond(body, memory_limit_mib=512)
    assert limited.answer == Answer({"%0": str(512 << 20)})


# Some requests are answered, some are not: by what is asked, never by who was asked what before.
MIXED = """\
for r in requests():
    kind = r['seed'] % 6
    if kind == 0: sys.exit(3)
    if kind == 1: say('junk'); continue
    if kind == 2: say({'id': r['id'], 'failure': 'no_answer', 'message': 'none'}); continue
    if kind == 3: say(answer(r), answer(r, assignment={'%0': 'left over'})); continue
    say(answer(r, assignment={'%0': str(r['seed'])}))
"""


@pytest.mark.slow
def test_the_number_of_processes_changes_nothing(make: Make, problem: AllocationProblem) -> None:
    requests = [Request(problem, sample, sample << 11) for sample in range(8)]
    found = []
    for processes in (1, 3):
        allocator = make(MIXED, processes=processes)
        assert allocator.group_size == 64 * processes
        responses = ask(allocator, *requests)
        found.append([(r.answer, r.failure, r.message) for r in responses])
        again = ask(allocator, *requests[::-1])[::-1]
        assert [(r.answer, r.failure, r.message) for r in again] == found[-1]
    assert found[0] == found[1]
    kinds = {failure for _, failure, _ in found[0]}
    assert kinds == {None, FailureKind.CRASHED, FailureKind.UNPARSABLE, FailureKind.NO_ANSWER}


def test_processes_work_at_the_same_time(respond: Respond) -> None:
    # Each waits until there are three: with fewer at work nobody would ever answer.
    body = (
        "import pathlib\nhere = pathlib.Path(__file__).parent\n"
        "for r in requests():\n"
        " (here / f'here{r[\"sample\"]}').touch()\n"
        " while len(list(here.glob('here*'))) < 3: time.sleep(0.01)\n"
        " say(answer(r))"
    )
    assert [response.failure for response in respond(body, 3, processes=3)] == [None] * 3


def test_leaving_early_kills_and_the_allocator_can_be_asked_again(
    make: Make, problem: AllocationProblem
) -> None:
    body = "for r in requests():\n if r['sample']: time.sleep(1000)\n say(answer(r))"
    allocator = make(body, processes=2)
    requests = [Request(problem, sample) for sample in range(6)]
    responses = allocator.respond(requests)
    assert next(responses)[0] == 0
    responses.close()  # type: ignore[attr-defined]
    assert ask(allocator, Request(problem))[0].answer == ANSWER
    responses = allocator.respond(requests)
    assert next(responses)[0] == 0
    allocator.close()  # gives up what is being asked
    assert {response.failure for _, response in responses} == {FailureKind.INFRASTRUCTURE}
    allocator.close()
    assert ask(allocator, Request(problem))[0].answer == ANSWER


HARNESS = """\
import signal
import sys
# Whoever runs the tests in the background may have had SIGINT ignored: that is inherited.
signal.signal(signal.SIGINT, signal.default_int_handler)
from verilocc_bench.allocators import Request
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.dataset import load_rows
from verilocc_bench.evaluation.models.command import CommandAllocator
from verilocc_bench.settings.program import ProgramSettings
allocator = CommandAllocator("x", sys.argv[1:], ProgramSettings(), processes=2)
problem = AllocationProblem.from_text(load_rows("mini").rows[0].normalized)
for place, response in allocator.respond([Request(problem, sample) for sample in range(2)]):
    print("answered", flush=True)
    if sys.argv[-1] == "end":
        break
"""


@pytest.mark.slow
@pytest.mark.parametrize("end", ["end", "SIGINT", "SIGKILL"])
def test_programs_do_not_outlive_us(end: str, tmp_path: Path) -> None:
    marker = f"VERILOCC_TEST_{random.getrandbits(64):x}"
    program = tmp_path / "program.py"
    program.write_text(
        HEAD + "r = next(requests())\n"
        "if r['sample']: time.sleep(1000)\n"
        "say(answer(r)); signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(1000)\n"
    )
    command = [sys.executable, "-c", HARNESS, sys.executable, str(program), marker, end]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as harness:
        assert harness.stdout is not None
        assert harness.stdout.readline() == "answered\n"
        if end != "end":
            harness.send_signal(signal.Signals[end])
        _, errors = harness.communicate(timeout=60)
    if end == "SIGINT":
        assert errors.count("Traceback") == 1
        assert errors.rstrip().endswith("KeyboardInterrupt")
    assert not _processes_with(marker)


@pytest.mark.parametrize(
    ("rest", "reason"),
    [
        ("", "a program is missing"),
        ("  ", "a program is missing"),
        ("'unbalanced", "No closing quotation"),
        ("/nowhere/program --flag", "no program '/nowhere/program'"),
        ("surely-no-such-program", "no program 'surely-no-such-program'"),
        ("/", "no program '/'"),
        ("a\0b", "no program"),
    ],
)
def test_a_command_must_name_a_program(rest: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        command_allocator(rest, ProgramSettings(), 1)


def test_limits_must_be_some() -> None:
    nan = float("nan")
    for name, value in (("time", 0), ("time", nan), ("memory", 0)):
        unit = {"time": "time_limit_seconds", "memory": "memory_limit_mib"}[name]
        with pytest.raises(InputError, match=f"expected a {name} limit above 0"):
            command_allocator(sys.executable, ProgramSettings(**{unit: value}), 1)


def test_options_and_words_are_handed_on(tmp_path: Path, problem: AllocationProblem) -> None:
    path = tmp_path / "with space.py"
    path.write_text(HEAD + "for r in requests(): say(answer(r, assignment={'%0': sys.argv[1]}))")
    rest = f"{shlex.quote(sys.executable)} {shlex.quote(str(path))} '$HOME; *'"
    allocator = command_allocator(rest, ProgramSettings(time_limit_seconds=50.0), 3)
    assert allocator.name == f"command:{rest}"
    assert (allocator.processes, allocator.settings.time_limit_seconds) == (3, 50.0)
    assert allocator.allocate(Request(problem)) == Answer(
        {"%0": "$HOME; *"}
    )  # no shell has seen it
    allocator.close()


def test_the_revision_follows_the_files(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text("1")
    rest = f"{sys.executable} {path} --seed 1"

    def revision(rest: str) -> str:
        return command_allocator(rest, ProgramSettings(), 1).revision

    first = revision(rest)
    assert revision(rest) == first
    assert revision(rest.replace("--seed 1", "--seed 2")) != first
    path.write_text("2")
    assert revision(rest) != first
    path.write_text("1")
    assert revision(rest) == first
    local = tmp_path / "found-by-path"
    local.write_text("#!/bin/sh\n")
    local.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        before = revision("found-by-path")
        local.write_text("#!/bin/sh\n#\n")
        assert revision("found-by-path") != before


def test_allocate_says_why_there_is_none(make: Make, problem: AllocationProblem) -> None:
    with pytest.raises(AllocationFailed, match="crashed: exit status 3"):
        make("sys.exit(3)").allocate(Request(problem))


def test_a_right_answer_arrives_whole(make: Make) -> None:
    row = max(load_rows("mini").rows, key=lambda row: row.n_virtual_registers)
    problem = AllocationProblem.from_text(row.normalized)
    assert row.label is not None
    body = f"for r in requests(): say(answer(r, assignment={dict(row.label)}))"
    (response,) = ask(make(body), Request(problem))
    assert response.answer == Answer(row.label)
    assert Verifier(problem).verify(response.answer).valid


def evaluate(program: Path, folder: Path, *options: str) -> list[dict[str, Any]]:
    """The samples of one kernel, of a program, through the command line."""
    command = f"command:{shlex.quote(sys.executable)} -S {shlex.quote(str(program))}"
    arguments = ["evaluate", "--model", command, "--arch", "gfx942", "--family", "gemm"]
    arguments += ["--limit", "1", "--output-path", str(folder), *options]
    assert main(arguments) == 0
    return [json.loads(line) for line in (folder / "samples.jsonl").read_text().splitlines()]


def test_failures_are_counted_by_kind(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        HEAD + "for r in requests():\n"
        " if r['sample'] == 0: os.abort()\n"
        " if r['sample'] == 1: say('junk'); continue\n"
        " if r['sample'] == 2: say({'id': r['id'], 'failure': 'no_answer', 'message': 'none'})\n"
        " if r['sample'] == 3: say(answer(r))\n"
    )
    options = ["--samples", "4", "--memory-limit", "1024"]
    samples = evaluate(program, tmp_path / "out", *options)
    failures = [sample["failure"] for sample in samples]
    assert failures == ["crashed", "unparsable", "no_answer", None]
    assert samples[0]["message"] == "killed by SIGABRT, without an answer"
    assert samples[3]["verdict"]["valid"] is False
    program.write_text("import time\ntime.sleep(1000)\n")
    (sample,) = evaluate(program, tmp_path / "slow", "--time-limit", "0.5")
    assert (sample["failure"], sample["message"]) == ("timeout", "no answer in 0.5 s")


def test_a_guided_program_is_told_what_was_wrong(tmp_path: Path) -> None:
    row = next(r for r in load_rows("mini").rows if (r.arch, r.family) == ("gfx942", "gemm"))
    program = tmp_path / "program.py"
    program.write_text(
        f"{HEAD}label = {dict(row.label or {})}\n"
        "for r in requests():\n"
        " last = r['feedback'][-1:]\n"
        " assert r['attempt'] == len(r['feedback'])\n"
        " if not last: del label['%7']; say(answer(r, assignment=label)); continue\n"
        " (finding,) = last[0]['findings']\n"
        " assert finding['kind'] == 'missing', finding\n"
        f" missing = {(row.label or {})['%7']!r}\n"
        " say(answer(r, assignment=last[0]['assignment'] | {'%7': missing}))\n"
    )
    options = ["--decoding", "guided", "--verifier-calls", "3"]
    (sample,) = evaluate(program, tmp_path / "out", *options)
    assert sample["valid"] is True
