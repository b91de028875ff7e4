"""Lightning's logger for Weights & Biases, with a run of its own for every seed."""

from __future__ import annotations

from lightning.pytorch.loggers import WandbLogger
from lightning.pytorch.utilities import rank_zero_only


class SeedWandbLogger(WandbLogger):
    """Finishes its run when the training of the seed ends, also by an error.

    Lightning leaves that to the end of the program. Processes of seeds end without it, and the last metrics are lost.
    Where seeds share a process, the next one would write into the run of the one before.
    """

    @rank_zero_only
    def finalize(self, status: str) -> None:
        """Write what is left and end the run. status: `success`, or how the training ended otherwise."""
        super().finalize(status)
        if self._experiment is not None:
            self._experiment.finish(exit_code=0 if status == "success" else 1)
