"""The exceptions of this package. Each message says what happened, why, and what to do.

MhaVizError
├── ShapeError          a tensor or a size that does not fit            (also a ValueError)
├── LineError           a typed line of code that cannot be evaluated   (also a ValueError)
├── ExerciseError       a file with exercises that is broken           (also a ValueError)
├── TalkError           a file with a talk that is broken               (also a ValueError)
├── TextError           a text that cannot be used                      (also a ValueError)
├── HeadNotFound        a layer or head that this model does not have   (also an IndexError)
├── CheckpointError     a checkpoint that is incomplete or damaged      (also a ValueError)
│   └── NotGPT2         a checkpoint of another architecture
├── SourceError         a checkpoint that could not be obtained         (also an OSError)
│   └── Cancelled       a download that the user stopped
├── DeviceError         a device that is missing or disagrees           (also a RuntimeError)
├── OutputError         a file that cannot be written                   (also an OSError)
└── AddressError        an address or port that the app cannot serve on (also an OSError)
"""


class MhaVizError(Exception):
    """An error with a message for the user."""


class ShapeError(MhaVizError, ValueError):
    """A tensor or a size that does not fit; the message gives the shapes."""


class LineError(MhaVizError, ValueError):
    """A line of code that was typed and cannot be evaluated; the message says why."""


class ExerciseError(MhaVizError, ValueError):
    """A file with exercises that is broken; the message names the line."""


class TalkError(MhaVizError, ValueError):
    """A file with a talk that is broken; the message names the lines."""


class TextError(MhaVizError, ValueError):
    """A text that cannot be used, for example because it is empty."""


class HeadNotFound(MhaVizError, IndexError):
    """A layer or a head that the model does not have."""


class CheckpointError(MhaVizError, ValueError):
    """A checkpoint that was found, but is incomplete, damaged or not a GPT-2."""


class NotGPT2(CheckpointError):
    """A valid checkpoint of another architecture."""


class SourceError(MhaVizError, OSError):
    """A checkpoint that could not be found or downloaded."""


class Cancelled(SourceError):
    """A download that the user stopped; the next attempt resumes it."""


class DeviceError(MhaVizError, RuntimeError):
    """A device or dtype that is not available, or a device that disagrees with the CPU."""


class OutputError(MhaVizError, OSError):
    """A file or a folder that cannot be written, or that would be overwritten."""


class AddressError(MhaVizError, OSError):
    """An address that this machine does not have, or a port that is in use."""
