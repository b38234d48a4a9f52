"""A process that turns LLVM IR into machine IR under one set of LLVM options.

LLVM's options are global to a process and can be set only once. So each set has
a process of its own, and a crash of LLVM ends that process alone. It reads one
JSON request per line (`{"cpu": …, "ir": …}`) from standard input, and writes
one JSON answer per line (`{"mir": …}` or `{"error": …}`) to standard output.

    python -m dataset_builders.compilers.llvm_worker -stop-before=greedy
"""

from __future__ import annotations

import json
import os
import sys


def main(options: list[str]) -> None:
    """Serves requests until standard input ends."""
    import llvmlite.binding as llvm

    # Answers go to a private copy of standard output: LLVM's own messages
    # must not get between them.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for option in options:
        llvm.set_option("", option)
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple("amdgcn-amd-amdhsa")
    version = ".".join(str(part) for part in llvm.llvm_version_info)
    print(json.dumps({"llvm_version": version}), file=answers, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            module = llvm.parse_assembly(request["ir"])
            module.verify()
            machine = target.create_target_machine(cpu=request["cpu"], opt=3)
            answer = {"mir": machine.emit_assembly(module)}
        except RuntimeError as error:  # what llvmlite raises for LLVM's own errors
            answer = {"error": str(error)}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
