"""Training on batches of every origin: the user's own, streams, and rows on disk."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from support.bits import bits
from support.memory import peak_while

from gbnn import data, losses, models, training
from gbnn.errors import ArgumentError, FileError, GbnnError, KindError
from gbnn.rows import SparseRows


def csr(rows: int = 60, features: int = 40, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    dense = rng.random((rows, features)) * (rng.random((rows, features)) < 0.2)
    return sp.csr_array(dense.astype(np.float32))


X = csr()
Y = (np.asarray(X.sum(axis=1)).ravel() * 10).astype(np.int64) % 3

FORMS = {
    "array": lambda x: x.toarray(),
    "CSR": lambda x: x,
    "COO": lambda x: x.tocoo(),
    "SparseRows": SparseRows.of,
    "graphblas": lambda x: SparseRows.of(x).to_graphblas(),
}


def model() -> Any:
    return models.mlp([40, 30, 3], nnz=300, seed=0)


class Own:
    """Batches of the user's own: anything with __iter__."""

    def __init__(self, form: Any) -> None:
        self.form = form

    def __iter__(self) -> Any:
        for k in range(0, 60, 20):
            yield self.form(X[k : k + 20]), Y[k : k + 20]


def trained(batches: Any, epochs: int = 2) -> Any:
    net = model()
    for _ in training.train(net, batches, optimizer=training.adam(1e-2), epochs=epochs):
        pass
    return net


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_batch_trains(form: str) -> None:
    expected = trained(list(Own(FORMS["array"])))
    found = trained(Own(FORMS[form]))
    for name, value in expected.parameters().items():
        a, b = (np.asarray(getattr(p, "values", p)) for p in (value, found.parameters()[name]))
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5)
    history = training.fit(model(), Own(FORMS[form]), epochs=2, validation=(FORMS[form](X), Y))
    assert len(history["loss"]) == 2


def generator() -> Any:
    yield from Own(FORMS["CSR"])


def test_a_generator_is_good_for_one_epoch() -> None:
    one = trained(Own(FORMS["CSR"]), epochs=1)
    assert bits(trained(generator(), epochs=1)) == bits(one)
    for use in (trained, lambda batches: training.fit(model(), batches, epochs=2)):
        with pytest.raises(ArgumentError, match="at least one batch in each epoch, got none in epoch 1"):
            use(generator())


@pytest.mark.parametrize("batch", [5, (X,), (X, Y, Y), (X, None), (X[:3], Y), (X[:, :5], Y), ("x", Y)])
def test_wrong_batches_are_named(batch: Any) -> None:
    with pytest.raises(GbnnError, match="batch"):
        trained([batch])


def test_rows_on_disk_train_as_those_in_memory(tmp_path: Any) -> None:
    data.save_csr(tmp_path / "a", X, Y)
    mapped = data.open_csr(tmp_path / "a")
    nets = model(), model()
    options = {"epochs": 2, "batch_size": 16, "seed": 3}
    one = training.fit(nets[0], (X, Y), validation=(X, Y), **options)
    two = training.fit(nets[1], mapped, validation=mapped, **options)
    assert bits(nets[0]) == bits(nets[1])
    assert one["val_loss"] == two["val_loss"]
    np.testing.assert_array_equal(training.predict(nets[0], X), training.predict(nets[0], mapped[0]))
    with pytest.raises(ArgumentError, match="41 columns, the model's inputs, got 40"):
        training.fit(models.mlp([41, 3], nnz=50, seed=0), mapped)


def test_labels_on_disk_train_as_those_in_memory(tmp_path: Any) -> None:
    labels = sp.csr_array(csr(60, 3, 1) > 0).astype(np.float32)
    data.save_csr(tmp_path / "a", X, labels)
    nets = model(), model()
    for net, pair in zip(nets, ((X, labels), data.open_csr(tmp_path / "a")), strict=True):
        training.fit(net, pair, epochs=1, loss=losses.binary_cross_entropy)
    assert bits(nets[0]) == bits(nets[1])


def test_a_stream_trains_as_its_file(tmp_path: Any) -> None:
    lines = []
    for i in range(60):
        row = X[i : i + 1]
        pairs = " ".join(f"{k}:{v!r}" for k, v in zip(row.indices, row.data.tolist(), strict=True))
        lines.append(f"{Y[i]} {pairs}\n")
    (tmp_path / "a.svm").write_text("".join(lines))
    stream = data.Stream(tmp_path / "a.svm", 20, features=40, zero_based=True)
    assert bits(trained(stream)) == bits(trained(Own(FORMS["CSR"])))
    history = training.fit(model(), stream, epochs=2, validation=(X, Y))
    assert len(history["loss"]) == 2
    (tmp_path / "a.svm").write_text("".join(lines[:40]))
    with pytest.raises(FileError, match=r"a\.svm, line 40: expected 60 rows"):
        training.fit(model(), stream, epochs=1)


def test_memory_of_training_does_not_grow_with_the_rows_on_disk(tmp_path: Any) -> None:
    def parts(rows: int) -> Any:
        rng = np.random.default_rng(0)
        for _ in range(0, rows, 500):
            columns = np.sort(rng.integers(0, 40, (500, 8)), axis=1) + np.arange(8)
            x = SparseRows(np.arange(501) * 8, columns.ravel(), np.ones(4000, np.float32), (500, 50))
            yield x, sp.csr_array(np.eye(500, 3, dtype=np.float32))

    def peak(rows: int) -> int:
        folder = tmp_path / f"{rows}"
        if not folder.exists():
            data.save_csr_batches(folder, parts(rows))
        net = models.mlp([50, 40, 3], nnz=300, seed=0)
        batches = data.Batches(*data.open_csr(folder), 500, shuffle=False)
        steps = training.train(net, batches, loss=losses.binary_cross_entropy)
        return peak_while(lambda: sum(1 for _ in steps))[0]

    peak(2_000)
    small, large = peak(2_000), peak(20_000)
    # The interpreter's free lists of tuples, emptied before each run, fill up as steps go by: some 50 kB.
    assert large < small + 100_000
    assert sum(file.stat().st_size for file in (tmp_path / "20000").iterdir()) > 1_500_000


def test_kinds_that_are_no_data() -> None:
    for wrong in (5, None):
        with pytest.raises(KindError):
            training.fit(model(), wrong)  # type: ignore[arg-type]
