"""A worker of MultiWorkerMirroredStrategy: fits a Keras model and prints its weights before and after."""

import json

import numpy as np

import tensorfleet as tf

X = np.random.RandomState(3).rand(16, 2).astype(np.float32)
Y = X @ np.float32([[1.0], [-2.0]])


def main():
    strategy = tf.distribute.experimental.MultiWorkerMirroredStrategy()
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(1, use_bias=False, input_shape=(2,))])
        model.compile(tf.keras.optimizers.SGD(0.1), "mse", metrics=["mae"])
    before = model.get_weights()[0].tolist()
    model.fit(X, Y, batch_size=8, epochs=3, shuffle=False, verbose=0)
    print(json.dumps({"before": before, "after": model.get_weights()[0].tolist()}), flush=True)


if __name__ == "__main__":
    main()
