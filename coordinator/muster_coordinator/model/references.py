"""The operator's references as they are stored."""

from muster.model import Data
from muster.references import Reference


class ReferenceRecord(Data):
    """An operator's reference as it is stored; of two, the one with the higher `number` was set later."""

    number: int
    reference: Reference
