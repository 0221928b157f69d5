"""Measures the runtime as ratios beside floors taken in the same run."""
