"""Scores a folder by recency, importance, size and confidence of its memories (feature F16)."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from speckit_memory.memory.lifecycle.fsrs import days_since
from speckit_memory.memory.lifecycle.tables import TIER_WEIGHTS, UNKNOWN_TIER, by_label
from speckit_memory.pipeline.ports import Attributes, Ids

ARCHIVES = (
    (re.compile(r"(^|/)z_archive(/|$)"), 0.1),
    (re.compile(r"(^|/)scratch(/|$)"), 0.2),
    (re.compile(r"(^|/)test-"), 0.2),
    (re.compile(r"(^|/)prototype(/|$)"), 0.2),
)
"""Patterns of archive folders, and the factor that lowers each."""


@dataclass(frozen=True, slots=True)
class FolderWeights:
    """The weight of each part. Recency is 1 / (1 + fade · days); activity is full from `full_at` memories on."""

    recency: float = 0.40
    importance: float = 0.30
    activity: float = 0.20
    validation: float = 0.10
    fade: float = 0.10
    full_at: int = 5


@dataclass(frozen=True, slots=True)
class FolderWorth:
    """The score of a folder and its parts, each in [0, 1]; `archive` multiplies their weighted sum."""

    score: float
    recency: float
    importance: float
    activity: float
    validation: float
    archive: float


def folder_worth(folder: str, members: Ids, facts: Attributes, now: float, weights: FolderWeights) -> FolderWorth:
    """The score of a folder: (0.40 recency + 0.30 importance + 0.20 activity + 0.10 validation) × archive multiplier.

    Args:
        folder: Its path, for the archive multiplier.
        members: Ids of its memories; without any, all parts are 0.
        facts: Source of tiers, confidence and times.
        now: The present time in epoch seconds.
        weights: Weights of the parts, and the constants of recency and activity.

    Returns:
        Recency is that of the most recently changed member, importance the mean tier weight, activity full at 5
        members, validation the mean confidence.
    """
    if not len(members):
        return FolderWorth(0.0, 0.0, 0.0, 0.0, 0.0, archive_multiplier(folder))
    days = days_since(now, facts.number("updated_at", members))
    # An unknown time gives recency 0, an unknown confidence 0.5.
    recency = np.nan_to_num(1.0 / (1.0 + weights.fade * days)).max()
    importance = by_label(facts.label("tier", members), TIER_WEIGHTS, UNKNOWN_TIER).mean()
    activity = min(len(members) / weights.full_at, 1.0)
    validation = np.nan_to_num(facts.number("confidence", members), nan=0.5).mean()
    archive = archive_multiplier(folder)
    score = (
        weights.recency * recency
        + weights.importance * importance
        + weights.activity * activity
        + weights.validation * validation
    )
    return FolderWorth(
        float(archive * score), float(recency), float(importance), float(activity), float(validation), archive
    )


def archive_multiplier(folder: str) -> float:
    """The factor by which a folder's name lowers its score; 1 for a folder that is not an archive."""
    return min((factor for pattern, factor in ARCHIVES if pattern.search(folder)), default=1.0)
