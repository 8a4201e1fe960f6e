"""The examples and the pages about the adapters."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from world import Agent, World

REPOSITORY = Path(__file__).parents[4]
EXAMPLES = sorted((REPOSITORY / "examples" / "python").glob("with_*.py"))


def run(example: Path, agent: Agent, world: World, home: Path, *arguments: str) -> str:
    keys = {"OPENAI_API_KEY": "", "ANTHROPIC_API_KEY": "", "HOME": str(home), "CLAUDE_CONFIG_DIR": str(home / "claude")}
    settings = {"URL": world.url, "API_KEY": agent.key, "SUBJECT": agent.subject}
    own = {f"AGENT_AUTHORITY_{name}": value for name, value in settings.items()}
    quiet = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}
    done = subprocess.run(
        [sys.executable, str(example), *arguments], capture_output=True, text=True, timeout=300, cwd=home,
        env={**os.environ, **keys, **own, **quiet},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("example", EXAMPLES, ids=[example.stem for example in EXAMPLES])
def test_an_example_pays_only_with_a_permission(example: Path, agent: Agent, world: World, tmp_path: Path) -> None:
    permitted = run(example, agent, world, tmp_path, "1200", "DE")
    assert re.search(r"^paid 1200(\.0)? EUR to DE02120300000000202051$", permitted, re.M)
    denied = run(example, agent, world, tmp_path, "1200", "US")
    assert "jurisdiction_unsupported" in denied and not re.search("^paid", denied, re.M)
    person = threading.Thread(target=lambda: agent.decide(agent.pending(60), "approve"))
    person.start()
    assert re.search(r"^paid 25000(\.0)? EUR", run(example, agent, world, tmp_path, "25000", "DE"), re.M)
    person.join()
    assert agent.outcomes(2) == ["executed", "executed"]


#: The pages about adapters of this library.
PAGES = [
    page
    for page in sorted((REPOSITORY / "docs" / "guides" / "adapters").glob("*.md"))
    if "examples/python/" in page.read_text()
]


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_the_code_on_a_page_runs(page: Path, agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"URL": agent.options()["url"], "API_KEY": agent.key, "SUBJECT": agent.subject}.items():
        monkeypatch.setenv(f"AGENT_AUTHORITY_{name}", value)
    monkeypatch.setenv("OPENAI_API_KEY", "unused")
    text = page.read_text()
    assert (programs := re.findall(r"```python\n(.*?)```", text, re.S))
    names: dict[str, object] = {}
    for program in programs:
        exec(compile(program, str(page), "exec"), names)
    for linked in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
        assert (page.parent / linked).exists(), linked
    for example in re.findall(r"examples/python/\S+\.py", text):
        assert (REPOSITORY / example).exists(), example
