"""scikit-learn's own tests of its support vector machines, run against ours.

They do not collect under warnings as errors, so that they get a pytest process of their own; what
is left out, and why, stands in ``replace_sklearn_svm``.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

MODULES = ("sklearn.svm.tests.test_svm", "sklearn.svm.tests.test_sparse")


def test_scikit_learns_own_tests_pass(tmp_path):
    here = str(Path(__file__).parent)
    path = os.pathsep.join([here, *filter(None, [os.environ.get("PYTHONPATH")])])
    options = ["-q", "-p", "replace_sklearn_svm", "-p", "no:cacheprovider", "--pyargs"]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *MODULES],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert run.returncode == 0, run.stdout[-5000:] + run.stderr[-2000:]
    passed = re.search(r"(\d+) passed", run.stdout)
    assert passed and int(passed[1]) > 250, run.stdout[-1000:]
