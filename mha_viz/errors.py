"""The one family of exceptions: each says what was given, what is wrong, and what to do.

MhaVizError
├── ShapeError          a tensor or a size that does not fit            (also a ValueError)
├── TextError           a text that cannot be read                      (also a ValueError)
├── HeadNotFound        a layer or head that this model does not have   (also an IndexError)
├── CheckpointError     weights that cannot be trusted                  (also a ValueError)
│   └── NotGPT2         a checkpoint of another architecture
├── SourceError         a checkpoint that cannot be found or fetched    (also an OSError)
│   └── Cancelled       a download that the user stopped
├── DeviceError         a device that is missing or computes otherwise  (also a RuntimeError)
└── AddressError        an address or port that the app cannot serve on (also an OSError)
"""


class MhaVizError(Exception):
    """Anything that this package refuses to do, with a message made for the person who asked."""


class ShapeError(MhaVizError, ValueError):
    """A tensor or a size does not fit; the message prints the shapes."""


class TextError(MhaVizError, ValueError):
    """A text cannot be traced, for example because it is empty."""


class HeadNotFound(MhaVizError, IndexError):
    """A layer or a head outside of the model."""


class CheckpointError(MhaVizError, ValueError):
    """A checkpoint was found, and its content is not what GPT-2 needs."""


class NotGPT2(CheckpointError):
    """A sound checkpoint of some other architecture."""


class SourceError(MhaVizError, OSError):
    """A checkpoint could not be found or fetched."""


class Cancelled(SourceError):
    """The user stopped a download; what was fetched so far is kept and resumed next time."""


class DeviceError(MhaVizError, RuntimeError):
    """A device or number type that is not there, or that disagrees with the CPU."""


class AddressError(MhaVizError, OSError):
    """An address that this machine does not have, or a port that is taken."""
