"""Problems and where they come from."""

from .problem import Dataset, Problem

__all__ = ["Dataset", "Problem"]
