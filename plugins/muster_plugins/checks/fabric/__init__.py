"""The check `fabric`: ports of InfiniBand, RoCE and gIB."""
