"""What is settled before a command imports anything else; import it first."""

from __future__ import annotations

import os

# Plug-ins of Pydantic are looked for in every installed package when the first model is built, a tenth of a
# cold start; none is of use to a command. Who wants one sets the variable to another value.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
