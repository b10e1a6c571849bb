"""One target under atheris, in a process of its own: python -m fuzz.worker TARGET [options of libFuzzer].

Whatever is no HyCalError ends it, and so does a memory beyond the bound, an input that takes too long, or any attempt
to start a program, load a library, unpickle a class or open a connection.
"""

from __future__ import annotations

import os
import resource
import sys
import warnings
from typing import Any

import atheris

with atheris.instrument_imports(include=["hycal", "PIL", "tarfile", "zipfile", "json", "csv", "safetensors"]):
    from fuzz.targets import TARGETS

ADDRESS_SPACE = 4 * 2**30
_EXECUTION = frozenset(
    {
        "os.system",
        "os.exec",
        "os.fork",
        "os.posix_spawn",
        "subprocess.Popen",
        "pickle.find_class",
        "ctypes.dlopen",
        "socket.connect",
        "webbrowser.open",
    }
)


def forbid_execution() -> None:
    """End the process when an input makes it do more than read and write files."""

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if event in _EXECUTION:
            sys.stderr.write(f"execution: {event} {arguments}\n")
            os.abort()

    sys.addaudithook(watch)


def main() -> None:
    """Fuzz until libFuzzer says it is enough."""
    warnings.simplefilter("ignore")  # Pillow warns of broken metadata
    target = TARGETS[sys.argv[1]]
    for content in target.seeds():
        target.try_(content)  # imports and caches are filled before anything is forbidden
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    forbid_execution()

    def feed(content: bytes) -> None:
        target.try_(content)

    atheris.Setup([sys.argv[0], *sys.argv[2:]], feed)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
