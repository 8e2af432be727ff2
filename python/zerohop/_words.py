"""What requests are made of."""

from typing import TypeAlias

Key: TypeAlias = str | bytes | bytearray | memoryview
Word: TypeAlias = Key | int | float
