"""Reads what the settings name (policy, timetable, topology, tests) and refuses it where it cannot work."""
