"""Say why a GPU job died: the names for programs. `explain` answers in this process, `Client` asks a server.

Each name is loaded when it is first used, so that importing the package costs nothing.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from service.api.client import Client
    from service.schemas.diagnosis import Diagnosis, Outcome
    from whycrash.local import explain

__all__ = ["Client", "Diagnosis", "Outcome", "explain"]

_MODULES = {
    "Client": "service.api.client",
    "Diagnosis": "service.schemas.diagnosis",
    "Outcome": "service.schemas.diagnosis",
    "explain": "whycrash.local",
}


def __getattr__(name: str) -> object:
    """Load a public name from its module; raises AttributeError for any other (PEP 562)."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return [*globals(), *__all__]
