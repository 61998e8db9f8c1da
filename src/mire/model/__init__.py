"""NOUNS: what things are. Frozen and pure; no JSON, no YAML, no disk, no clock."""
