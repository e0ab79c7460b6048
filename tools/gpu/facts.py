"""What pydevtensor finds, with the libraries that are opened at their first use."""

import sys

import pydevtensor as torch
from pydevtensor.__main__ import report


def main():
    if torch.cuda.is_available():
        kind = "simulated" if torch.cuda.is_simulated() else "real"
        print(f"ran on cuda:0 {torch.cuda.get_device_name(0)} ({kind})", flush=True)
    failed = 0
    print("cuDNN", torch.backends.cudnn.version())
    print("cuFFT", torch._C._cufft_version())
    for what in (lambda x: x @ x, torch.linalg.cholesky):
        try:
            what(torch.eye(3, device="cuda")).sum().item()
        except RuntimeError as error:
            failed = 1
            print(error)
    report()
    return failed


if __name__ == "__main__":
    sys.exit(main())
