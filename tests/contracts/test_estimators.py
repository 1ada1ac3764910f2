"""Every estimator keeps scikit-learn's contract, without exceptions (but one)."""

import pytest
from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import parametrize_with_checks

import maxmargin


def estimators():
    found = [getattr(maxmargin, name) for name in maxmargin.__all__]
    return [each() for each in found if isinstance(each, type) and issubclass(each, BaseEstimator)]


def expected_failures(estimator):
    if isinstance(estimator, maxmargin.NuSVC):
        return {"check_class_weight_classifiers": "its weights make nu infeasible"}
    return {}


# Some checks draw labels at random, and NuSVC says what nu can make of them.
@pytest.mark.filterwarnings("ignore:nu=0.5 is infeasible", "ignore:.*have no margin")
@parametrize_with_checks(estimators(), expected_failed_checks=expected_failures)
def test_scikit_learns_checks(estimator, check):
    if "sample_weight_equivalence" in check.func.__name__:
        estimator.set_params(tol=1e-12)  # compared digit by digit with repeated rows
    check(estimator)
