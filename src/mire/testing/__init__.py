"""The shipped test kit: Hypothesis strategies, and processes that die between two file operations."""
