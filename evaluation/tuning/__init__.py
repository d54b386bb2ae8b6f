"""Ablation, calibration and parameter search."""
