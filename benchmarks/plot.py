"""A chart of the comparison: how many times faster ckptfmt is than ``source-method``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("svg")


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """One group of bars for each case, one bar for each shape."""
    from matplotlib import pyplot as plot

    ours = [
        row
        for row in rows
        if row.get("method") == "ckptfmt" and not row["nan"] and row["bytes"] / row["records"] > 100_000
    ]
    cases = list(dict.fromkeys(row["case"] for row in ours))
    shapes = list(dict.fromkeys(row["shape"] for row in ours))
    figure, axes = plot.subplots(figsize=(8, 3.5))
    width = 0.8 / len(shapes)
    for place, shape in enumerate(shapes):
        ratios = {row["case"]: row["ratio_vs_source_method"] for row in ours if row["shape"] == shape}
        offset = (place - (len(shapes) - 1) / 2) * width
        at = [number + offset for number, case in enumerate(cases) if case in ratios]
        bars = axes.bar(at, [ratios[case] for case in cases if case in ratios], width, label=shape)
        axes.bar_label(bars, fmt="%.1f", fontsize=8)
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set_xticks(range(len(cases)), cases)
    axes.set_ylabel("times faster than\nsource-method")
    axes.legend(title="records of")
    figure.tight_layout()
    figure.savefig(path)
