"""The operator's references as they are stored."""

from muster.model import Data
from muster.references import Reference


class ReferenceRecord(Data):
    """A reference of the operator as it is stored. The higher `number` was set later."""

    number: int
    reference: Reference
