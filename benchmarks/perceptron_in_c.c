/* The kernel perceptron as one would write it in plain C: row by row, one thread, one class against
 * the rest for each of k classes, polynomial kernel (gamma x.z + coef0)^degree + intercept.
 *
 * The kernel value of a row and a support vector is computed once and serves all classes. Returns
 * the number of support vectors; mistakes (k) counts the mistakes. past (n x k) is what the average
 * needs: coefficients times the row at which they came.
 */
#include <stdint.h>
#include <stdlib.h>

static float dot(const float *x, const float *z, int64_t d) {
    float sum = 0;
    for (int64_t f = 0; f < d; f++) sum += x[f] * z[f];
    return sum;
}

int64_t kernel_perceptron(const float *X, const int64_t *labels, const int64_t *order, int64_t n,
                          int64_t d, int64_t k, double gamma, double coef0, int degree,
                          double intercept, int64_t *support, double *coefficients, double *past,
                          int64_t *mistakes) {
    int64_t size = 0;
    double *scores = malloc((size_t)k * sizeof *scores);
    for (int64_t t = 0; t < n; t++) {
        const int64_t i = order[t];
        for (int64_t c = 0; c < k; c++) scores[c] = 0;
        for (int64_t s = 0; s < size; s++) {
            const double base = gamma * dot(X + i * d, X + support[s] * d, d) + coef0;
            double value = 1;
            for (int p = 0; p < degree; p++) value *= base;
            value += intercept;
            for (int64_t c = 0; c < k; c++) scores[c] += coefficients[s * k + c] * value;
        }
        int wrong = 0;
        for (int64_t c = 0; c < k; c++) {
            const double y = labels[i] == c ? 1 : -1;
            coefficients[size * k + c] = past[size * k + c] = 0;
            if (y * scores[c] > 0) continue;
            coefficients[size * k + c] = y;
            past[size * k + c] = y * (double)t;
            mistakes[c]++;
            wrong = 1;
        }
        if (wrong) support[size++] = i;
    }
    free(scores);
    return size;
}
