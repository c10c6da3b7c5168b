"""`tf.contrib.gan`: models, losses and training of generators and discriminators."""

import itertools

import numpy as np
import pytest

import tensorfleet as tf

G = tf.contrib.gan
RANDOM = np.random.RandomState(0)
REAL = RANDOM.normal(size=[6, 1]).astype(np.float32)
FAKE = RANDOM.normal(size=[6, 1]).astype(np.float32)


def sigmoid_loss(logits, label):
    return np.mean(np.log1p(np.exp(-np.abs(logits))) + np.maximum(logits, 0) - logits * label)


def generator(noise):
    return tf.layers.dense(noise, 2, name="made")


def discriminator(data, _):
    return tf.layers.dense(tf.layers.dense(data, 8, tf.tanh, name="seen"), 1, name="said")


def small_model(batch=8):
    real = tf.random_normal([batch, 2], 3.0, 0.1, seed=1)
    return G.gan_model(generator, discriminator, real, tf.random_normal([batch, 3], seed=2))


EXPECTED = {
    "wasserstein_generator_loss": -FAKE.mean(),
    "wasserstein_hinge_generator_loss": -FAKE.mean(),
    "wasserstein_discriminator_loss": FAKE.mean() - REAL.mean(),
    "wasserstein_hinge_discriminator_loss": np.maximum(1 - REAL, 0).mean() + np.maximum(1 + FAKE, 0).mean(),
    "modified_generator_loss": sigmoid_loss(FAKE, 1),
    "modified_discriminator_loss": sigmoid_loss(REAL, 0.75 + 0.125) + sigmoid_loss(FAKE, 0),
    "minimax_discriminator_loss": sigmoid_loss(REAL, 0.75 + 0.125) + sigmoid_loss(FAKE, 0),
    "minimax_generator_loss": -(sigmoid_loss(np.ones([6, 1]), 1) + sigmoid_loss(FAKE, 0)),
    "least_squares_generator_loss": np.square(FAKE - 1).mean() / 2,
    "least_squares_discriminator_loss": np.square(REAL - 1).mean() / 2 + np.square(FAKE).mean() / 2,
}


@pytest.mark.parametrize("name", EXPECTED)
def test_losses_by_arguments_and_of_models(session, name):
    given = [tf.constant(FAKE)] if "generator" in name else [tf.constant(REAL), tf.constant(FAKE)]
    plain = getattr(G.losses.wargs, name)(*given, add_summaries=True)
    model = G.GANModel(*[None] * 6, tf.constant(REAL), tf.constant(FAKE), *[None] * 3)
    of_model = getattr(G.losses, name)(model)
    np.testing.assert_allclose(session.run([plain, of_model]), [EXPECTED[name]] * 2, rtol=1e-5)
    assert tf.losses.get_losses()
    with pytest.raises(ValueError, match="present in both"):
        getattr(G.losses, name)(model, discriminator_gen_outputs=FAKE)


def test_the_slope_between_real_and_generated_data_is_held_at_one(session):
    real, fake = tf.zeros([5, 2]), tf.ones([5, 2])
    for size, wanted in ((1.0, 0.0), (3.0, 4.0)):

        def linear(data, _, size=size):
            return tf.reduce_sum(data * [size, 0.0], 1)

        penalty = G.losses.wargs.wasserstein_gradient_penalty(
            real, fake, None, linear, tf.get_variable_scope()
        )
        np.testing.assert_allclose(session.run(penalty), wanted, atol=1e-5)
    one_sided = G.losses.wargs.wasserstein_gradient_penalty(
        real, fake, None, lambda d, _: tf.reduce_sum(0.1 * d, 1), tf.get_variable_scope(), one_sided=True
    )
    assert session.run(one_sided) == 0


def test_classes_and_codes_are_part_of_the_losses(session):
    logits, labels = RANDOM.normal(size=[4, 3]).astype(np.float32), np.eye(3)[[0, 1, 2, 0]]
    entropy = np.mean(np.log(np.exp(logits).sum(1)) - (logits * labels).sum(1))
    both = G.losses.wargs.acgan_discriminator_loss(logits, logits, labels)
    alone = G.losses.wargs.acgan_generator_loss(logits, labels)
    np.testing.assert_allclose(session.run([both, alone]), [2 * entropy, entropy], rtol=1e-5)
    codes = [tf.constant([0.5, -0.5])]
    results = [tf.distributions.Normal(0.0, 1.0)]
    penalty = G.losses.wargs.mutual_information_penalty(codes, results)
    np.testing.assert_allclose(session.run(penalty), 0.125 + 0.5 * np.log(2 * np.pi), rtol=1e-5)
    with pytest.raises(ValueError, match="must be the same as"):
        G.losses.wargs.mutual_information_penalty(codes * 2, results)


def test_an_adversarial_loss_beside_another_by_the_ratio_of_gradients(session):
    x = tf.get_variable("x", initializer=2.0)
    main, other = 3.0 * x, 5.0 * x
    ratio = G.losses.wargs.combine_adversarial_loss(main, other, gradient_ratio=2.0, variables=[x])
    weight = G.losses.wargs.combine_adversarial_loss(main, other, weight_factor=0.1, variables=[x])
    assert G.losses.wargs.combine_adversarial_loss(main, other, gradient_ratio=0.0, variables=[x]) is main
    session.run(tf.global_variables_initializer())
    np.testing.assert_allclose(session.run([ratio, weight]), [6 + 10 * 3 / 5 / 2, 7], rtol=1e-5)
    with pytest.raises(ValueError, match="cannot both be specified"):
        G.losses.wargs.combine_adversarial_loss(main, other, 1.0, 1.0)


def test_a_model_has_the_variables_of_both_sides():
    model = small_model()
    assert [v.op.name for v in model.generator_variables] == ["Generator/made/kernel", "Generator/made/bias"]
    assert {v.op.name.split("/")[0] for v in model.discriminator_variables} == {"Discriminator"}
    assert len(tf.trainable_variables()) == 6
    with pytest.raises(ValueError, match="must be the same shape as real data"):
        G.gan_model(generator, lambda x, _: tf.reduce_sum(x), tf.zeros([8, 5]), tf.zeros([8, 3]), "G2", "D2")


@pytest.mark.parametrize("hooks", ["sequential", "joint"])
def test_a_generator_learns_to_make_real_data(tmp_path, hooks):
    tf.set_random_seed(1)
    model = small_model(32)
    loss = G.gan_loss(
        model, G.losses.modified_generator_loss, G.losses.modified_discriminator_loss, add_summaries=True
    )
    train = G.gan_train_ops(model, loss, tf.train.AdamOptimizer(0.05, 0.5), tf.train.AdamOptimizer(0.05, 0.5))
    make = getattr(G, f"get_{hooks}_train_hooks")(G.GANTrainSteps(2, 1))
    step = G.gan_train(train, str(tmp_path), make, hooks=[tf.train.StopAtStepHook(num_steps=60)])
    assert step == 60
    with tf.Session() as sess:
        tf.train.Saver().restore(sess, tf.train.latest_checkpoint(str(tmp_path)))
        mean = np.mean([sess.run(model.generated_data).mean() for _ in range(5)])
    assert abs(mean - 3.0) < 1.5  # it begins at 0
    with pytest.raises(ValueError, match="logdir cannot be None"):
        G.gan_train(train, None)


def test_update_operations_belong_to_their_side():
    def normalized(noise):
        return tf.layers.batch_normalization(generator(noise), training=True)

    model = G.gan_model(normalized, discriminator, tf.zeros([4, 2]), tf.zeros([4, 3]))
    loss = G.gan_loss(model)
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    assert len(G.gan_train_ops(model, loss, optimizer, optimizer)) == 4
    tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.no_op())
    with pytest.raises(ValueError, match="unused update ops"):
        G.gan_train_ops(model, loss, optimizer, optimizer)


def test_penalties_need_models_of_their_kind():
    model = small_model()
    with pytest.raises(ValueError, match="must be an `InfoGANModel`"):
        G.gan_loss(model, mutual_information_penalty_weight=1.0)
    with pytest.raises(ValueError, match="must be an `ACGANModel`"):
        G.gan_loss(model, aux_cond_generator_weight=1.0)
    with pytest.raises(ValueError, match="must be greater than 0"):
        G.gan_loss(model, gradient_penalty_weight=-1.0)


def test_codes_of_an_infogan_are_learned(session):
    def two(data, inputs):
        said = discriminator(data, inputs)
        return said, [tf.distributions.Normal(tf.layers.dense(data, 1, name="code"), 1.0)]

    def joined(inputs):
        return generator(tf.concat(inputs, 1))

    model = G.infogan_model(joined, two, tf.zeros([4, 2]), [tf.zeros([4, 2])], [tf.ones([4, 1])])
    assert len(model.structured_generator_inputs) == 1 and len(model.generator_inputs) == 2
    loss = G.gan_loss(model, mutual_information_penalty_weight=2.0, gradient_penalty_weight=1.0)
    session.run(tf.global_variables_initializer())
    assert np.isfinite(session.run(list(loss))).all()


def test_a_model_with_classes(session):
    def two(data, _):
        return tf.layers.dense(data, 1, name="said"), tf.layers.dense(data, 3, name="class")

    labels = tf.one_hot([0, 1, 2, 0], 3)
    model = G.acgan_model(generator, two, tf.zeros([4, 2]), tf.ones([4, 3]), labels)
    loss = G.gan_loss(model, aux_cond_generator_weight=1.0, aux_cond_discriminator_weight=1.0)
    session.run(tf.global_variables_initializer())
    assert np.isfinite(session.run(list(loss))).all()
    with pytest.raises(TypeError, match="must output a tuple"):
        G.acgan_model(generator, discriminator, tf.zeros([4, 2]), tf.ones([4, 3]), labels, "G2", "D2")


def test_data_go_to_the_other_kind_and_back(session):
    def half(data):
        return data * tf.get_variable("factor", initializer=0.5)

    x, y = tf.ones([4, 2]), tf.ones([4, 2]) * 3
    model = G.cyclegan_model(half, discriminator, x, y)
    assert model.model_x2y.generator_variables[0].op.name == "ModelX2Y/Generator/factor"
    loss = G.cyclegan_loss(model, cycle_consistency_loss_weight=2.0)
    session.run(tf.global_variables_initializer())
    changed = (0.75 + 2.25) / 2
    np.testing.assert_allclose(session.run(G.losses.cycle_consistency_loss(model)), changed)
    plain = G.gan_loss(
        model.model_x2y, G.losses.least_squares_generator_loss, G.losses.least_squares_discriminator_loss
    )
    with_cycle, without = session.run([loss.loss_x2y.generator_loss, plain.generator_loss])
    np.testing.assert_allclose(with_cycle - without, 2 * changed, rtol=1e-5)
    train = G.gan_train_ops(model, loss, *[tf.train.GradientDescentOptimizer(0.01)] * 2)
    session.run(tf.global_variables_initializer())
    session.run([train.generator_train_op, train.discriminator_train_op])
    assert session.run(train.global_step_inc_op) == 1


def test_one_generator_between_domains(session):
    def moved(data, domain):
        return tf.layers.dense(tf.concat([data, domain], 1), 2, name="moved")

    def told(data, domains):
        return tf.layers.dense(data, 1, name="said"), tf.layers.dense(data, domains, name="domain")

    model = G.stargan_model(moved, told, tf.random_normal([6, 2]), tf.one_hot([0, 1, 2] * 2, 3))
    loss = G.stargan_loss(model)
    session.run(tf.global_variables_initializer())
    assert np.isfinite(session.run(list(loss))).all()
    assert session.run(model.generated_data_domain_target).sum() == 6


def test_an_estimator_of_both_sides(tmp_path):
    def given():
        return tf.random_normal([16, 3]), tf.random_normal([16, 2], 3.0, 0.1)

    def seen(mode_seen):
        def made(noise, mode):
            mode_seen.append(mode)
            return generator(noise)

        return made

    modes = []
    estimator = G.estimator.GANEstimator(
        str(tmp_path),
        seen(modes),
        discriminator,
        G.losses.wasserstein_generator_loss,
        G.losses.wasserstein_discriminator_loss,
        lambda: tf.train.AdamOptimizer(0.01),
        tf.train.AdamOptimizer(0.01),
        add_summaries=G.estimator.SummaryType.VARIABLES,
        get_eval_metric_ops_fn=lambda model: {"mean": tf.metrics.mean(model.generated_data)},
    )
    estimator.train(given, steps=3)
    result = estimator.evaluate(given, steps=2)
    assert {"generator_loss", "discriminator_loss", "mean", "loss", "global_step"} == set(result)
    assert result["global_step"] == 3
    predicted = list(itertools.islice(estimator.predict(lambda: given()[0]), 3))
    assert predicted[0].shape == (2,)
    assert modes == ["train", "eval", "infer"]
