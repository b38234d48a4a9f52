"""Who may do what on the local Hub: accounts by their tokens, namespaces by their members."""

from __future__ import annotations

from dataclasses import dataclass

OWNER_TOKEN = "hf_LocalOwnerToken00000001"
GUEST_TOKEN = "hf_LocalGuestToken00000002"


@dataclass(frozen=True, slots=True)
class Account:
    """A user, who writes to its own namespace and to those of `organizations`."""

    name: str
    organizations: tuple[str, ...] = ()

    def belongs_to(self, namespace: str) -> bool:
        return namespace in (self.name, *self.organizations)


ACCOUNTS = {
    OWNER_TOKEN: Account("owner", ("verilocc",)),
    GUEST_TOKEN: Account("guest"),
}
NAMESPACES = frozenset({"owner", "guest", "verilocc"})


def may_read(account: Account | None, namespace: str, *, private: bool) -> bool:
    return not private or (account is not None and account.belongs_to(namespace))


def may_write(account: Account | None, namespace: str) -> bool:
    return account is not None and account.belongs_to(namespace)
