"""The check `host`: the host around the GPUs. Each module except `check` and `look` examines one part of it."""
