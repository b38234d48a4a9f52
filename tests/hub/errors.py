"""Refusals of the local Hub, as its clients read them: a status and the header X-Error-Code."""

from __future__ import annotations


class Refusal(Exception):
    """A request that cannot be answered."""

    def __init__(self, status: int, message: str, code: str | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.code = status, message, code

    def headers(self) -> dict[str, str]:
        found = {"X-Error-Message": self.message}
        return found | ({"X-Error-Code": self.code} if self.code else {})


def no_repository() -> Refusal:
    return Refusal(404, "Repository not found", "RepoNotFound")


def no_revision(revision: str) -> Refusal:
    return Refusal(404, f"Invalid rev id: {revision}", "RevisionNotFound")


def no_entry(path: str) -> Refusal:
    return Refusal(404, f"{path} does not exist", "EntryNotFound")
