"""OpenAPI documents: enough for kubectl's explain, and for its question whether the server validates fields."""

from __future__ import annotations

from pilotage.api.wire import Request, Response
from pilotage.localcluster.rest.errors import unknown_path


def answer(_request: Request) -> Response:
    raise unknown_path()
