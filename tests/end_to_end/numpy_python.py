"""Import it to run under a Python that has numpy: another one of the system if this one has not. Where none has, the test is
skipped, with the reason. `under_python_with` asks for more."""
import importlib.util
import os
import sys


def under_python_with(*modules, packages):
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if not missing:
        return
    system = "/usr/bin/python3"
    if os.path.exists(system) and os.environ.get("WEIR_TEST_PYTHON") != system:
        os.environ["WEIR_TEST_PYTHON"] = system
        os.execv(system, [system, *sys.argv])
    print(f"1..0 # SKIP no {' and '.join(missing)} for this Python (Debian: {packages})")
    sys.exit(0)


under_python_with("numpy", "zstandard", packages="python3-numpy, python3-zstandard")
