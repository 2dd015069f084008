"""Reads what the settings name (policy, timetable, topology, tests), and refuses it if it cannot work."""
