"""Linear machines: a loss, a penalty, and solvers that say what they need of them."""
