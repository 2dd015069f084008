"""The check `host`: the machine around the GPUs. Each module but `check` and `look` is a look at one part of it."""
