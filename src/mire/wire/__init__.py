"""FORMATS: bytes to nouns and back, and which path holds what. Pure. Our promise to other programs."""
