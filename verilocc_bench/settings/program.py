"""Settings of programs (`command:`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from verilocc_bench.settings.allocator import AllocatorSettings
from verilocc_bench.settings.flags import at_least, setting, time_limit


@dataclass(frozen=True, slots=True)
class ProgramSettings(AllocatorSettings):
    """Limits of one answer in seconds, and of a process's address space in MiB (None: none)."""

    FLAG_GROUP: ClassVar[str] = AllocatorSettings.FLAG_GROUP

    time_limit_seconds: float = time_limit(in_results=True)
    memory_limit_mib: int | None = setting(
        None,
        "--memory-limit",
        "address space of a program (default: no limit)",
        metavar="MIB",
        read=at_least(int, 1),
    )
