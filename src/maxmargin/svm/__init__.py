"""Kernel machines: thin estimators in front of one quadratic problem."""
