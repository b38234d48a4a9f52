"""Reads the headers of the pages of a Parquet file, with the unpacked size of each page.

A `PageHeader` in Thrift's compact protocol precedes each page (Apache Parquet
Format, "Data Pages", and Apache Thrift, "Thrift Compact protocol encoding"). A
reader allocates the size in the header and unpacks no more, so the headers bound
the memory. The sizes in the file's footer bound nothing: no reader compares them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

HEADER_BYTES = (256, 64 << 10)
"""The bytes to read of a header: first the smaller number, which is mostly enough."""

NESTED = 8
"""The deepest nesting in a header; statistics and encodings need less."""

KIND, UNPACKED_SIZE, STORED_SIZE = 1, 2, 3
"""The numbers of the page header's fields for its kind and sizes."""

DICTIONARY = 2
"""The kind of a page with a dictionary."""

ENCODING = {5: 2, 8: 4}
"""The structures about data pages, of both versions, with their fields for the encoding."""

PLAIN = frozenset({0, 2, 3, 8})
"""Encodings that unpack as many values as are asked for: plain, runs, places in a dictionary."""

SHARED_PREFIXES = 7
"""The encoding in which a value begins with part of the value before."""


class Page(NamedTuple):
    """The sizes of a page: its bytes in the file, with its header, and its unpacked bytes.

    A dictionary has no `values`.
    """

    stored_bytes: int
    unpacked_bytes: int
    is_dictionary: bool = False
    values: int = 0
    encoding: int = 0


class PageError(ValueError):
    """The bytes are not the header of a page."""


def pages_of(file: BinaryIO, start: int, length: int) -> Iterator[Page]:
    """The pages of the column chunk at `start`. Raises PageError for bytes other than a header."""
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
        values, encoding = header.values, header.encoding
        is_dictionary = fields.get(KIND) == DICTIONARY
        page = Page(length_of_header + stored, unpacked, is_dictionary, values, encoding)
        if values < 0 or stored < 0 or unpacked < 0 or at + page.stored_bytes > end:
            raise PageError(f"the page at byte {at} has an impossible size")
        yield page
        at += page.stored_bytes


class _Header:
    """Reads one structure of the compact protocol. Raises IndexError if it needs more bytes."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0
        self.values = self.encoding = 0

    def read(self) -> tuple[dict[int, int], int]:
        """The whole numbers of the outermost structure by field, and its length in bytes."""
        fields = self._numbers(NESTED)
        if self.at > len(self.data):
            raise IndexError
        return fields, self.at

    def _numbers(self, depth: int) -> dict[int, int]:
        fields: dict[int, int] = {}
        number = 0
        while (byte := self._byte()) != 0:
            number = self._field(byte, number)
            if byte & 15 in (4, 5, 6):
                fields[number] = self._integer()
            elif byte & 15 == 12 and depth == NESTED and number in ENCODING:
                about = self._numbers(depth - 1)
                self.values, self.encoding = about.get(1, -1), about.get(ENCODING[number], -1)
            else:
                self._skip(byte & 15, depth)
        return fields

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
            case 1 | 2:  # true and false have no bytes of their own
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
            case _:  # a map; headers have none
                raise PageError("a header of an unknown form")

    def _skip_element(self, kind: int, depth: int) -> None:
        if kind in (1, 2):
            self.at += 1
        else:
            self._skip(kind, depth)
        if self.at > len(self.data):
            raise IndexError
