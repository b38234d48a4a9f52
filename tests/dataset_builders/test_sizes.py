"""The normalized text is small beside the machine IR that it stands for."""

from __future__ import annotations

from verilocc_bench.dataset import RawRow, embedded_path, load_rows, read_parquet


def test_sizes_over_the_embedded_dataset() -> None:
    rows = [row for track in ("assign", "split") for row in load_rows("mini", track=track).rows]
    raw = {
        raw.id: raw.content
        for path in embedded_path().glob("raw/*/*/*/*.parquet")
        for raw in read_parquet(path, RawRow)
        if raw.format == "mir"
    }
    rows = [row for row in rows if row.arch != "sm_80"]
    assert raw.keys() == {row.id for row in rows}
    for row in rows:
        text, whole = len(row.normalized.encode()), raw[row.id]
        body = whole[whole.index("\nbody:") :]
        assert text <= 0.35 * len(body.encode()), row.id
        assert text <= 0.12 * len(whole.encode()), row.id
