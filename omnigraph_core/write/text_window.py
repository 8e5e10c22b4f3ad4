"""Bytes in, their text out a piece at a time: a window that moves over a text and knows its lines.

Memory holds what has been read and not passed yet: the longest value, not the whole text. Bytes
that are not UTF-8 become half characters, which no value may hold.
"""

from __future__ import annotations

import codecs
from typing import IO, Final

_BLANKS: Final = " \t\r\n"
_COMMENT: Final = "//"
_PIECE: Final = 1 << 14
"""Few characters: a problem takes time by its distance from where the window begins."""


class TextWindow:
    """A part of a text; `place` is where reading stands in it."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("surrogateescape")
        self._is_whole = False
        self._column = 0
        self.text = ""
        self.place = 0
        self.line = 1
        self.indent: str | None = ""
        """The blanks before the place if nothing else stands before it on its line."""

    def more(self) -> bool:
        """Have more of the text; False at its end."""
        if self._is_whole:
            return False
        # Twice as much each time, or a long value would be looked at again and again.
        data = self._stream.read(max(_PIECE, len(self.text) - self.place))
        self._is_whole = not data
        self.text += self._decoder.decode(data, final=not data)
        return True

    def skip(self) -> str:
        """Go to where something begins, past blanks and comments: its first character, or none."""
        end = self.place
        while True:
            while self._has(end, 1) and self.text[end] in _BLANKS:
                end += 1
            if not self._has(end, 2) or not self.text.startswith(_COMMENT, end):
                break
            end = self.find("\n", end)
        newline = self.text.rfind("\n", self.place, end)
        if newline >= 0:
            self.indent = self.text[newline + 1 : end]
        elif self.line == 1 and self._column == 0:
            self.indent = self.text[self.place : end]
        else:
            self.indent = None
        self.take(end)
        return self.text[self.place : self.place + 1]

    def _has(self, start: int, count: int) -> bool:
        while len(self.text) < start + count:
            if not self.more():
                return False
        return True

    def find(self, wanted: str, start: int, longest: int | None = None) -> int:
        """Where something stands next, or where the text ends.

        Args:
            longest: give up after so many characters; what is there by then is the end.
        """
        seen = start
        while (found := self.text.find(wanted, seen)) < 0:
            seen = max(start, len(self.text) - len(wanted) + 1)
            if (longest is not None and seen - start > longest) or not self.more():
                return len(self.text)
        return found

    def take(self, end: int) -> str:
        """Go there; the text up to there."""
        taken = self.text[self.place : end]
        self.line, self._column = self.position(end)
        self.place = end
        if end > max(_PIECE, len(self.text) // 2):
            self.text, self.place = self.text[end:], 0
        return taken

    def position(self, at: int) -> tuple[int, int]:
        """The line, from 1, and the column, from 0, of something that is not passed yet."""
        lines = self.text.count("\n", self.place, at)
        if not lines:
            return self.line, self._column + at - self.place
        return self.line + lines, at - self.text.rfind("\n", self.place, at) - 1
