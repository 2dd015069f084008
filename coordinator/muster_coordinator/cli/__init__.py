"""The coordinator's sub-commands of `muster`, and those that talk to its API. A file is named after its command."""
