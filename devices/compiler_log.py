"""What compilers' logs say about source lines."""

from __future__ import annotations

import re

# "tempfile_Nm6tgZ.cl:2:10: use of" (PoCL), "1:2:10: error" (Intel), "kern.cu(2): error" (NVRTC)
PLACE = re.compile(r"(?<!\d)(\d+):(\d+): |\((\d+)\): error")


def quoted(log: str, source: str | None) -> str:
    """The source line of a log's first error, to be appended to the log; may be empty."""
    errors = "\n".join(line for line in log.splitlines() if "error" in line)
    place = PLACE.search(errors) or PLACE.search(log)
    lines = (source or "").splitlines()
    if place is None:
        return ""
    number = int(place[1] or place[3])
    if not 0 < number <= len(lines):
        return ""
    head = f"line {number}: "
    mark = f"\n{' ' * (len(head) + int(place[2]) - 1)}^" if place[2] else ""
    return f"\n{head}{lines[number - 1]}{mark}"
