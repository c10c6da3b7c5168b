"""Images in files and folders: read, written, changed, drawn in batches."""

import numpy as np
import pytest

import tensorfleet as tf

image = tf.keras.preprocessing.image
RANDOM = np.random.RandomState(0)


@pytest.fixture
def folder(tmp_path):
    pytest.importorskip("PIL")
    for name, level in (("cats", 50), ("dogs", 200)):
        (tmp_path / name).mkdir()
        for i in range(5):
            image.save_img(tmp_path / name / f"{i}.png", np.full([6, 4, 3], level), scale=False)
        (tmp_path / name / "notes.txt").write_text("no image")
    return tmp_path


def test_an_image_is_written_and_read(folder):
    read = image.load_img(folder / "cats" / "0.png", target_size=(3, 2))
    assert image.img_to_array(read).shape == (3, 2, 3) and image.img_to_array(read)[0, 0, 0] == 50
    grey = image.load_img(folder / "cats" / "0.png", color_mode="grayscale")
    assert image.img_to_array(grey).shape == (6, 4, 1)
    with pytest.raises(ValueError, match="color_mode must be"):
        image.load_img(folder / "cats" / "0.png", color_mode="hsv")
    with pytest.raises(ValueError, match="Invalid interpolation method"):
        image.load_img(folder / "cats" / "0.png", target_size=(2, 2), interpolation="magic")


def test_folders_are_classes(folder, capsys):
    generator = image.ImageDataGenerator(rescale=1 / 50.0, validation_split=0.2)
    train = generator.flow_from_directory(folder, (3, 3), batch_size=4, subset="training", shuffle=False)
    held = generator.flow_from_directory(folder, (3, 3), class_mode="binary", subset="validation")
    assert capsys.readouterr().out.splitlines() == [
        "Found 8 images belonging to 2 classes.",
        "Found 2 images belonging to 2 classes.",
    ]
    assert train.class_indices == {"cats": 0, "dogs": 1} and len(train) == 2
    x, y = next(train)
    np.testing.assert_allclose(x, 1.0)
    assert x.shape == (4, 3, 3, 3) and y.tolist() == [[1, 0]] * 4
    assert sorted(next(held)[1]) == [0, 1]
    model = tf.keras.Sequential([tf.keras.layers.Flatten(input_shape=(3, 3, 3)), tf.keras.layers.Dense(2)])
    model.compile("sgd", "mse")
    model.fit_generator(train, steps_per_epoch=2, epochs=2, verbose=0)


def test_batches_are_written_if_asked_for(folder, tmp_path):
    target = tmp_path / "made"
    target.mkdir()
    flow = image.ImageDataGenerator().flow(
        RANDOM.rand(3, 4, 4, 3), batch_size=2, save_to_dir=str(target), save_prefix="x"
    )
    next(flow)
    assert len(list(target.glob("x_*.png"))) == 2


def test_the_same_seed_draws_the_same_batches():
    x = RANDOM.rand(10, 6, 6, 1)
    generator = image.ImageDataGenerator(horizontal_flip=True, rotation_range=30)
    first, second = (generator.flow(x, np.arange(10), batch_size=4, seed=3) for _ in range(2))
    for _ in range(4):
        (a, i), (b, j) = next(first), next(second)
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(i, j)


def test_images_are_moved_turned_and_lit():
    pytest.importorskip("scipy")
    x = RANDOM.rand(8, 8, 3) * 255
    moved = image.apply_affine_transform(x, tx=1, ty=-2, fill_mode="constant")
    np.testing.assert_allclose(moved[:-1, 2:], x[1:, :-2])
    np.testing.assert_allclose(moved[-1], 0)
    assert image.apply_affine_transform(x) is x
    brighter = image.apply_channel_shift(x, 1000)
    assert brighter.min() == x.max()
    pytest.importorskip("PIL")
    assert image.apply_brightness_shift(x, 0.5).mean() < 0.6 * x.mean()
    with pytest.raises(ValueError, match="two floats"):
        image.random_zoom(x, (1,))
