"""Patterns for names of GPU models and MIG profiles, as in v0.20.0.

`*` is any run of characters, also none; everything else is itself. A pattern matches the whole text or not at all.
"""


def matches(pattern: str, text: str) -> bool:
    """Whether `pattern` matches the whole of `text`; takes time linear in both for each piece between stars."""
    first, *rest = pattern.split("*")
    if not rest:
        return pattern == text
    *middle, last = rest
    if not text.startswith(first) or not text.endswith(last) or len(text) < len(first) + len(last):
        return False
    position, end = len(first), len(text) - len(last)
    for piece in middle:
        found = text.find(piece, position, end)
        if found < 0:
            return False
        position = found + len(piece)
    return True
