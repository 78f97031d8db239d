import numpy as np

from mkclust.fit.mixture import alternate


def run(answers, values=None, **options):
    """Alternate along a given sequence of weights and objectives."""
    answers = [np.array(answer, dtype=float) for answer in answers]
    values = np.arange(len(answers), 0.0, -1) if values is None else values
    steps = iter(zip(answers[1:] + answers[:1], values, strict=True))
    options = {"tol": 1e-4, "max_iter": len(answers) - 1} | options
    return alternate(
        answers[0], lambda weights: None, lambda partition: next(steps), **options
    )


def test_alternation_stops_once_the_weights_no_longer_change():
    found = run([[0.5, 0.5], [0.6, 0.4], [0.60001, 0.39999], [0.9, 0.1]])
    assert (found.converged, found.n_iter, found.cycle) == (True, 2, 0)
    np.testing.assert_array_equal(found.weights, [0.60001, 0.39999])


def test_a_cycle_of_any_length_ends_an_alternation_and_a_slow_spiral_counts_as_one():
    for length in (2, 3, 4):
        ring = [[0.1 * i, 1 - 0.1 * i] for i in range(1, length + 1)]
        found = run([[0.9, 0.1], *ring * 5])
        assert (found.converged, found.n_iter, found.cycle) == (
            False,
            length + 1,
            length,
        )
    spiral = [[0.5 + 0.3 * (-0.95) ** i, 0.5 - 0.3 * (-0.95) ** i] for i in range(10)]
    assert run(spiral).cycle == 2


def test_the_best_iterate_after_the_start_is_returned_and_closes_the_history():
    walk = [[0.5, 0.5], [0.1, 0.9], [0.3, 0.7], [0.6, 0.4]]
    found = run(walk, [1.0, 4.0, 2.0, 3.0])
    np.testing.assert_array_equal(found.weights, walk[2])
    np.testing.assert_array_equal(found.history, [1, 4, 2, 3, 2])
