"""Simulates hard disks, studies block traces, and schedules work into rotational gaps.

| job | begin with |
|---|---|
| study a trace | `study` |
| run an experiment | `simulate`, `SimConfig` |
| run many configurations of one | `sweep` |
| study many drives | `fleet` |
| open, inspect, convert a trace | `Trace` |
| compare caches for a trace | `cache_curves` |
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
    PlaceReport,
    Report,
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
    plan_placement,
    plan_stripe,
    reproduce,
    schema,
    simulate,
    study,
    sweep,
    validate,
)

cache_curve = cache_curves

__all__ = [
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
    "PlaceReport",
    "Report",
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
    "plan_placement",
    "plan_stripe",
    "reproduce",
    "schema",
    "simulate",
    "study",
    "sweep",
    "validate",
]
