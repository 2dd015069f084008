"""The coordinator: forms groups, finds the bad node or link, and keeps the view of the fleet. Imports only core."""
