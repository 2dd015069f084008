"""Code that several built-in plugins share. It must not import any plugin.

Each file is named after what it holds. Start with `metric_judgement.py`, which most checks use.
"""
