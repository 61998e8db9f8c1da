"""VERBS: one file per step; each reads look, plan, do, report."""
