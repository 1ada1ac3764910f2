"""The doorway: learning a linear classifier from one example after the other.

Reading order::

    basic               two class means and the plane between them; nothing is iterated
    online              rows, labels, one machine for each class, predictions
    passes              learners that visit the rows, and when a fit ends
    linear              the perceptron itself, and its average
    dual                the same predictor, told by how often each example was misclassified
    expansion           functions that are sums of kernels over support vectors
    kernel              the dual with any kernel, rows in blocks
    voted               all of its predictors vote
    budget, policies    no more support vectors than a budget allows
    passive_aggressive  steps just large enough for a margin
    pegasos             steps on the objective of the support vector machine
    kernel_pegasos      the same in the feature space of a kernel
    bounds              how many mistakes a perceptron can make
"""
