"""Why a submission is not taken."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Refusal"]


@dataclass(frozen=True, slots=True)
class Refusal:
    """One reason: what kind it is of, what is wrong, and where."""

    kind: str
    message: str
    place: str

    def to_json(self) -> dict[str, str]:
        """All fields by name."""
        return {"kind": self.kind, "message": self.message, "place": self.place}
