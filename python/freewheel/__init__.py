"""Simulates hard disks, studies block traces, and schedules work into rotational gaps.

| job | begin with |
|---|---|
| study a trace | `study` |
| run an experiment | `simulate`, `SimConfig` |
| run many configurations of one | `sweep` |
| study many drives | `fleet` |
| open, inspect, convert a trace | `Trace` |
| compare caches for a trace | `cache_curves`, `object_curves` |
| write a scheduler or a cache policy | `Policy`, `CachePolicy` |
| take, scale or validate a drive | `Drive` |
| plan stripes, and which files lie on which disks | `plan_stripe`, `plan_placement` |
| find out a drive | `extract` |
| reproduce the papers' claims | `reproduce` |
"""

from ._errors import ConfigError, Error, FileError, MissingFileError, TraceError, UsageError
from ._freewheel import (
    CacheReport,
    ClaimsReport,
    Drive,
    Extraction,
    FleetReport,
    Frame,
    Moment,
    ObjectReport,
    PlaceReport,
    Report,
    Request,
    SimConfig,
    SimReport,
    StripeReport,
    StudyReport,
    SweepReport,
    Trace,
    Validation,
    __version__,
    cache_curves,
    claims,
    drives,
    extract,
    fleet,
    formats,
    object_curves,
    plan_placement,
    plan_stripe,
    reproduce,
    schema,
    simulate,
    study,
    sweep,
    validate,
)
from ._types import CachePolicy, Policy

cache_curve = cache_curves

__all__ = [
    "CachePolicy",
    "CacheReport",
    "ClaimsReport",
    "ConfigError",
    "Drive",
    "Error",
    "Extraction",
    "FileError",
    "FleetReport",
    "Frame",
    "MissingFileError",
    "Moment",
    "ObjectReport",
    "PlaceReport",
    "Policy",
    "Report",
    "Request",
    "SimConfig",
    "SimReport",
    "StripeReport",
    "StudyReport",
    "SweepReport",
    "Trace",
    "TraceError",
    "UsageError",
    "Validation",
    "__version__",
    "cache_curve",
    "cache_curves",
    "claims",
    "drives",
    "extract",
    "fleet",
    "formats",
    "object_curves",
    "plan_placement",
    "plan_stripe",
    "reproduce",
    "schema",
    "simulate",
    "study",
    "sweep",
    "validate",
]
