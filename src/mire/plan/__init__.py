"""DECISIONS: values in, plan out. No clock, disk, network, log or randomness."""
