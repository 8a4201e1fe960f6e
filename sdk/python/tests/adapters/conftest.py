from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[4] / "examples" / "python"))  # scripted_claude

from world import Agent, Service, World  # noqa: E402

ACTIONS = ("payment.execute", "tool.pay", "tool.ask_helper", "tool.bash", "tool.agent")


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The tenant of the tests, on the service of AGENT_AUTHORITY_BINARY."""
    url, folder = os.environ.get("AGENT_AUTHORITY_TEST_URL"), os.environ.get("AGENT_AUTHORITY_TEST_FOLDER")
    own = Path(folder) if folder else tmp_path_factory.mktemp("service")
    service = Service(os.path.abspath(os.environ["AGENT_AUTHORITY_BINARY"]), own, url)
    try:
        yield World(service)
    finally:
        service.stop()


@pytest.fixture
def agent(world: World) -> Agent:
    """An agent that may pay up to 10000 EUR in Germany, and more with an approval."""
    return world.agent(*ACTIONS)
