"""THE WORLD: the only code that touches it. Moves bytes; reads no format."""
