"""Puts a diagnosis into words: records for the sweep's report, and sentences with the numbers.

Must not decide anything. Start with `report.py`.
"""
