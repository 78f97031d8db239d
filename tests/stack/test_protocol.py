"""The border: every stack answers what the protocol says, and nothing else is asked of one."""

import ast
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

import mkclust
from mkclust.kernels import Nystroem
from mkclust.linalg import FactoredMatrix, is_sparse
from mkclust.linalg.operators import (
    Anchor,
    AnchoredOperator,
    CenteredOperator,
    LazyOperator,
    MatrixOperator,
    Operator,
    ScaledOperator,
)
from mkclust.samples.samples import as_blocks
from mkclust.stack import (
    DenseStack,
    KernelOperator,
    KernelStack,
    MatrixRows,
    StreamedStack,
    as_stack,
)
from mkclust.stack.low_rank import LowRankStack, compress

SOURCE = Path(mkclust.__file__).parent
N, M = 40, 3
PROBES = ("getattr", "hasattr", "isinstance")
# What a method asks of its own parameter `kernels`, which is no stack.
PARAMETER = ("str", "KernelBank")


def plain_kernels(n=N):
    X = np.random.default_rng(0).normal(size=(M, n, 5))
    return X @ X.transpose(0, 2, 1)


def indefinite_kernels():
    return plain_kernels() - 2 * np.eye(N)


def factored_kernels():
    """Return kernels of which each sample has some neighbors' columns, itself among them."""
    rng = np.random.default_rng(0)
    members = [np.eye(N) + (rng.random((N, N)) < 0.1) for _ in range(M)]
    return [FactoredMatrix.symmetric(scipy.sparse.csr_array(S)) for S in members]


def compressed_stack():
    X = np.random.default_rng(0).normal(size=(M, N, 5))
    named = {f"view {p}": X[p] for p in range(M)}
    return compress(as_blocks(named), Nystroem(8), center=True, normalize=True, random_state=0)


STACKS = {
    "dense": lambda: as_stack(plain_kernels()),
    "dense, not written out": lambda: replace(as_stack(plain_kernels()), writes_out=False),
    "repaired": lambda: as_stack(indefinite_kernels(), psd="shift"),
    "sparse": lambda: as_stack([scipy.sparse.csr_array(K) for K in plain_kernels()]),
    "factored": lambda: as_stack(factored_kernels()),
    "factored beside dense": lambda: as_stack([*factored_kernels()[:2], plain_kernels()[2]]),
    "streamed": lambda: as_stack(MatrixRows(list(plain_kernels()))),
    "low rank": compressed_stack,
}
STORAGE = {"sparse": "sparse", "factored": "sparse", "streamed": "streamed"}
KINDS = {"streamed": StreamedStack, "low rank": LowRankStack}


def members(protocol):
    """Return the names that a protocol promises."""
    parts = [vars(part) for part in protocol.__mro__ if getattr(part, "_is_protocol", False)]
    return {
        name
        for part in parts
        for name in part
        if (not name.startswith("_") or name == "__matmul__")
    }


@pytest.fixture(params=STACKS)
def kind(request):
    return request.param


@pytest.fixture
def stack(kind):
    return STACKS[kind]()


def check_operator(operator, expected):
    """Check every answer of an operator against the matrix written out."""
    n = len(expected)
    X = np.random.default_rng(3).normal(size=(n, 2))
    assert all(hasattr(operator, name) for name in members(Operator))
    assert tuple(operator.shape) == (n, n)
    assert isinstance(operator.like, np.ndarray) or scipy.sparse.issparse(operator.like)
    largest = np.abs(expected).max()
    np.testing.assert_allclose(operator.dense(), expected, atol=1e-12 * largest)
    np.testing.assert_allclose(operator @ X, expected @ X, atol=1e-10 * largest)


def test_every_stack_answers_every_member_of_the_protocol(kind, stack):
    assert type(stack) is KINDS.get(kind, DenseStack)
    m, n = stack.n_kernels, stack.n_samples
    rng = np.random.default_rng(1)
    V, c, some = rng.normal(size=(n, 2)), rng.uniform(size=m), np.array([4, 0, 2])
    K = stack.entries()
    swept = []

    def take(rows, blocks):
        swept.append((rows, [b.toarray() if is_sparse(b) else b for b in blocks]))

    stack.for_each_block(take)
    feature_map = stack.embedding_map(V)
    subset = as_stack(stack.raw_subset([2, 0]), normalize=False, validate=False)
    checked = {
        "like": isinstance(stack.like, np.ndarray) or scipy.sparse.issparse(stack.like),
        "views": list(stack.views) == list(range(m)),
        "subset": np.allclose(stack.subset([2, 0]).entries(), K[[2, 0]]),
        "comparisons": [
            (c.kernels, c.n_samples, c.entries(np.arange(7)).shape) for c in stack.comparisons()
        ]
        == [(tuple(range(m)), N, (m, 7, 7))],
        "names": len(stack.names) == m == len(set(stack.names)),
        "parts": [part.indices for part in stack.parts] == [tuple(range(m))],
        "counted": stack.counted.tolist() == [True] * m,
        "counting": stack.counting([0]) is stack,
        "with_maps": stack.with_maps([part.map for part in stack.parts]) is stack,
        "raw_lengths": [tuple(each.shape) for each in stack.raw_lengths()] == [(n,)] * m,
        "standardizations": len(stack.standardizations) == m,
        "raw_kernels": [tuple(matrix.shape) for matrix in stack.raw_kernels] == [(n, n)] * m,
        "precision": stack.precision == np.finfo(np.float64).eps,
        "n_kernels": m == M,
        "n_samples": (n == N) is not stack.compressed,
        "storage": stack.storage == STORAGE.get(kind, "dense"),
        "itemsize": stack.itemsize == 8,
        "combining_pays": stack.combining_pays is (kind != "streamed"),
        "repaired": stack.repaired is (kind == "repaired"),
        "compressed": stack.compressed is (kind == "low rank"),
        "approximation_error": (stack.approximation_error is None) is (kind != "low rank"),
        "observed": stack.observed is None,
        "lift": [len(lifted) for lifted in stack.lift(V, V)] == [N, N],
        "lift_some": stack.lift_some(V).shape == (N, 2),
        "embedding_map": (feature_map is None) is (kind != "low rank"),
        "kernel": all(
            hasattr(stack.kernel(p), name) for p in range(m) for name in members(KernelOperator)
        ),
        "rough_kernel": all(
            np.allclose(stack.rough_kernel(p) @ V, K[p] @ V, atol=1e-5 * np.abs(K[p]).max())
            for p in range(m)
        ),
        "raw_subset": np.array_equal(
            subset.standardizations[0].diagonal, stack.raw_kernels[2].diagonal()
        ),
        "for_each_block": [i for rows, _ in swept for i in range(rows.start, rows.stop)]
        == list(range(n)),
        "apply": np.allclose(stack.apply(V), K @ V),
        "combine": np.allclose(stack.combine(c).dense(), np.tensordot(c, K, 1))
        and np.allclose(
            stack.combine(c, rounded=True) @ V,
            np.tensordot(c, K, 1) @ V,
            atol=1e-5 * np.abs(K).max(),
        ),
        "sum_of_products": stack.sum_of_products([V] * m) is None,  # all take rows
        "traces": np.allclose(stack.traces(), np.trace(K, axis1=1, axis2=2)),
        "gram": np.allclose(stack.gram(), np.einsum("pij,qij->pq", K, K)),
        "entries": np.allclose(stack.entries(some), K[:, some][:, :, some]),
        "mixed_entries": np.allclose(stack.mixed_entries(c), np.tensordot(c, K, 1)),
    }
    assert set(checked) == members(KernelStack)
    assert all(checked.values()), [name for name, answer in checked.items() if not answer]


def test_a_kernel_of_a_stack_is_an_operator_with_entries(stack):
    K = stack.entries()
    some, columns = np.array([3, 1]), slice(0, 4)
    for p in range(stack.n_kernels):
        kernel = stack.kernel(p)
        check_operator(kernel, K[p])
        np.testing.assert_allclose(kernel.block(some, columns), K[p][some, columns], atol=1e-12)
        np.testing.assert_allclose(kernel.diagonal(), np.diag(K[p]), atol=1e-12)
        assert kernel.raw_projection(np.ones((stack.n_samples, 2))).shape == (stack.n_samples, 2)
    c = np.arange(1.0, stack.n_kernels + 1)
    check_operator(stack.combine(c), np.tensordot(c, K, 1))


def test_mixed_entries_of_some_samples_are_those_of_all(stack):
    c, some = np.array([0.5, 0.0, 2.0]), np.array([4, 0, 2, 4])
    mixed = stack.mixed_entries(c, some)
    np.testing.assert_allclose(mixed, stack.mixed_entries(c)[np.ix_(some, some)], atol=1e-12)


def test_a_sweep_hands_over_the_kernels_as_they_came(stack):
    found = np.zeros((stack.n_kernels, stack.n_samples, stack.n_samples))

    def take(rows, blocks):
        for p, block in enumerate(blocks):
            found[p, rows] = block.toarray() if is_sparse(block) else block

    stack.for_each_block(take)
    for p, matrix in enumerate(stack.raw_kernels):
        rows = matrix[: stack.n_samples]
        rows = rows.toarray() if is_sparse(rows) else rows
        np.testing.assert_array_equal(found[p], rows)


def test_an_embedding_map_takes_the_features_of_samples_to_what_is_lifted():
    stack = compressed_stack()
    V = np.random.default_rng(1).normal(size=(stack.n_samples, 2))
    features, matrix = stack.embedding_map(V)
    X = np.random.default_rng(0).normal(size=(M, N, 5))
    block = {f"view {p}": X[p] for p in range(M)}
    np.testing.assert_allclose(features.project(block, matrix), stack.lift(V)[0], atol=1e-10)


def test_every_operator_answers_as_the_matrix_it_stands_for():
    K = plain_kernels()[0]
    H = np.linalg.qr(np.random.default_rng(1).normal(size=(N, 3)))[0]
    C = np.eye(N) - 1 / N
    plain = MatrixOperator(K)
    check_operator(plain, K)
    check_operator(ScaledOperator(plain, 1.5), 1.5 * K)
    check_operator(CenteredOperator(plain), C @ K @ C)
    check_operator(AnchoredOperator(plain, Anchor(H, 2.0)), K + 2 * H @ H.T)
    check_operator(LazyOperator(lambda: plain), K)


def test_a_lazy_operator_is_made_once_and_not_before_it_is_asked():
    made = []
    lazy = LazyOperator(lambda: made.append(1) or MatrixOperator(np.eye(3)))
    assert not made
    assert lazy.shape == (3, 3)
    np.testing.assert_array_equal(lazy @ np.ones((3, 1)), 1)
    assert made == [1]


def name_of(node):
    """Return the last name of an expression such as ``self._stack``, without its underscore."""
    if isinstance(node, ast.Attribute):
        return node.attr.strip("_")
    return node.id if isinstance(node, ast.Name) else ""


def probes(text):
    """Return the places where a program asks a stack, an operator or kernels what they are.

    The parameter `kernels` of a model is no stack: what it is may be asked.
    """
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and name_of(node.func) in PROBES and node.args:
            asked, *kinds = node.args
            parameter = bool(kinds) and name_of(kinds[0]) in PARAMETER
            names = ("stack", "operator", "kernels")[: 3 if isinstance(asked, ast.Name) else 2]
            if name_of(asked) in names and not parameter:
                yield node.lineno, ast.unparse(node)
        asks = isinstance(node, ast.Attribute) and name_of(node.value) == "stack"
        if asks and node.attr not in members(KernelStack):
            yield node.lineno, ast.unparse(node)


@pytest.mark.parametrize(
    "text",
    [
        'getattr(stack, "combining_pays", True)',
        'hasattr(self._stack, "for_each_block")',
        "isinstance(stack, DenseStack)",
        'getattr(operator, "like", operator)',
        "isinstance(kernels, KernelRows)",
        "stack.source",
        "self.stack.kernels[0]",
    ],
)
def test_a_probe_is_found(text):
    assert list(probes(text))


@pytest.mark.parametrize("text", ["stack.apply(V)", "isinstance(self.kernels, KernelBank)"])
def test_a_question_of_the_protocol_is_no_probe(text):
    assert not list(probes(text))


def test_nobody_outside_its_folder_asks_a_stack_what_the_protocol_does_not_answer():
    # Data sets and samples are below the stacks; what is called a stack or kernels there is an
    # array of a file, or what a user passed.
    elsewhere = (SOURCE / "stack", SOURCE / "datasets", SOURCE / "samples")
    files = [path for path in SOURCE.rglob("*.py") if path.parent not in elsewhere]
    assert len(files) > 100
    found = [f"{path}:{line}: {call}" for path in files for line, call in probes(path.read_text())]
    assert not found, "ask a member of KernelStack instead:\n" + "\n".join(found)
