"""The reasons for which a submission is refused."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Refusal"]


@dataclass(frozen=True, slots=True)
class Refusal:
    """One reason: its kind, the fault, and the place."""

    kind: str
    message: str
    place: str

    def to_json(self) -> dict[str, str]:
        """All fields by name."""
        return {"kind": self.kind, "message": self.message, "place": self.place}
