"""The exceptions of Freewheel."""


class Error(Exception):
    """An error of this library. Its message names file, key and value.

    A call of Freewheel that fails raises one. `help` is the way out, if there is one; `kind` is the name of the
    library's `ErrorKind`.
    """

    def __init__(self, message: str, kind: str = "Other", help: str | None = None) -> None:
        super().__init__(message if help is None else f"{message}\nhelp: {help}")
        self.message = message
        self.kind = kind
        self.help = help

    def __reduce__(self) -> tuple[type["Error"], tuple[str, str, str | None]]:
        # From one process to another, as a worker's error.
        return type(self), (self.message, self.kind, self.help)


class UsageError(Error, ValueError):
    """An argument is wrong, or names a drive, policy, format or claim that does not exist."""


class ConfigError(Error, ValueError):
    """A key or value of an experiment, drive file or snapshot is wrong."""


class TraceError(Error, ValueError):
    """A trace is damaged, not certain, or does not fit what is asked of it."""


class FileError(Error, OSError):
    """The system does not give or take a file."""


class MissingFileError(FileError, FileNotFoundError):
    """A file is not there."""
