"""Runs code in a new Python process away from the source tree, with GPUs of its choice."""

import os
import subprocess
import sys
import tempfile


def environment(**chosen):
    kept = {
        k: v
        for k, v in os.environ.items()
        if not k.startswith("PYDEVTENSOR_") and k not in ("PYTHONPATH", "PYTHONHOME")
    }
    # PYDEVTENSOR_SIM_GPUS=0 in the environment means real GPUs; hide those as well.
    if not int(chosen.get("PYDEVTENSOR_SIM_GPUS", "0")):
        kept["CUDA_VISIBLE_DEVICES"] = ""
    return {**kept, **chosen}


def python(code, *, fails=False, timeout=120, arguments=None, **chosen):
    """What code prints. chosen are environment variables."""
    command = [sys.executable, *(arguments or ["-c", code])]
    with tempfile.TemporaryDirectory() as neutral:
        done = subprocess.run(
            command,
            cwd=neutral,
            env=environment(**chosen),
            capture_output=True,
            text=True,
            timeout=timeout,
        )
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    return done.stderr if fails else done.stdout
