"""The checks `training` (in `check`) and `training_ddp` (in `ddp`)."""
