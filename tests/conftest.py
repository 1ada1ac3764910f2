"""What all tests share: the solvers under test, and how hard hypothesis looks."""

import os
from functools import partial

import pytest
from hypothesis import HealthCheck, settings

from maxmargin import reference
from maxmargin import solve as engine

# The suite is the same on every run; MAXMARGIN_HYPOTHESIS=search looks for new counter-examples.
quiet = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("suite", max_examples=15, derandomize=True, database=None, **quiet)
settings.register_profile("search", max_examples=500, **quiet)
settings.load_profile(os.environ.get("MAXMARGIN_HYPOTHESIS", "suite"))


SOLVERS = {
    "reference": reference.solve,
    "engine": engine.solve,
    "engine without polish": partial(engine.solve, polish=False),
}


@pytest.fixture(params=SOLVERS.values(), ids=SOLVERS)
def solve(request):
    """Every solver keeps the same contracts."""
    return request.param
