"""A loop nest as a tree of HTML that can be folded."""

from __future__ import annotations

from html import escape
from typing import Any, Dict, List

# Parts of a nest that are shown; the rest is counted.
_MOST = 2000


class _Writer:
    def __init__(self) -> None:
        self.parts: List[str] = []
        self.left = _MOST

    def nodes(self, nodes: List[Any], depth: int) -> None:
        events: List[str] = []
        for index, node in enumerate(nodes):
            if self.left <= 0:
                self.flush(events)
                self.parts.append(f"<div>… and {len(nodes) - index:,} more</div>")
                return
            self.left -= 1
            if isinstance(node, str):
                events.append(node)
            elif "left_out" in node:
                events.append(f"… {node['left_out']:,} events")
            else:
                self.flush(events)
                self.loop(node, depth)
        self.flush(events)

    def flush(self, events: List[str]) -> None:
        if events:
            self.parts.append(f"<div>{' '.join(map(escape, events))}</div>")
            events.clear()

    def loop(self, node: Dict[str, Any], depth: int) -> None:
        body = node["body"]
        times = f"{node['times']:,} ×" if "times" in node else "≈"
        first = next((event for event in body if isinstance(event, str)), "")
        time = node.get("time") or {}
        median = time.get("median_ns")
        remark = f" · median {median / 1e6:,.3f} ms" if median is not None else ""
        is_open = " open" if depth < 2 else ""
        self.parts.append(
            f"<details{is_open} style='margin-left:1em'><summary><b>{times}</b> "
            f"{escape(first)} …{remark}</summary><div style='margin-left:1em'>"
        )
        self.nodes(body, depth + 1)
        self.parts.append("</div></details>")


def tree(loops: Dict[str, Any]) -> str:
    """The nests of all classes that an answer of `loops` has."""
    writer = _Writer()
    for of_class in loops["classes"][:20]:
        names = escape(", ".join(of_class["streams"][:5]))
        more = len(of_class["streams"]) - 5
        names += f" and {more} more" if more > 0 else ""
        sizes = f"{of_class['events']:,} events written as {of_class['folded']:,}"
        writer.parts.append(f"<details open><summary><b>{names}</b> · {sizes}</summary>")
        writer.nodes(of_class["nest"], 0)
        writer.parts.append("</details>")
    rest = len(loops["classes"]) - 20
    if rest > 0:
        writer.parts.append(f"<div>… and {rest} more classes</div>")
    return f"<div style='font-family:monospace'>{''.join(writer.parts)}</div>"
