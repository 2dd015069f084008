"""Checks. Each package is a plugin.

An entry point registers its `check.py`, which reads from top to bottom: parameters, judge, measure. A plugin must not
import another plugin. Start with `gemm/check.py`.
"""
