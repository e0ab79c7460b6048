"""Makes the virtual environment in which the Makefile's targets work.

    python3 tools/build/prepare.py VENV GROUP...

GROUP is build, an extra (full, test, notebook) or a dependency group (lint) of
pyproject.toml. What is installed already is left alone. If the machine lacks something,
one sentence names the package to install; so this file runs under any Python 3.
"""

import sys

OLDEST = (3, 11)


def main():
    found = tuple(sys.version_info[:3])
    if found[:2] < OLDEST:
        sys.exit(
            "pydevtensor: it needs Python {}.{} or newer, and {} is {}.{}.{}; install a "
            "newer one, for example with: sudo apt-get install python3.12 python3.12-dev "
            "python3.12-venv, and name it: make PYTHON=python3.12".format(
                *(OLDEST + (sys.executable,) + found)
            )
        )
    try:
        import ensurepip
        import venv
    except ImportError:
        version = "{}.{}".format(*found[:2])
        sys.exit(
            "pydevtensor: Python {} has no working venv module, which makes the virtual "
            "environment; install it with: sudo apt-get install python{}-venv".format(
                version, version
            )
        )
    assert ensurepip and venv
    import environment

    sys.exit(environment.prepare(sys.argv[1], sys.argv[2:]))


if __name__ == "__main__":
    main()
