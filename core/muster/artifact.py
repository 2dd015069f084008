"""Documents about sweeps, acceptances and failed runs, to be kept outside of the database."""

from typing import Annotated

from pydantic import Field

from muster.model import Data


class Artifact(Data):
    """A document: `content` is a text, and the end of the `key` says of which form, such as `.json` or `.txt`.

    The key is a path of names that are safe in URLs and file names, as in `sweeps/2026-11-27/a1b2c3d4/report.json`.
    """

    key: Annotated[str, Field(max_length=1024, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*$")]
    content: str
