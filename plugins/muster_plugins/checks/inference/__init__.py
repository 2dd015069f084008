"""The check `inference`. Start reading in `check`; `decoder` is the network, and `generation` measures it."""
