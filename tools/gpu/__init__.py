"""The programs and steps of gpu_check.py."""
