"""Leaves whose derivatives finite differences can check."""

import numpy as np

import pydevtensor as torch


def spread(low, high, shape, seed=0):
    """Numbers between low and high, away from whole ones, where functions have steps."""
    random = np.random.default_rng(seed)
    values = random.uniform(low, high, shape)
    near = np.abs(values - np.round(values * 2) / 2) < 0.05
    return np.where(near, values + np.where(values + 0.12 < high, 0.11, -0.12), values)


def leaf(values, device):
    return torch.tensor(values, dtype=torch.float64, device=device).requires_grad_()
