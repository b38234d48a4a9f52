"""The headers of the pages of a Parquet file: how much each page unpacks to.

A page is preceded by a `PageHeader` in Thrift's compact protocol (Apache
Parquet Format, "Data Pages", and Apache Thrift, "Thrift Compact protocol
encoding"). A reader makes room for what the header says and unpacks no more,
so that the headers bound the memory; the sizes in the file's footer bound
nothing, for no reader compares them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

__all__ = ["Page", "PageError", "pages_of"]

HEADER_BYTES = (256, 64 << 10)
"""How much is read of a header: nearly all are shorter than the first."""

NESTED = 8
"""So deep are statistics and encodings within a header, and some more."""

UNPACKED_SIZE, STORED_SIZE = 2, 3
"""The fields of a page header that are wanted, by their numbers."""


class Page(NamedTuple):
    """What a page says of itself: its bytes in the file, header and all, and unpacked."""

    stored_bytes: int
    unpacked_bytes: int


class PageError(ValueError):
    """What stands there is no header of a page."""


def pages_of(file: BinaryIO, start: int, length: int) -> Iterator[Page]:
    """The pages of one column chunk, which begins at `start`. Raises PageError."""
    at, end = start, start + length
    while at < end:
        for size in HEADER_BYTES:
            file.seek(at)
            header = _Header(file.read(min(size, end - at)))
            try:
                fields, length_of_header = header.read()
                break
            except IndexError:
                continue
        else:
            raise PageError(f"there is no page at byte {at}")
        stored, unpacked = fields.get(STORED_SIZE, -1), fields.get(UNPACKED_SIZE, -1)
        page = Page(length_of_header + stored, unpacked)
        if stored < 0 or unpacked < 0 or at + page.stored_bytes > end:
            raise PageError(f"the page at byte {at} has an impossible size")
        yield page
        at += page.stored_bytes


class _Header:
    """Reads one structure of the compact protocol. IndexError: more bytes are needed."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def read(self) -> tuple[dict[int, int], int]:
        """(whole numbers of the outermost structure by field, its length in bytes)."""
        fields: dict[int, int] = {}
        number = 0
        while (byte := self._byte()) != 0:
            number = self._field(byte, number)
            if byte & 15 in (4, 5, 6):
                fields[number] = self._integer()
            else:
                self._skip(byte & 15, NESTED)
        if self.at > len(self.data):
            raise IndexError
        return fields, self.at

    def _field(self, byte: int, number: int) -> int:
        return number + (byte >> 4) if byte >> 4 else self._integer()

    def _byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def _unsigned(self) -> int:
        value = shift = 0
        while (byte := self._byte()) & 128:
            value |= (byte & 127) << shift
            shift += 7
            if shift > 63:
                raise PageError("a number of more than 64 bits")
        return value | byte << shift

    def _integer(self) -> int:
        value = self._unsigned()
        return value >> 1 ^ -(value & 1)

    def _skip(self, kind: int, depth: int) -> None:
        if depth == 0:
            raise PageError("a header nested too deeply")
        match kind:
            case 1 | 2:  # true and false, which have no value of their own
                pass
            case 3:
                self.at += 1
            case 4 | 5 | 6:
                self._unsigned()
            case 7:
                self.at += 8
            case 8:
                length = self._unsigned()
                self.at += length
            case 9 | 10:
                byte = self._byte()
                count = byte >> 4 if byte >> 4 < 15 else self._unsigned()
                for _ in range(count):
                    self._skip_element(byte & 15, depth - 1)
            case 12:
                number = 0
                while (byte := self._byte()) != 0:
                    number = self._field(byte, number)
                    self._skip(byte & 15, depth - 1)
            case _:  # maps, which no header has
                raise PageError("a header of an unknown form")

    def _skip_element(self, kind: int, depth: int) -> None:
        if kind in (1, 2):
            self.at += 1
        else:
            self._skip(kind, depth)
        if self.at > len(self.data):
            raise IndexError
