"""FACE: one file per command: parse, call one verb, render as text or JSON."""
