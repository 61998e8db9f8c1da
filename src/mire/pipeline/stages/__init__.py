"""Stages: a DataFrame in, a DataFrame out."""
