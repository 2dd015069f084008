"""Stores reports and raw output in a bucket or a directory."""
