"""Import it to run under a Python that has numpy: another one of the system if this one has not. Where none has, the test is
skipped, with the reason."""
import importlib.util
import os
import sys

PACKAGES = ("numpy", "zstandard")

missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
if missing:
    system = "/usr/bin/python3"
    if os.path.exists(system) and os.environ.get("WEIR_TEST_PYTHON") != system:
        os.environ["WEIR_TEST_PYTHON"] = system
        os.execv(system, [system, *sys.argv])
    print(f"1..0 # SKIP no {' and '.join(missing)} for this Python (Debian: python3-numpy, python3-zstandard)")
    sys.exit(0)
