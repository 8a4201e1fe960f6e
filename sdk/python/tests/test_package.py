"""The package: its wheel, its types, and what it imports."""

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

LIBRARY = Path(__file__).parents[1]


def has(module):
    return importlib.util.find_spec(module) is not None


class Package(unittest.TestCase):
    def run_python(self, *arguments, **options):
        done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, **options)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    @unittest.skipUnless(has("hatchling"), "needs hatchling")
    def test_the_wheel_installs_and_works(self):
        with tempfile.TemporaryDirectory() as folder:
            source, installed = Path(folder) / "source", Path(folder) / "installed"
            shutil.copytree(LIBRARY, source, ignore=shutil.ignore_patterns("__pycache__", "dist", "tests"))
            self.run_python("-m", "hatchling", "build", "-t", "wheel", cwd=source)
            (wheel,) = (source / "dist").iterdir()
            with zipfile.ZipFile(wheel) as files:
                names = files.namelist()
                metadata = files.read(next(name for name in names if name.endswith("METADATA"))).decode()
            self.assertIn("agent_authority/py.typed", names)
            self.assertFalse([name for name in names if "test" in name])
            self.assertIn("Provides-Extra: client\nRequires-Dist: httpx>=0.27; extra == 'client'\n", metadata)
            self.run_python("-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", installed, wheel)
            # Everything but the client works without httpx.
            program = "import sys; sys.modules['httpx'] = None; import agent_authority as a; print(a.__file__, a.AsyncAuthority)"
            shown = self.run_python("-c", program, env={**os.environ, "PYTHONPATH": str(installed)}, cwd=folder)
            self.assertTrue(shown.startswith(str(installed)), shown)

    @unittest.skipUnless(has("mypy"), "needs mypy")
    def test_the_types_are_strict(self):
        with tempfile.TemporaryDirectory() as cache:
            self.run_python("-m", "mypy", "--cache-dir", cache, cwd=LIBRARY)

    def test_httpx_and_asyncio_are_imported_on_first_use(self):
        program = "import sys, agent_authority; print([name for name in ('httpx', 'asyncio', 'ssl') if name in sys.modules])"
        self.assertEqual(self.run_python("-c", program), "[]\n")

    def test_a_decision_without_httpx_explains_what_to_install(self):
        program = (
            "import sys; sys.modules['httpx'] = None\nfrom agent_authority import Authority, Question\n"
            "try:\n    Authority('http://127.0.0.1:9', 'key', jwks={'keys': []}).decide(Question('a'))\n"
            "except ImportError as error:\n    print(error)"
        )
        self.assertIn('pip install "agent-authority-sdk[client]"', self.run_python("-c", program))

    def test_all_names_exist(self):
        import agent_authority

        for name in agent_authority.__all__:
            self.assertIsNotNone(getattr(agent_authority, name))


if __name__ == "__main__":
    unittest.main()
