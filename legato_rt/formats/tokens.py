"""Numbers of a text file, one after another, with the line of each for messages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from legato_rt.errors import FormatError


class Numbers:
    """Whole numbers separated by white space.

    Parameters
    ----------
    path : str or Path
        For messages.
    text : str
    comment : str
        What begins the rest of a line that is no number; nothing does by default.
    """

    def __init__(self, path: str | Path, text: str, comment: str = "") -> None:
        self.path = path
        self.line = 1
        self._tokens = self._split(text, comment)

    @staticmethod
    def _split(text: str, comment: str) -> Iterator[tuple[int, str]]:
        for number, line in enumerate(text.splitlines(), 1):
            content = line.partition(comment)[0] if comment else line
            for token in content.split():
                yield number, token

    def next(self, what: str, low: int = 0, high: int = 10**9) -> int:
        """The next number.

        Raises
        ------
        FormatError
            If there is none, or it is not within ``low`` and ``high``.
        """
        found = next(self._tokens, None)
        if found is None:
            raise FormatError(self.path, f"line {self.line}", f"ends where {what} should be")
        self.line, token = found
        try:
            value = int(token)
        except ValueError:
            raise self.wrong(f"{what} should be a whole number, not {token[:40]!r}") from None
        if not low <= value <= high:
            raise self.wrong(f"{what} should be from {low} to {high}, not {value}")
        return value

    def end(self) -> None:
        """Hold that no number is left."""
        found = next(self._tokens, None)
        if found is not None:
            self.line = found[0]
            raise self.wrong(f"nothing should follow, but {found[1][:40]!r} does")

    def wrong(self, problem: str) -> FormatError:
        """An error at the last number."""
        return FormatError(self.path, f"line {self.line}", problem)
