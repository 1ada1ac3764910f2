"""Rows that need not fit into memory, and the text format of SVMlight and LIBSVM."""

from maxmargin.io.blocks import RowBlocks, open_chunks
from maxmargin.io.svmlight import open_svmlight, read_svmlight, write_svmlight

__all__ = ["RowBlocks", "open_chunks", "open_svmlight", "read_svmlight", "write_svmlight"]
