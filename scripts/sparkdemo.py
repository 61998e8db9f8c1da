"""The analyses of docs/guide/spark.md: its own lines, run on a generated store, and a picture of each.

Usage: python scripts/sparkdemo.py [DIRECTORY]. The pictures go there, or to where the guide shows them.
"""

import os
import re
import sys
import tempfile
from datetime import timedelta
from typing import Any

import matplotlib as mpl

from mire.pipeline.session import open_session
from sparkdata import generate

mpl.use("agg")
from matplotlib import pyplot as plt

GUIDE = os.path.join(os.path.dirname(__file__), "..", "docs", "guide")
MEGA = 1_000_000


def main(directory: str) -> None:
    """Run the guide, and draw what it found."""
    with open(os.path.join(GUIDE, "spark.md"), encoding="utf-8") as file:
        blocks = re.findall(r"^```python\n(.*?)^```", file.read(), re.DOTALL | re.MULTILINE)
    with tempfile.TemporaryDirectory(prefix="mire-demo-") as home, open_session() as spark:
        store = os.path.join(home, "store")
        os.mkdir(store)
        generate(store)
        told = spark.read.format("mire").option("table", "versions").load(store).count()
        print(f"a store with {told} versions")
        names: dict[str, Any] = {"store": store, "checkpoint": os.path.join(home, "checkpoint")}
        for block in blocks:
            exec(compile(block, "docs/guide/spark.md", "exec"), names)  # noqa: S102 - the guide's own lines
        os.makedirs(directory, exist_ok=True)
        for name, draw in DRAWN.items():
            frame = names[name].toPandas()
            print(f"\n{name}: {len(frame)} rows, the first and the last")
            print(frame.iloc[[0, -1]].to_string(index=False))
            figure = draw(frame)
            path = os.path.join(directory, f"{name}.png")
            figure.savefig(path, dpi=110, metadata={"Software": None})
            plt.close(figure)
            print(f"drawn: {os.path.relpath(path)}")


def canvas(title: str, label: str) -> tuple[Any, Any]:
    """An empty picture."""
    figure, axes = plt.subplots(figsize=(8, 3.6), layout="constrained")
    axes.set_title(title, loc="left")
    axes.set_ylabel(label)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def draw_drift(frame: Any) -> Any:
    """A line for each kind."""
    figure, axes = canvas("Drift by kind of resource", "changed members a version")
    for kind, rows in frame.groupby("model_type"):
        axes.plot(rows["week"], rows["changed"], marker="o", markersize=3, label=kind)
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, fontsize=8)
    figure.autofmt_xdate()
    return figure


def stacked(axes: Any, table: Any) -> None:
    """Bars of the columns of a table, one on the other."""
    bottom = [0.0] * len(table)
    places = range(len(table))
    for number, column in enumerate(table.columns):
        color = plt.get_cmap("tab20")(number)
        axes.bar(places, table[column], bottom=bottom, label=column, color=color, width=0.7)
        bottom = [below + height for below, height in zip(bottom, table[column], strict=True)]
    axes.set_xticks(list(places), [str(each) for each in table.index], fontsize=8)
    axes.legend(frameon=False, fontsize=7, loc="upper left", bbox_to_anchor=(1.0, 1.0))


def draw_failed(frame: Any) -> Any:
    """A bar for each week, a colour for each step."""
    figure, axes = canvas("Failed steps by week", "failed steps")
    table = frame.pivot_table(index="week", columns="step", values="count", fill_value=0)
    # A week without a failure is a bar of no height, not no bar.
    first, last = min(table.index), max(table.index)
    weeks = [first + timedelta(weeks=number) for number in range((last - first).days // 7 + 1)]
    stacked(axes, table.reindex(weeks, fill_value=0))
    axes.tick_params(axis="x", rotation=40)
    return figure


def draw_storage(frame: Any) -> Any:
    """A bar for each team, a colour for each lifetime."""
    figure, axes = canvas("Storage by team and lifetime", "MB")
    table = frame.pivot_table(index="team", columns="lifetime", values="bytes", fill_value=0) / MEGA
    stacked(axes, table)
    return figure


DRAWN = {"drift": draw_drift, "failed": draw_failed, "storage": draw_storage}

if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(GUIDE, "images"))
