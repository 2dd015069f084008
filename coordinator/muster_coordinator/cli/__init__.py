"""The sub-commands of `muster` that start the coordinator or call its API. Each file is named after its command."""
