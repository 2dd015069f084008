"""Reads the policy, timetable, topology and tests of the settings, and refuses those that cannot work."""
